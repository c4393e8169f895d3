//! Settings: the page cache.

use super::values::{put, put_or_none};
use super::{Setting, Value, rows};

pub(super) const ROWS: &[Setting] = rows! { Cache:
    { name: "cache", aliases: [], kind: Word, unit: "", column: "cache", since: 5, exported: true,
      doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
      set: |cell, text| put(&mut cell.trial.cache, text),
      get: |cell| Value::word(Some(cell.trial.cache)) }
    { name: "fadvise", aliases: [], kind: Word, unit: "", column: "fadvise", since: 6, exported: true,
      doc: "advice to the kernel on buffered reads (posix_fadvise): normal, sequential, random or noreuse; none: no advice",
      set: |cell, text| put_or_none(&mut cell.trial.fadvise, text),
      get: |cell| Value::word(cell.trial.fadvise) }
};
