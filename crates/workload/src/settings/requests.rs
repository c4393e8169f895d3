//! Settings: the form of requests.

use super::values::{
    ANY_SIZE, SOME_COUNT, put_bound, put_count, put_flag, put_percent, put_size, put_workload,
};
use super::{Setting, Value, rows};
use crate::trial::BS_MAX;
use crate::units::parse_size;

pub(super) const ROWS: &[Setting] = rows! { Requests:
    { name: "pattern", kind: Word, exported: true,
      doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace, zipf:THETA, pareto:H, normal:PERCENT, zones:50/5:30/15:20/80 (half of the requests go to the first 5 % of the region, ...), or sequence:2:0:1 (these blocks again and again; sequence:2:0:1/next: moved on by their number each time)",
      word: trial.pattern }
    { name: "bs", kind: Size, unit: "bytes", column: "bs_bytes", exported: true,
      doc: "I/O size: bytes of one request",
      value: trial.bs, put_size, [1, BS_MAX] }
    { name: "bs_mix", kind: List, exported: true,
      doc: "I/O sizes and their shares in percent, drawn for each request: 4k:60,64k:30,1M:10; 4k-64k for any multiple of 4 KiB up to 64 KiB; a slash separates reads from writes; requests start at multiples of bs, random ones of 64 KiB with @64k after their sizes; none: every request has bs bytes",
      word_or_none: trial.bs_mix }
    { name: "random_every", kind: Count, exported: true,
      doc: "draw a random offset for every so many requests; those between follow the last one of their direction in sequence, so that rand does not visit each block once per pass",
      value: trial.random_every, put_count, SOME_COUNT }
    { name: "skip", kind: Size, unit: "bytes", column: "skip_bytes", exported: true,
      doc: "bytes skipped after each I/O, with pattern=strided",
      value: trial.skip, put_size, ANY_SIZE }
    { name: "skip_every", kind: Size, unit: "bytes", column: "skip_every_bytes", exported: false,
      doc: "bytes that pattern=strided visits one after the other before it skips some; none: one I/O",
      value_or_none: trial.skip_every, put_bound, parse_size }
    { name: "read_percent", aliases: ["rwmixread"], kind: Count, unit: "percent", exported: true,
      doc: "share of reads: 100 reads only, 0 writes only",
      value: trial.read_percent, put_percent }
    { name: "trim_percent", kind: Count, unit: "percent", exported: true,
      doc: "share of the writes that trim instead of writing data, in percent",
      value: trial.trim_percent, put_percent }
    { name: "trim_by", kind: Word, exported: true,
      doc: "how to trim: discard (punch a hole in a file, BLKDISCARD on a device) or write_zeroes (zeros, with their space kept)",
      word: trial.trim_by }
    { name: "trim_first", kind: Flag, exported: true,
      doc: "trim each block before it is written, as a request of its own (depth=1)",
      value: trial.trim_first, put_flag }
    { name: "workload", kind: Word, exported: false,
      doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to set them separately",
      set_or_none: put_workload,
      get: |cell| Value::word(cell.workload.as_ref()) }
    { name: "dontcache", kind: Flag, exported: true,
      doc: "leave no data in the page cache (RWF_DONTCACHE, Linux 6.14); buffered I/O with pvsync2, io_uring or libaio",
      value: trial.dontcache, put_flag }
    { name: "atomic", kind: Flag, exported: true,
      doc: "carry out each write as a whole or not at all (RWF_ATOMIC, Linux 6.11); direct I/O with pvsync2, libaio, or io_uring with registered=false",
      value: trial.atomic, put_flag }
    { name: "nowait", kind: Flag, exported: true,
      doc: "pvsync2: try each request without waiting (RWF_NOWAIT), repeat those that would wait, and count them",
      value: trial.nowait, put_flag }
};
