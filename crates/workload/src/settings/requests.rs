//! Settings: the form of requests.

use super::values::{ANY_SIZE, put_percent, put_size, put_workload};
use super::{Setting, Value, rows};
use crate::trial::BS_MAX;

pub(super) const ROWS: &[Setting] = rows! { Requests:
    { name: "pattern", kind: Word, exported: true,
      doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace, zipf:THETA, pareto:H, normal:PERCENT or zones:50/5:30/15:20/80 (half of the requests go to the first 5 % of the region, ...)",
      word: trial.pattern }
    { name: "bs", kind: Size, unit: "bytes", column: "bs_bytes", exported: true,
      doc: "I/O size: bytes of one request",
      value: trial.bs, put_size, [1, BS_MAX] }
    { name: "bs_mix", kind: List, exported: true,
      doc: "I/O sizes and their shares in percent, drawn for each request: 4k:60,64k:30,1M:10; 4k-64k for any multiple of 4 KiB up to 64 KiB; a slash separates reads from writes; requests start at multiples of bs, random ones of 64 KiB with @64k after their sizes; none: every request has bs bytes",
      word_or_none: trial.bs_mix }
    { name: "skip", kind: Size, unit: "bytes", column: "skip_bytes", exported: true,
      doc: "bytes skipped after each I/O, with pattern=strided",
      value: trial.skip, put_size, ANY_SIZE }
    { name: "read_percent", aliases: ["rwmixread"], kind: Count, unit: "percent", exported: true,
      doc: "share of reads: 100 reads only, 0 writes only",
      value: trial.read_percent, put_percent }
    { name: "trim_percent", kind: Count, unit: "percent", exported: true,
      doc: "share of the writes that trim instead of writing data, in percent",
      value: trial.trim_percent, put_percent }
    { name: "workload", kind: Word, exported: false,
      doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to set them separately",
      set_or_none: put_workload,
      get: |cell| Value::word(cell.workload.as_ref()) }
};
