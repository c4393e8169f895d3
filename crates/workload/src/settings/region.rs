//! Settings of the region that requests go to.

use super::values::{ANY_SIZE, SOME_SIZE, put_size};
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Region:
    { name: "offset", kind: Size, unit: "bytes", column: "offset_bytes", exported: true,
      doc: "first byte of the region",
      value: trial.offset, put_size, ANY_SIZE }
    { name: "region", aliases: ["size"], kind: Size, unit: "bytes", column: "region_bytes", exported: true,
      doc: "length of the byte range that a trial may touch; truncated to the size of the target",
      value: trial.region, put_size, SOME_SIZE }
    { name: "layout", kind: Word, exported: true,
      doc: "files and threads: shared (one file, a share per thread), interleaved (one file, blocks in turn), overlapping (one file, each thread uses all of it) or private (a file per thread)",
      word: trial.layout }
    { name: "files", kind: Word, exported: true,
      doc: "files of each thread, with layout=private: 100; 100/spread=8 (the largest has 8 times the size of the smallest); 100/random:4 (which file has the next 4 requests: roundrobin, random or sequential, for one file until all of it was visited); 100/open=20 (20 files have requests at the same time, the next follows when one was visited); none: one file",
      word_or_none: trial.files }
    { name: "descriptors", kind: Word, exported: true,
      doc: "file descriptors: private (one per thread) or shared (one for all; backend sync then locks around lseek and read)",
      word: trial.descriptors }
    { name: "allocate", kind: Word, exported: true,
      doc: "file of trials that only write: fresh (a new, empty one for each trial), append (a new one that grows), preallocated (a new one with fallocate) or recycled (its data is overwritten); none: the file as it is",
      word_or_none: trial.allocate }
    { name: "first_offset", kind: Word, exported: true,
      doc: "where seq, reverse and strided begin: random (a new block in each trial, so that the drive's cache holds none of it; the default with cache=direct) or zero",
      word: trial.first_offset }
    { name: "target", kind: Path, exported: false,
      doc: "the target that is read or written, where a run has several: its path; none for the run's own",
      word_or_none: target }
    { name: "shift", kind: Word, exported: false,
      doc: "whose part of the region a process (rank) reads, so that the writer's page cache is not measured: none (its own), rank (the next rank's) or host (the part of a rank on another host)",
      word: trial.shift }
};
