//! What is true of a run that was made up.

use iolab_record::Cell;
use iolab_workload::response::Response;

use crate::noise::Noise;

/// What is true of a run, cell by cell in the order of its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Each cell.
    pub cells: Vec<TrueCell>,
}

/// What is true of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct TrueCell {
    /// The cell.
    pub cell: Cell,
    /// Median of the throughput of undisturbed trials before any change, MB/s: the truth that ratios are of.
    pub mb_s: f64,
    /// How its trials scatter by themselves.
    pub noise: Noise,
    /// Standard deviation of the logarithm of what varies for all cells at random: blocks, wandering.
    pub common_sigma: f64,
    /// The 99th percentile of latency over its median.
    pub p99_over_p50: f64,
    /// Where the level changes over the measured blocks.
    pub changes: Vec<TrueChange>,
    /// Throughput in the last part of each trial over that in its first; 1 where it does not change.
    pub within_trials: f64,
    /// Measured trials that were disturbed.
    pub disturbed: usize,
    /// Measured trials.
    pub trials: usize,
    /// Measured trials that a warm-up effect concerned.
    pub warming: usize,
}

/// A change of the level of a cell, for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueChange {
    /// The first measured block of the new level, from 1.
    pub block: u32,
    /// Throughput after it over throughput before it.
    pub ratio: f64,
}

impl TrueCell {
    /// Median of the throughput over all that varies in this run at random (its own scatter, blocks, wandering), MB/s; `None`
    /// where the level changes in the course of the run, or a disturbance or a warm-up concerns some trials.
    pub fn median_mb_s(&self) -> Option<f64> {
        let is_steady = self.changes.is_empty() && self.disturbed == 0 && self.warming == 0;
        is_steady.then(|| self.mb_s * self.noise.log_median_with(self.common_sigma).exp())
    }

    /// What `mb_s` is in the unit of a response; `None` for those that follow from other things too.
    pub fn value(&self, response: Response) -> Option<f64> {
        let trial = self.cell.trial();
        let iops = self.mb_s * 1e6 / trial.bs as f64;
        // Little's law, in the closed loop.
        let p50_ns = trial.in_flight() as f64 * 1e9 / iops;
        match response {
            Response::Throughput => Some(self.mb_s),
            Response::Iops => Some(iops),
            Response::Latency => Some(p50_ns),
            Response::P99 => Some(p50_ns * self.p99_over_p50),
            Response::Elapsed | Response::P90 | Response::P999 | Response::Max | Response::Cpu => {
                None
            }
        }
    }
}

impl Truth {
    /// The true ratio of the throughput of two cells of this run, the second over the first.
    pub fn ratio(&self, base: usize, new: usize) -> f64 {
        self.cells[new].mb_s / self.cells[base].mb_s
    }

    /// The true ratio of one cell in two runs, the other run's over this one's.
    pub fn ratio_to(&self, new: &Truth, cell: usize) -> f64 {
        new.cells[cell].mb_s / self.cells[cell].mb_s
    }

    /// The cell with the greatest true throughput, the first of those that are alike.
    pub fn best(&self) -> usize {
        let best = |a: usize, b: usize| match self.cells[b].mb_s > self.cells[a].mb_s {
            true => b,
            false => a,
        };
        (0..self.cells.len()).reduce(best).unwrap_or(0)
    }

    /// Whether the level of any cell changes in the course of the run.
    pub fn changes(&self) -> bool {
        self.cells.iter().any(|cell| !cell.changes.is_empty())
    }

    /// Whether any trial was disturbed.
    pub fn is_disturbed(&self) -> bool {
        self.cells.iter().any(|cell| cell.disturbed > 0)
    }
}
