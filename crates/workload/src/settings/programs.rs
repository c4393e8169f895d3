//! Settings: programs and other tools to measure.

use super::values::{put, put_or_none};
use super::{Setting, Value, rows};

pub(super) const ROWS: &[Setting] = rows! { Programs:
    { name: "linkage", aliases: [], kind: Word, unit: "", column: "linkage", since: 5, exported: false,
      doc: "time iolab's small reader as a whole program, linked static or dynamic; none for no program",
      set: |cell, text| put_or_none(&mut cell.linkage, text),
      get: |cell| Value::word(cell.linkage.as_ref()) }
    { name: "command", aliases: [], kind: Word, unit: "", column: "command", since: 5, exported: true,
      doc: "time your own program; iolab fills in {file}, {size} and {bs}; none for no program",
      set: |cell, text| put_or_none(&mut cell.command, text),
      get: |cell| Value::word(cell.command.as_ref()) }
    { name: "tool", aliases: ["peer"], kind: Word, unit: "", column: "tool", since: 5, exported: true,
      doc: "tool that measures the cell: iolab, or an installed peer such as fio with equivalent options",
      set: |cell, text| put(&mut cell.tool, text),
      get: |cell| Value::word(Some(cell.tool)) }
};
