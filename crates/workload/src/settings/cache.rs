//! Settings: the page cache.

use super::{Setting, rows};

pub(super) const ROWS: &[Setting] = rows! { Cache:
    { name: "cache", kind: Word, exported: true,
      doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
      word: trial.cache }
    { name: "fadvise", kind: Word, exported: true,
      doc: "advice to the kernel on buffered reads (posix_fadvise): normal, sequential, random or noreuse; none: no advice",
      word_or_none: trial.fadvise }
};
