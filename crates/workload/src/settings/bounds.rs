//! Settings: limits of a trial.

use super::values::{parse_count, put_bound, put_flag, put_or_none};
use super::{Setting, Value, rows};
use crate::units::{parse_duration, parse_size};

pub(super) const ROWS: &[Setting] = rows! { Bounds:
    { name: "bytes", aliases: [], kind: Size, unit: "bytes", column: "bytes", since: 5, exported: false,
      doc: "end a trial after this many bytes over all threads; none for no limit",
      set: |cell, text| put_bound(&mut cell.trial.limit.bytes, text, parse_size),
      get: |cell| cell.trial.limit.bytes.into() }
    { name: "requests", aliases: [], kind: Count, unit: "", column: "requests", since: 5, exported: false,
      doc: "end a trial after this many requests over all threads; none for no limit",
      set: |cell, text| put_bound(&mut cell.trial.limit.requests, text, parse_count),
      get: |cell| cell.trial.limit.requests.into() }
    { name: "time", aliases: ["runtime"], kind: Time, unit: "s", column: "time_ns", since: 5, exported: false,
      doc: "end a trial after this time; none for no limit",
      set: |cell, text| put_bound(&mut cell.trial.limit.time, text, parse_duration),
      get: |cell| cell.trial.limit.time.into() }
    { name: "steady", aliases: [], kind: Word, unit: "", column: "steady", since: 6, exported: true,
      doc: "end a thread once it is steady by fio's rule: iops:5%/30s/10s/1s when the requests per second of each second deviate by less than 5 % from their mean over the last 30 s, after the first 10 s (iops, bw, lat; iops_slope, bw_slope, lat_slope); none: it does not end before its limits",
      set: |cell, text| put_or_none(&mut cell.trial.steady, text),
      get: |cell| Value::word(cell.trial.steady) }
    { name: "ends_trial", aliases: [], kind: Flag, unit: "", column: "ends_trial", since: 6, exported: false,
      doc: "end the trial, with all its groups, once a thread of this group is done",
      set: |cell, text| put_flag(&mut cell.trial.ends_trial, text),
      get: |cell| cell.trial.ends_trial.into() }
};
