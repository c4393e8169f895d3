//! Truth of a run made by a scenario.

use iolab_record::Cell;
use iolab_workload::response::Response;

use crate::noise::Noise;

/// Truth of a run, cell by cell in the order of its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Truth of each cell.
    pub cells: Vec<TrueCell>,
}

/// Truth of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct TrueCell {
    /// The cell.
    pub cell: Cell,
    /// Median throughput of undisturbed trials before any change, MB/s: the truth for ratios.
    pub mb_s: f64,
    /// Scatter of its trials.
    pub noise: Noise,
    /// Standard deviation of the logarithm of the random variation that all cells share: blocks and autoregression.
    pub common_sigma: f64,
    /// 99th percentile of latency over its median.
    pub p99_over_p50: f64,
    /// Changes of the level over the measured blocks.
    pub changes: Vec<TrueChange>,
    /// Throughput in the last part of each trial over the first part; 1 without a change.
    pub within_trials: f64,
    /// Number of measured trials that were disturbed.
    pub disturbed: usize,
    /// Number of measured trials.
    pub trials: usize,
    /// Number of measured trials within the warm-up effect.
    pub warming: usize,
}

/// A permanent change of the level of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueChange {
    /// First measured block of the new level, from 1.
    pub block: u32,
    /// Throughput after it over throughput before it.
    pub ratio: f64,
}

impl TrueCell {
    /// Median throughput over all random variation in this run, MB/s. `None` if the level changes during the
    /// run, or a disturbance or the warm-up effect concerns some trials.
    pub fn median_mb_s(&self) -> Option<f64> {
        let is_steady = self.changes.is_empty() && self.disturbed == 0 && self.warming == 0;
        is_steady.then(|| self.mb_s * self.noise.log_median_with(self.common_sigma).exp())
    }

    /// Truth in the unit of a response; `None` for responses that depend on more than the throughput.
    pub fn value(&self, response: Response) -> Option<f64> {
        let trial = self.cell.trial();
        let iops = self.mb_s * 1e6 / trial.bs as f64;
        // Little's law in the closed loop.
        let p50_ns = trial.in_flight_of_all() as f64 * 1e9 / iops;
        match response {
            Response::Throughput => Some(self.mb_s),
            Response::Iops => Some(iops),
            Response::Latency => Some(p50_ns),
            Response::P99 => Some(p50_ns * self.p99_over_p50),
            _ => None,
        }
    }
}

impl Truth {
    /// True ratio of the throughput of two cells of this run, the second over the first.
    pub fn ratio(&self, base: usize, new: usize) -> f64 {
        self.cells[new].mb_s / self.cells[base].mb_s
    }

    /// True ratio of one cell in two runs, the other run's value over this one's.
    pub fn ratio_to(&self, new: &Truth, cell: usize) -> f64 {
        new.cells[cell].mb_s / self.cells[cell].mb_s
    }

    /// Cell with the highest true throughput; the first of several.
    pub fn best(&self) -> usize {
        let best = |a: usize, b: usize| match self.cells[b].mb_s > self.cells[a].mb_s {
            true => b,
            false => a,
        };
        (0..self.cells.len()).reduce(best).unwrap_or(0)
    }

    /// Whether the level of any cell changes during the run.
    pub fn changes(&self) -> bool {
        self.cells.iter().any(|cell| !cell.changes.is_empty())
    }

    /// Whether any trial was disturbed.
    pub fn is_disturbed(&self) -> bool {
        self.cells.iter().any(|cell| cell.disturbed > 0)
    }
}
