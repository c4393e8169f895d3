//! Settings: written data.

use super::values::{parse_percent, put_bound, put_flag, put_percent};
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Data:
    { name: "content", kind: Word, exported: true,
      doc: "data to write: unique (incompressible, different in every 4 KiB), repeated or zero",
      word: trial.content }
    { name: "write_hint", kind: Word, exported: true,
      doc: "expected lifetime of written data, given to the kernel as a hint (F_SET_RW_HINT): unspecific, short, medium, long or extreme; none: no hint",
      word_or_none: trial.write_hint }
    { name: "compressible", aliases: ["buffer_compress_percentage"], kind: Count, unit: "percent", exported: true,
      doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
      value: trial.compressible, put_percent }
    { name: "dedup", aliases: ["dedupe_percentage"], kind: Count, unit: "percent", exported: true,
      doc: "share of the writes that repeat data written before, in percent",
      value: trial.dedup, put_percent }
    { name: "dedup_set", aliases: ["dedupe_working_set_percentage"], kind: Count, unit: "percent", exported: true,
      doc: "how much data is repeated by the writes of dedup, in percent of the region: the first blocks that each thread writes, repeated by all threads; none: one block",
      value_or_none: trial.dedup_set, put_bound, parse_percent }
    { name: "verify", kind: Flag, exported: true,
      doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
      value: trial.verify, put_flag }
};
