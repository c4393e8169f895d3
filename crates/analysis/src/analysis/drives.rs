//! Counts of the drives below the targets of a cell, by their own logs.

use iolab_record::{DriveLog, Sample};

use crate::disturbance::throttled_ns;

/// Counts of drives over the measured trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellDrives {
    /// Bytes that hosts wrote to all drives; `None` if a drive does not count them.
    pub host_write_bytes: Option<u64>,
    /// Bytes written to their flash memory; `None` if a drive does not count them.
    pub media_write_bytes: Option<u64>,
    /// Whether one of both counts is missing that a drive has, or went back.
    pub lacks_writes: bool,
    /// Bytes that the trials wrote.
    pub written_bytes: u64,
    /// Time for which a drive throttled itself, of several the longest of each trial, ns.
    pub throttled_ns: u64,
    /// Times that drives throttled themselves.
    pub throttles: u64,
    /// Whether a count of throttling is missing, or went back.
    pub lacks_throttling: bool,
    /// Time of the trials, ns.
    pub elapsed_ns: u64,
}

impl CellDrives {
    /// The counts over these trials; `None` if a trial has none.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let is_known = !trials.is_empty() && trials.iter().all(|trial| !trial.drives.is_empty());
        let all = || trials.iter().flat_map(|trial| &trial.drives);
        let of_all = |of: fn(&DriveLog) -> Option<u64>| {
            let mut counts = all().map(of);
            counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
        };
        let of_trials = |of: &dyn Fn(&Sample) -> u64| {
            let counts = trials.iter().map(|trial| of(trial));
            counts.fold(0, u64::saturating_add)
        };
        is_known.then(|| Self {
            host_write_bytes: of_all(|log| log.host_write_bytes),
            media_write_bytes: of_all(|log| log.media_write_bytes),
            lacks_writes: all().any(DriveLog::lacks_writes),
            written_bytes: of_trials(&|trial| trial.operations.write.bytes),
            throttled_ns: of_trials(&|trial| throttled_ns(trial).unwrap_or(0)),
            throttles: all().map(DriveLog::throttles).fold(0, u64::saturating_add),
            lacks_throttling: all().any(DriveLog::lacks_throttling),
            elapsed_ns: of_trials(&|trial| trial.elapsed_ns),
        })
    }
}
