//! Whether what a cell's trials wrote was there when it was read back.

use iolab_record::{FaultKind, Sample};

/// What reading back has shown, of all trials of a cell that it was done for, failed ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellVerified {
    /// Trials whose data was read back.
    pub trials: u64,
    /// Trials that did not find what they had written.
    pub failed: u64,
    /// Blocks that were read back.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the page cache may have given instead of storage.
    pub cached_bytes: u64,
    /// Faulty blocks, by the kinds of [`FaultKind::ALL`].
    pub faults: [u64; FaultKind::ALL.len()],
}

impl CellVerified {
    /// Of some trials; `None` where none was verified.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let verified = trials.iter().filter_map(|sample| sample.verified);
        let sum = verified.fold(Self::default(), |sum, one| Self {
            trials: sum.trials + 1,
            failed: sum.failed + u64::from(one.faulty_blocks() > 0),
            blocks: sum.blocks + one.blocks,
            bytes: sum.bytes + one.bytes,
            cached_bytes: sum.cached_bytes + one.cached_bytes.unwrap_or(0).min(one.bytes),
            faults: FaultKind::ALL.map(|kind| sum.faults[kind as usize] + one.of(kind).blocks),
        });
        (sum.trials > 0).then_some(sum)
    }

    /// Of two cells together.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            failed: self.failed + other.failed,
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
            cached_bytes: self.cached_bytes + other.cached_bytes,
            faults: FaultKind::ALL
                .map(|kind| self.faults[kind as usize] + other.faults[kind as usize]),
        }
    }

    /// Kinds of faults that there are, with their numbers of blocks.
    pub fn kinds(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        let numbers = self.faults;
        FaultKind::ALL
            .into_iter()
            .map(move |kind| (kind, numbers[kind as usize]))
            .filter(|(_, blocks)| *blocks > 0)
    }
}
