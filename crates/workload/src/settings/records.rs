//! Settings: what is recorded.

use super::values::put_flag;
use super::{Setting, Topic, ValueKind};

pub(super) const ROWS: &[Setting] = &[
    Setting {
        name: "latency",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "record the service time of every request; false for requests that are shorter than a time stamp",
        kind: ValueKind::Flag,
        column: "latency",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.latency, text),
        get: |cell| cell.trial.latency.into(),
    },
    Setting {
        name: "latency_over_time",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "keep a latency histogram per interval of at least 100 ms, at most 512 of them (response times at a rate, else service times)",
        kind: ValueKind::Flag,
        column: "latency_over_time",
        since: 6,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.latency_over_time, text),
        get: |cell| cell.trial.latency_over_time.into(),
    },
    Setting {
        name: "hardware_counters",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "count cycles, instructions, cache and TLB misses of the workers, if the machine supports it",
        kind: ValueKind::Flag,
        column: "hardware_counters",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.hardware_counters, text),
        get: |cell| cell.trial.hardware_counters.into(),
    },
    Setting {
        name: "trace",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "split each request's time by layer (file system and limits, scheduler, device, wake-up) with the kernel's trace events; needs root",
        kind: ValueKind::Flag,
        column: "trace",
        since: 6,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.trace, text),
        get: |cell| cell.trial.trace.into(),
    },
];
