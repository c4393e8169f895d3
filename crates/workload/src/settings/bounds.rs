//! Settings: limits of a trial.

use super::values::{parse_count, put_bound, put_flag};
use super::{Setting, rows};
use crate::units::{parse_duration, parse_size};

pub(super) const ROWS: &[Setting] = rows! { Bounds:
    { name: "bytes", kind: Size, unit: "bytes", exported: false,
      doc: "end a trial after this many bytes over all threads; none for no limit",
      value_or_none: trial.limit.bytes, put_bound, parse_size }
    { name: "requests", kind: Count, exported: false,
      doc: "end a trial after this many requests over all threads; none for no limit",
      value_or_none: trial.limit.requests, put_bound, parse_count }
    { name: "time", aliases: ["runtime"], kind: Time, unit: "s", column: "time_ns", exported: false,
      doc: "end a trial after this time; none for no limit",
      value_or_none: trial.limit.time, put_bound, parse_duration }
    { name: "steady", kind: Word, exported: true,
      doc: "end a thread once it is steady by fio's rule: iops:5%/30s/10s/1s when the requests per second of each second deviate by less than 5 % from their mean over the last 30 s, after the first 10 s (iops, bw, lat; iops_slope, bw_slope, lat_slope); none: it does not end before its limits",
      word_or_none: trial.steady }
    { name: "ends_trial", kind: Flag, exported: false,
      doc: "end the trial, with all its groups, once a thread of this group is done",
      value: trial.ends_trial, put_flag }
};
