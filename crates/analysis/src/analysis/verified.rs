//! The result of reading back what a cell's trials wrote.

use iolab_record::{Cell, FaultKind, Sample};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The sum over all trials of a cell whose data was read back, including failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CellVerified {
    /// Number of trials whose data was read back, or a part of it.
    pub trials: u64,
    /// Verified trials that read back all data that every group wrote, and did not end early.
    pub whole: u64,
    /// Number of trials with wrong data.
    pub failed: u64,
    /// Number of blocks read back.
    pub blocks: u64,
    /// Number of bytes of the verified blocks.
    pub bytes: u64,
    /// Bytes that may have come from the page cache instead of storage, as far as known.
    pub cached_bytes: u64,
    /// Number of trials with an unknown number of such bytes.
    pub cache_unknown: u64,
    /// Number of faulty blocks, in the order of [`FaultKind::ALL`].
    #[serde(serialize_with = "by_kind")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub faults: [u64; FaultKind::ALL.len()],
}

/// The faults that were found, by the names of their kinds.
fn by_kind<S: Serializer>(faults: &[u64; FaultKind::ALL.len()], to: S) -> Result<S::Ok, S::Error> {
    let found = FaultKind::ALL.into_iter().zip(faults);
    to.collect_map(
        found
            .filter(|(_, blocks)| **blocks > 0)
            .map(|(kind, blocks)| (kind.name(), blocks)),
    )
}

impl CellVerified {
    /// The sum over some trials of a cell; `None` where nothing was read back.
    pub(super) fn of(cell: &Cell, trials: &[&Sample]) -> Option<Self> {
        let groups = cell.spec.groups.iter().filter(|group| !group.is_idle());
        let mut writers = groups.filter(|group| group.trial().writes());
        let of_all_groups = writers.all(|group| group.trial().verify);
        let verified = trials.iter().filter_map(|sample| {
            let one = sample.verified?;
            // A trial that failed for another reason may have ended before all was read back.
            let is_whole = of_all_groups && (sample.ok || one.faulty_blocks() > 0);
            Some(Self {
                trials: 1,
                whole: u64::from(is_whole),
                failed: u64::from(one.faulty_blocks() > 0),
                blocks: one.blocks,
                bytes: one.bytes,
                cached_bytes: one.cached_bytes.unwrap_or(0).min(one.bytes),
                cache_unknown: u64::from(one.cached_bytes.is_none()),
                faults: FaultKind::ALL.map(|kind| one.of(kind).blocks),
            })
        });
        verified.reduce(|sum, one| sum.plus(&one))
    }

    /// The sum of two results.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let faults = FaultKind::ALL.map(|kind| {
            let place = kind as usize;
            self.faults[place].saturating_add(other.faults[place])
        });
        Self {
            trials: self.trials + other.trials,
            whole: self.whole + other.whole,
            failed: self.failed + other.failed,
            blocks: self.blocks.saturating_add(other.blocks),
            bytes: self.bytes.saturating_add(other.bytes),
            cached_bytes: self.cached_bytes.saturating_add(other.cached_bytes),
            cache_unknown: self.cache_unknown + other.cache_unknown,
            faults,
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
