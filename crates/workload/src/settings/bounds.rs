//! Settings: limits of a trial.

use super::values::put_bound;
use super::{Setting, rows};
use crate::units::{parse_duration, parse_size};

pub(super) const ROWS: &[Setting] = rows! { Bounds:
    { name: "bytes", kind: Size, unit: "bytes", exported: false,
      doc: "end a trial after this many bytes over all threads; none for no limit",
      value_or_none: trial.limit.bytes, put_bound, parse_size }
    { name: "time", aliases: ["runtime"], kind: Time, unit: "s", column: "time_ns", exported: false,
      doc: "end a trial after this time; none for no limit",
      value_or_none: trial.limit.time, put_bound, parse_duration }
};
