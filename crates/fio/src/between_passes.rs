//! What fio does between two passes over a file, and iolab does not.

use std::fs::Metadata;
use std::path::Path;

use iolab_workload::trial::{CacheState, FileLayout, TrialSpec};

/// What the kernel reads as a whole before a buffered write of a part of it, bytes: a block of the file system, not a page, where
/// pages are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadUnit(u64);

impl ReadUnit {
    /// Blocks as mkfs makes them by default, on machines with pages of any size.
    pub(super) const OF_FILES: Self = Self(4096);

    /// That of what is measured, if it is there.
    pub(super) fn of(target: Option<&Path>) -> Self {
        let metadata = target.and_then(|target| target.metadata().ok());
        metadata.and_then(of_device).unwrap_or(Self::OF_FILES)
    }
}

/// A block device is read by the page.
#[cfg(unix)]
fn of_device(metadata: Metadata) -> Option<ReadUnit> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let is_device = metadata.file_type().is_block_device();
    is_device.then(|| ReadUnit(metadata.blksize()))
}

/// Devices have no place among files there.
#[cfg(not(unix))]
fn of_device(_metadata: Metadata) -> Option<ReadUnit> {
    None
}

/// Whether it shows in a trial that fio, with `invalidate=1`, has the page cache drop the file before each pass over it, and
/// iolab before the trial alone.
pub(super) fn drops_at_each_pass(spec: &TrialSpec, unit: ReadUnit) -> bool {
    let blocks = spec.region / spec.bs.max(1);
    let passes = match spec.layout {
        FileLayout::Overlapping => u64::from(spec.threads),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Private => 1,
    };
    let one_pass = blocks.saturating_mul(passes);
    let again = spec.requests_bound().is_none_or(|bound| bound > one_pass);
    // Reads wait for what is not in the cache, and so do writes of parts of it.
    let waits = spec.reads() || !spec.bs.is_multiple_of(unit.0) || spec.bs_mix.is_some();
    spec.cache == CacheState::Cold && again && waits
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_workload::trial::TrialLimit;

    use super::*;

    #[test]
    fn writes_of_whole_units_wait_for_no_read() {
        let shows = |read_percent, bs, unit| {
            let spec = TrialSpec {
                read_percent,
                bs,
                cache: CacheState::Cold,
                limit: TrialLimit {
                    time: Some(Duration::from_secs(1)),
                    ..TrialLimit::default()
                },
                ..TrialSpec::default()
            };
            drops_at_each_pass(&spec, ReadUnit(unit))
        };
        for (unit, waits) in [
            (1 << 10, false),
            (4 << 10, false),
            (16 << 10, true),
            (64 << 10, true),
        ] {
            assert_eq!(shows(0, 4 << 10, unit), waits, "writes, {unit}");
            assert!(shows(100, 4 << 10, unit), "reads, {unit}");
            assert!(!shows(0, 64 << 10, unit), "large writes, {unit}");
        }
        assert!(shows(0, 2 << 10, 4 << 10));
    }

    #[test]
    fn files_have_blocks_and_not_pages() {
        let file = tempfile::NamedTempFile::new().expect("room");
        for target in [None, Some(Path::new("/nowhere/x")), Some(file.path())] {
            assert_eq!(ReadUnit::of(target), ReadUnit::OF_FILES);
        }
    }
}
