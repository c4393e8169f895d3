//! Settings: written data.

use super::values::{parse_percent, put, put_bound, put_flag, put_or_none, put_percent};
use super::{Setting, Value, rows};

pub(super) const ROWS: &[Setting] = rows! { Data:
    { name: "content", aliases: [], kind: Word, unit: "", column: "content", since: 5, exported: true,
      doc: "data to write: unique (incompressible, different in every 4 KiB), repeated or zero",
      set: |cell, text| put(&mut cell.trial.content, text),
      get: |cell| Value::word(Some(cell.trial.content)) }
    { name: "write_hint", aliases: [], kind: Word, unit: "", column: "write_hint", since: 6, exported: true,
      doc: "expected lifetime of written data, given to the kernel as a hint (F_SET_RW_HINT): unspecific, short, medium, long or extreme; none: no hint",
      set: |cell, text| put_or_none(&mut cell.trial.write_hint, text),
      get: |cell| Value::word(cell.trial.write_hint) }
    { name: "compressible", aliases: ["buffer_compress_percentage"], kind: Count, unit: "percent", column: "compressible", since: 6, exported: true,
      doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
      set: |cell, text| put_percent(&mut cell.trial.compressible, text),
      get: |cell| cell.trial.compressible.into() }
    { name: "dedup", aliases: ["dedupe_percentage"], kind: Count, unit: "percent", column: "dedup", since: 6, exported: true,
      doc: "share of the writes that repeat data written before, in percent",
      set: |cell, text| put_percent(&mut cell.trial.dedup, text),
      get: |cell| cell.trial.dedup.into() }
    { name: "dedup_set", aliases: ["dedupe_working_set_percentage"], kind: Count, unit: "percent", column: "dedup_set", since: 6, exported: true,
      doc: "how much data is repeated by the writes of dedup, in percent of the region: the first blocks that each thread writes, repeated by all threads; none: one block",
      set: |cell, text| put_bound(&mut cell.trial.dedup_set, text, parse_percent),
      get: |cell| cell.trial.dedup_set.into() }
    { name: "verify", aliases: [], kind: Flag, unit: "", column: "verify", since: 5, exported: true,
      doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
      set: |cell, text| put_flag(&mut cell.trial.verify, text),
      get: |cell| cell.trial.verify.into() }
};
