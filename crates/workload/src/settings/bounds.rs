//! Settings: limits of a trial.

use super::values::{parse_count, put_bound, put_flag};
use super::{Setting, Topic, ValueKind};
use crate::units::{parse_duration, parse_size};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "bytes",
        topic: Topic::Bounds,
        aliases: &[],
        unit: "bytes",
        doc: "end a trial after this many bytes over all threads; none for no limit",
        kind: ValueKind::Size,
        column: "bytes",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.bytes, text, parse_size),
        get: |cell| cell.trial.limit.bytes.into(),
    },
    Setting {
        name: "requests",
        topic: Topic::Bounds,
        aliases: &[],
        unit: "",
        doc: "end a trial after this many requests over all threads; none for no limit",
        kind: ValueKind::Count,
        column: "requests",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.requests, text, parse_count),
        get: |cell| cell.trial.limit.requests.into(),
    },
    Setting {
        name: "time",
        topic: Topic::Bounds,
        aliases: &["runtime"],
        unit: "s",
        doc: "end a trial after this time; none for no limit",
        kind: ValueKind::Time,
        column: "time_ns",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.time, text, parse_duration),
        get: |cell| cell.trial.limit.time.into(),
    },
    Setting {
        name: "ends_trial",
        topic: Topic::Bounds,
        aliases: &[],
        unit: "",
        doc: "end the trial, with all its groups, once a thread of this group is done",
        kind: ValueKind::Flag,
        column: "ends_trial",
        since: 6,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.ends_trial, text),
        get: |cell| cell.trial.ends_trial.into(),
    },
];
