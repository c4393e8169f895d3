//! Settings: durability of writes.

use super::values::{SOME_COUNT, put_count};
use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Durability:
    { name: "sync", kind: Word, exported: true,
      doc: "when writes become durable: none, end, each (fsync after writes), fdatasync (after writes), osync, odsync (open flags) or rwf_dsync (a flag of each write)",
      word: trial.sync }
    { name: "sync_every", kind: Count, exported: true,
      doc: "writes of a thread per sync, with sync=each and sync=fdatasync",
      value: trial.sync_every, put_count, SOME_COUNT }
};
