//! What fio does between two passes over a file, and iolab does not.

use iolab_workload::trial::{CacheState, FileLayout, TrialSpec};

/// Bytes of a page of the page cache.
const PAGE: u64 = 4096;

/// Whether it shows in a trial that fio, with `invalidate=1`, has the page cache drop the file before each pass over it, and
/// iolab before the trial alone.
pub(super) fn drops_at_each_pass(spec: &TrialSpec) -> bool {
    let blocks = spec.region / spec.bs.max(1);
    let passes = match spec.layout {
        FileLayout::Overlapping => u64::from(spec.threads),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Private => 1,
    };
    let one_pass = blocks.saturating_mul(passes);
    let again = spec.requests_bound().is_none_or(|bound| bound > one_pass);
    // Reads wait for pages that are not there, and so do writes of parts of pages.
    let waits = spec.reads() || !spec.bs.is_multiple_of(PAGE) || spec.bs_mix.is_some();
    spec.cache == CacheState::Cold && again && waits
}
