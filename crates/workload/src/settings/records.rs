//! Settings of the records.

use super::values::put_flag;
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Records:
    { name: "latency", kind: Flag, exported: false,
      doc: "record the service time of every request; false for requests that are shorter than a time stamp",
      value: trial.latency, put_flag }
    { name: "latency_over_time", kind: Flag, exported: false,
      doc: "keep a latency histogram per interval of at least 100 ms, at most 512 of them (response times at a rate, else service times)",
      value: trial.latency_over_time, put_flag }
    { name: "hardware_counters", kind: Flag, exported: false,
      doc: "count cycles, instructions, cache and TLB misses of the workers, if the machine supports it",
      value: trial.hardware_counters, put_flag }
    { name: "trace", kind: Flag, exported: false,
      doc: "split each request's time by layer (file system and limits, scheduler, device, wake-up) with the kernel's trace events; needs root",
      value: trial.trace, put_flag }
};
