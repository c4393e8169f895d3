//! What is true of a run that was made up.

use iolab_record::Cell;

use crate::noise::Noise;

/// What is true of a run, cell by cell in the order of its record.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Each cell.
    pub cells: Vec<TrueCell>,
    /// The shape of the scatter that each cell has of its own.
    pub noise: Noise,
}

/// What is true of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct TrueCell {
    /// The cell.
    pub cell: Cell,
    /// Median of the throughput of undisturbed trials before any change, MB/s: the truth that ratios are of.
    pub mb_s: f64,
    /// Median of the throughput over all that varies in this run at random (its own scatter, blocks, wandering), MB/s; `None`
    /// where the level changes in the course of the run, or a disturbance concerns some trials.
    pub median_mb_s: Option<f64>,
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
