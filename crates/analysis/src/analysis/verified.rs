//! The result of reading back what a cell's trials wrote.

use iolab_record::{FaultKind, Sample};

/// The sum over all verified trials of a cell, including failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellVerified {
    /// Number of trials whose data was read back.
    pub trials: u64,
    /// Number of trials with wrong data.
    pub failed: u64,
    /// Number of blocks read back.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that may have come from the page cache instead of storage.
    pub cached_bytes: u64,
    /// Number of faulty blocks, in the order of [`FaultKind::ALL`].
    pub faults: [u64; FaultKind::ALL.len()],
}

impl CellVerified {
    /// The sum over some trials; `None` where none was verified.
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

    /// The sum of two cells.
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

    /// The kinds of faults found, with their numbers of blocks.
    pub fn kinds(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        let numbers = self.faults;
        FaultKind::ALL
            .into_iter()
            .map(move |kind| (kind, numbers[kind as usize]))
            .filter(|(_, blocks)| *blocks > 0)
    }
}
