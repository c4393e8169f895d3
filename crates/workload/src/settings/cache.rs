//! Settings: the page cache.

use super::values::{put, put_or_none};
use super::{Setting, Topic, Value, ValueKind};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "cache",
        topic: Topic::Cache,
        aliases: &[],
        unit: "",
        doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
        kind: ValueKind::Word,
        column: "cache",
        since: 5,
        exported: true,
        set: |cell, text| put(&mut cell.trial.cache, text),
        get: |cell| Value::word(Some(cell.trial.cache)),
    },
    Setting {
        name: "fadvise",
        topic: Topic::Cache,
        aliases: &[],
        unit: "",
        doc: "advice to the kernel on buffered reads (posix_fadvise): normal, sequential, random or noreuse; none: no advice",
        kind: ValueKind::Word,
        column: "fadvise",
        since: 6,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.fadvise, text),
        get: |cell| Value::word(cell.trial.fadvise),
    },
];
