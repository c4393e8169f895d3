//! Settings: durability of writes.

use super::values::{SOME_COUNT, put, put_count};
use super::{Setting, Topic, Value, ValueKind};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "sync",
        topic: Topic::Durability,
        aliases: &[],
        unit: "",
        doc: "when writes become durable: none, end, each (fsync after writes), fdatasync (after writes), osync, odsync (open flags) or rwf_dsync (a flag of each write)",
        kind: ValueKind::Word,
        column: "sync",
        since: 5,
        exported: true,
        set: |cell, text| put(&mut cell.trial.sync, text),
        get: |cell| Value::word(Some(cell.trial.sync)),
    },
    Setting {
        name: "sync_every",
        topic: Topic::Durability,
        aliases: &[],
        unit: "",
        doc: "writes of a thread per sync, with sync=each and sync=fdatasync",
        kind: ValueKind::Count,
        column: "sync_every",
        since: 6,
        exported: true,
        set: |cell, text| put_count(&mut cell.trial.sync_every, text, SOME_COUNT),
        get: |cell| cell.trial.sync_every.into(),
    },
];
