//! Settings: where requests go.

use super::values::{ANY_SIZE, SOME_SIZE, put, put_bound, put_flag, put_or_none, put_size};
use super::{Setting, Value, rows};
use crate::units::parse_size;

pub(super) const ROWS: &[Setting] = rows! { Region:
    { name: "offset", aliases: [], kind: Size, unit: "bytes", column: "offset_bytes", since: 5, exported: true,
      doc: "first byte of the region",
      set: |cell, text| put_size(&mut cell.trial.offset, text, ANY_SIZE),
      get: |cell| cell.trial.offset.into() }
    { name: "region", aliases: ["size"], kind: Size, unit: "bytes", column: "region_bytes", since: 5, exported: true,
      doc: "length of the byte range that a trial may touch; truncated to the size of the target",
      set: |cell, text| put_size(&mut cell.trial.region, text, SOME_SIZE),
      get: |cell| cell.trial.region.into() }
    { name: "segments", aliases: [], kind: Word, unit: "", column: "segments", since: 6, exported: false,
      doc: "parts of the region that requests go to, with gaps between them, at places that are drawn once for all runs: 2048/8GiB for 2048 segments of 8 GiB together; none: the whole region",
      set: |cell, text| put_or_none(&mut cell.trial.segments, text),
      get: |cell| Value::word(cell.trial.segments) }
    { name: "layout", aliases: [], kind: Word, unit: "", column: "layout", since: 5, exported: true,
      doc: "files and threads: shared (one file, a share per thread), interleaved (one file, blocks in turn), overlapping (one file, each thread uses all of it) or private (a file per thread)",
      set: |cell, text| put(&mut cell.trial.layout, text),
      get: |cell| Value::word(Some(cell.trial.layout)) }
    { name: "files", aliases: [], kind: Word, unit: "", column: "files", since: 6, exported: true,
      doc: "files of each thread, with layout=private: 100; 100/spread=8 (the largest has 8 times the size of the smallest); 100/random:4 (which file has the next 4 requests: roundrobin, random or sequential, for one file until all of it was visited); 100/open=20 (20 files have requests at the same time, the next follows when one was visited); none: one file",
      set: |cell, text| put_or_none(&mut cell.trial.files, text),
      get: |cell| Value::word(cell.trial.files) }
    { name: "descriptors", aliases: [], kind: Word, unit: "", column: "descriptors", since: 5, exported: true,
      doc: "file descriptors: private (one per thread) or shared (one for all; backend sync then locks around lseek and read)",
      set: |cell, text| put(&mut cell.trial.descriptors, text),
      get: |cell| Value::word(Some(cell.trial.descriptors)) }
    { name: "fresh", aliases: [], kind: Flag, unit: "", column: "fresh", since: 5, exported: true,
      doc: "use a new file, without allocated space, for each trial that only writes",
      set: |cell, text| put_flag(&mut cell.trial.fresh, text),
      get: |cell| cell.trial.fresh.into() }
    { name: "allocate", aliases: [], kind: Word, unit: "", column: "allocate", since: 6, exported: true,
      doc: "space that is written: append (a new file that grows), preallocated (a new file with fallocate), recycled (existing data is overwritten); none for the file as it is, or without space with fresh=true",
      set: |cell, text| put_or_none(&mut cell.trial.allocate, text),
      get: |cell| Value::word(cell.trial.allocate) }
    { name: "first_offset", aliases: [], kind: Word, unit: "", column: "first_offset", since: 6, exported: true,
      doc: "where seq, reverse and strided begin: random (a new block in each trial, so that the drive's cache holds none of it; the default with cache=direct) or zero",
      set: |cell, text| put(&mut cell.trial.first_offset, text),
      get: |cell| Value::word(Some(cell.trial.first_offset)) }
    { name: "noatime", aliases: [], kind: Flag, unit: "", column: "noatime", since: 6, exported: true,
      doc: "open the file with O_NOATIME: reads do not change its access time",
      set: |cell, text| put_flag(&mut cell.trial.noatime, text),
      get: |cell| cell.trial.noatime.into() }
    { name: "stripe", aliases: [], kind: Size, unit: "bytes", column: "stripe_bytes", since: 6, exported: false,
      doc: "bytes that go to one target before the next one has its turn, where a trial is striped over several (--striped); none: one I/O",
      set: |cell, text| put_bound(&mut cell.trial.stripe, text, parse_size),
      get: |cell| cell.trial.stripe.into() }
    { name: "target", aliases: [], kind: Path, unit: "", column: "target", since: 6, exported: false,
      doc: "the target that is read or written, where a run has several: paths, or /a:/b for a trial that is striped over both; none for the run's own",
      set: |cell, text| put_or_none(&mut cell.target, text),
      get: |cell| Value::word(cell.target.as_ref()) }
    { name: "shift", aliases: [], kind: Word, unit: "", column: "shift", since: 6, exported: false,
      doc: "whose part of the region a process (rank) reads, so that the writer's page cache is not measured: none (its own), rank (that of the next) or host (that of a rank on another host)",
      set: |cell, text| put(&mut cell.trial.shift, text),
      get: |cell| Value::word(Some(cell.trial.shift)) }
};
