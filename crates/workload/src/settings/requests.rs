//! Settings: the form of requests.

use super::values::{
    ANY_SIZE, SOME_COUNT, put, put_bound, put_count, put_flag, put_or_none, put_percent, put_size,
    put_workload,
};
use super::{Setting, Value, rows};
use crate::trial::BS_MAX;
use crate::units::parse_size;

pub(super) const ROWS: &[Setting] = rows! { Requests:
    { name: "pattern", aliases: [], kind: Word, unit: "", column: "pattern", since: 5, exported: true,
      doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace, zipf:THETA, pareto:H, normal:PERCENT, zones:50/5:30/15:20/80 (half of the requests go to the first 5 % of the region, ...), or sequence:2:0:1 (these blocks again and again; sequence:2:0:1/next: moved on by their number each time)",
      set: |cell, text| put(&mut cell.trial.pattern, text),
      get: |cell| Value::word(Some(cell.trial.pattern)) }
    { name: "bs", aliases: [], kind: Size, unit: "bytes", column: "bs_bytes", since: 5, exported: true,
      doc: "I/O size: bytes of one request",
      set: |cell, text| put_size(&mut cell.trial.bs, text, [1, BS_MAX]),
      get: |cell| cell.trial.bs.into() }
    { name: "bs_mix", aliases: [], kind: List, unit: "", column: "bs_mix", since: 6, exported: true,
      doc: "I/O sizes and their shares in percent, drawn for each request: 4k:60,64k:30,1M:10; 4k-64k for any multiple of 4 KiB up to 64 KiB; a slash separates reads from writes; requests start at multiples of bs; none: every request has bs bytes",
      set: |cell, text| put_or_none(&mut cell.trial.bs_mix, text),
      get: |cell| Value::word(cell.trial.bs_mix.as_ref()) }
    { name: "random_every", aliases: [], kind: Count, unit: "", column: "random_every", since: 6, exported: true,
      doc: "draw a random offset for every so many requests; those between follow the last one of their direction in sequence, so that rand does not visit each block once per pass",
      set: |cell, text| put_count(&mut cell.trial.random_every, text, SOME_COUNT),
      get: |cell| cell.trial.random_every.into() }
    { name: "skip", aliases: [], kind: Size, unit: "bytes", column: "skip_bytes", since: 5, exported: true,
      doc: "bytes skipped after each I/O, with pattern=strided",
      set: |cell, text| put_size(&mut cell.trial.skip, text, ANY_SIZE),
      get: |cell| cell.trial.skip.into() }
    { name: "skip_every", aliases: [], kind: Size, unit: "bytes", column: "skip_every_bytes", since: 6, exported: false,
      doc: "bytes that pattern=strided visits one after the other before it skips some; none: one I/O",
      set: |cell, text| put_bound(&mut cell.trial.skip_every, text, parse_size),
      get: |cell| cell.trial.skip_every.into() }
    { name: "read_percent", aliases: ["rwmixread"], kind: Count, unit: "percent", column: "read_percent", since: 5, exported: true,
      doc: "share of reads: 100 reads only, 0 writes only",
      set: |cell, text| put_percent(&mut cell.trial.read_percent, text),
      get: |cell| cell.trial.read_percent.into() }
    { name: "trim_percent", aliases: [], kind: Count, unit: "percent", column: "trim_percent", since: 6, exported: true,
      doc: "share of the writes that trim instead of writing data, in percent",
      set: |cell, text| put_percent(&mut cell.trial.trim_percent, text),
      get: |cell| cell.trial.trim_percent.into() }
    { name: "trim_by", aliases: [], kind: Word, unit: "", column: "trim_by", since: 6, exported: true,
      doc: "how to trim: discard (punch a hole in a file, BLKDISCARD on a device) or write_zeroes (zeros, with their space kept)",
      set: |cell, text| put(&mut cell.trial.trim_by, text),
      get: |cell| Value::word(Some(cell.trial.trim_by)) }
    { name: "trim_first", aliases: [], kind: Flag, unit: "", column: "trim_first", since: 6, exported: true,
      doc: "trim each block before it is written, as a request of its own (depth=1)",
      set: |cell, text| put_flag(&mut cell.trial.trim_first, text),
      get: |cell| cell.trial.trim_first.into() }
    { name: "workload", aliases: [], kind: Word, unit: "", column: "workload", since: 5, exported: false,
      doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to set them separately",
      set: put_workload,
      get: |cell| Value::word(cell.workload.as_ref()) }
    { name: "dontcache", aliases: [], kind: Flag, unit: "", column: "dontcache", since: 6, exported: true,
      doc: "leave no data in the page cache (RWF_DONTCACHE, Linux 6.14); buffered I/O with pvsync2, io_uring or libaio",
      set: |cell, text| put_flag(&mut cell.trial.dontcache, text),
      get: |cell| cell.trial.dontcache.into() }
    { name: "atomic", aliases: [], kind: Flag, unit: "", column: "atomic", since: 6, exported: true,
      doc: "carry out each write as a whole or not at all (RWF_ATOMIC, Linux 6.11); direct I/O with pvsync2, libaio, or io_uring with registered=false",
      set: |cell, text| put_flag(&mut cell.trial.atomic, text),
      get: |cell| cell.trial.atomic.into() }
    { name: "nowait", aliases: [], kind: Flag, unit: "", column: "nowait", since: 6, exported: true,
      doc: "pvsync2: try each request without waiting (RWF_NOWAIT), repeat those that would wait, and count them",
      set: |cell, text| put_flag(&mut cell.trial.nowait, text),
      get: |cell| cell.trial.nowait.into() }
};
