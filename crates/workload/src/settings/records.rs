//! Settings: what is recorded.

use super::values::put_flag;
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Records:
    { name: "latency", aliases: [], kind: Flag, unit: "", column: "latency", since: 5, exported: false,
      doc: "record the service time of every request; false for requests that are shorter than a time stamp",
      set: |cell, text| put_flag(&mut cell.trial.latency, text),
      get: |cell| cell.trial.latency.into() }
    { name: "latency_over_time", aliases: [], kind: Flag, unit: "", column: "latency_over_time", since: 6, exported: false,
      doc: "keep a latency histogram per interval of at least 100 ms, at most 512 of them (response times at a rate, else service times)",
      set: |cell, text| put_flag(&mut cell.trial.latency_over_time, text),
      get: |cell| cell.trial.latency_over_time.into() }
    { name: "hardware_counters", aliases: [], kind: Flag, unit: "", column: "hardware_counters", since: 5, exported: false,
      doc: "count cycles, instructions, cache and TLB misses of the workers, if the machine supports it",
      set: |cell, text| put_flag(&mut cell.trial.hardware_counters, text),
      get: |cell| cell.trial.hardware_counters.into() }
    { name: "trace", aliases: [], kind: Flag, unit: "", column: "trace", since: 6, exported: false,
      doc: "split each request's time by layer (file system and limits, scheduler, device, wake-up) with the kernel's trace events; needs root",
      set: |cell, text| put_flag(&mut cell.trial.trace, text),
      get: |cell| cell.trial.trace.into() }
};
