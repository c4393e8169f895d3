//! Settings: written data.

use super::values::{put, put_flag, put_percent};
use super::{Setting, Topic, Value, ValueKind};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "content",
        topic: Topic::Data,
        aliases: &[],
        unit: "",
        doc: "data to write: unique (incompressible, different in every 4 KiB), repeated or zero",
        kind: ValueKind::Word,
        column: "content",
        since: 5,
        exported: true,
        set: |cell, text| put(&mut cell.trial.content, text),
        get: |cell| Value::word(Some(cell.trial.content)),
    },
    Setting {
        name: "compressible",
        topic: Topic::Data,
        aliases: &["buffer_compress_percentage"],
        unit: "percent",
        doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
        kind: ValueKind::Count,
        column: "compressible",
        since: 6,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.compressible, text),
        get: |cell| cell.trial.compressible.into(),
    },
    Setting {
        name: "dedup",
        topic: Topic::Data,
        aliases: &["dedupe_percentage"],
        unit: "percent",
        doc: "share of the writes that repeat data written before, in percent",
        kind: ValueKind::Count,
        column: "dedup",
        since: 6,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.dedup, text),
        get: |cell| cell.trial.dedup.into(),
    },
    Setting {
        name: "verify",
        topic: Topic::Data,
        aliases: &[],
        unit: "",
        doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
        kind: ValueKind::Flag,
        column: "verify",
        since: 5,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.verify, text),
        get: |cell| cell.trial.verify.into(),
    },
];
