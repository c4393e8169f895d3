//! Actions of fio between two passes over a file that iolab does not take.

use iolab_workload::trial::{CacheState, FileLayout, TrialSpec};

/// Bytes of a page of the machine that measures a job file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize(pub u64);

impl PageSize {
    /// Bytes of a page on most machines.
    pub const USUAL: Self = Self(4096);
}

/// The unit that the kernel reads before a buffered write of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadUnit {
    /// A block of a file system: as mkfs makes it by default, on machines with pages of any size.
    BlockOfFiles,
    /// A page of a block device.
    PageOfDevice(PageSize),
}

impl ReadUnit {
    fn bytes(self) -> u64 {
        match self {
            Self::BlockOfFiles => 4096,
            Self::PageOfDevice(page) => page.0,
        }
    }
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
    // Reads wait for uncached data, and so do writes of parts of it.
    let waits = spec.reads() || !spec.bs.is_multiple_of(unit.bytes()) || spec.bs_mix.is_some();
    spec.cache == CacheState::Cold && again && waits
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use iolab_workload::trial::TrialLimit;

    use super::*;

    #[test]
    fn writes_of_whole_units_wait_for_no_read() {
        let shows = |read_percent, bs, unit: ReadUnit| {
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
            drops_at_each_pass(&spec, unit)
        };
        let device = |kib: u64| ReadUnit::PageOfDevice(PageSize(kib << 10));
        for (unit, waits) in [
            (ReadUnit::BlockOfFiles, false),
            (device(4), false),
            (device(16), true),
            (device(64), true),
        ] {
            assert_eq!(shows(0, 4 << 10, unit), waits, "{unit:?}");
            assert!(shows(0, 2 << 10, unit), "{unit:?}");
            assert!(!shows(0, 64 << 10, unit), "{unit:?}");
            assert!(shows(100, 64 << 10, unit), "reads, {unit:?}");
        }
    }
}
