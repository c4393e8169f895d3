//! Settings: programs and other tools to measure.

use super::values::{put, put_or_none};
use super::{Setting, Topic, Value, ValueKind};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "linkage",
        topic: Topic::Programs,
        aliases: &[],
        unit: "",
        doc: "time iolab's small reader as a whole program, linked static or dynamic; none for no program",
        kind: ValueKind::Word,
        column: "linkage",
        since: 5,
        exported: false,
        set: |cell, text| put_or_none(&mut cell.linkage, text),
        get: |cell| Value::word(cell.linkage.as_ref()),
    },
    Setting {
        name: "command",
        topic: Topic::Programs,
        aliases: &[],
        unit: "",
        doc: "time your own program; iolab fills in {file}, {size} and {bs}; none for no program",
        kind: ValueKind::Word,
        column: "command",
        since: 5,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.command, text),
        get: |cell| Value::word(cell.command.as_ref()),
    },
    Setting {
        name: "tool",
        topic: Topic::Programs,
        aliases: &["peer"],
        unit: "",
        doc: "tool that measures the cell: iolab, or an installed peer such as fio with equivalent options",
        kind: ValueKind::Word,
        column: "tool",
        since: 5,
        exported: true,
        set: |cell, text| put(&mut cell.tool, text),
        get: |cell| Value::word(Some(cell.tool)),
    },
];
