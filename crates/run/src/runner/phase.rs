//! Blocks over all cells until their repetition ends: first over the grid; then, where finer sizes are asked for, over
//! the grid and these together, with a warm-up of their own.

use std::collections::HashSet;

use super::repetition::Repetition;
use iolab_plan::experiment::Experiment;

/// See the module.
pub(super) struct Phase {
    /// Its first block, the warm-up.
    pub(super) first_block: u32,
    /// Its trials: cell and block.
    done: HashSet<(usize, u32)>,
    /// Cells that get no further trial.
    closed: HashSet<usize>,
    /// The repetition of its cells.
    pub(super) repetition: Repetition,
}

impl Phase {
    /// The phase that an experiment with so many cells is in.
    pub(super) fn of(experiment: &Experiment, cells: usize) -> Self {
        Self {
            first_block: experiment
                .refined
                .as_ref()
                .map_or(0, |refined| refined.block),
            done: HashSet::new(),
            closed: HashSet::new(),
            repetition: Repetition::new(experiment.design, cells),
        }
    }

    /// Trials done.
    pub(super) fn trials(&self) -> usize {
        self.done.len()
    }

    /// The block after the last one that has a trial.
    pub(super) fn next_block(&self) -> u32 {
        let last = self.done.iter().map(|(_, block)| *block).max();
        last.map_or(self.first_block, |block| block + 1)
    }

    /// Trials of the last block that has any which are still to come, and whether it is the warm-up.
    pub(super) fn left_in_block(&self, cells: usize) -> (u64, bool) {
        let block = self.next_block().saturating_sub(1).max(self.first_block);
        let left = (0..cells).filter(|cell| !self.has(*cell, block)).count();
        (left as u64, block == self.first_block)
    }

    /// Whether a trial is done, or will never be.
    pub(super) fn has(&self, cell: usize, block: u32) -> bool {
        self.is_closed(cell) || self.done.contains(&(cell, block))
    }

    /// Whether a cell has any trial.
    pub(super) fn has_any(&self, cell: usize) -> bool {
        self.done.iter().any(|(with, _)| *with == cell)
    }

    /// Gives a cell no further trial.
    pub(super) fn close(&mut self, cell: usize) {
        self.closed.insert(cell);
        self.repetition.close(cell);
    }

    /// Whether a cell gets no further trial.
    pub(super) fn is_closed(&self, cell: usize) -> bool {
        self.closed.contains(&cell)
    }

    /// Notes that a trial is done; false when it was before.
    pub(super) fn add(&mut self, cell: usize, block: u32) -> bool {
        self.done.insert((cell, block))
    }
}
