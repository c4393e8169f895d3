//! Settings: durability of writes.

use super::values::{SOME_COUNT, put, put_count};
use super::{Setting, Value, rows};

pub(super) const ROWS: &[Setting] = rows! { Durability:
    { name: "sync", aliases: [], kind: Word, unit: "", column: "sync", since: 5, exported: true,
      doc: "when writes become durable: none, end, each (fsync after writes), fdatasync (after writes), osync, odsync (open flags) or rwf_dsync (a flag of each write)",
      set: |cell, text| put(&mut cell.trial.sync, text),
      get: |cell| Value::word(Some(cell.trial.sync)) }
    { name: "sync_every", aliases: [], kind: Count, unit: "", column: "sync_every", since: 6, exported: true,
      doc: "writes of a thread per sync, with sync=each and sync=fdatasync",
      set: |cell, text| put_count(&mut cell.trial.sync_every, text, SOME_COUNT),
      get: |cell| cell.trial.sync_every.into() }
};
