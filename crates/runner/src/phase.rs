//! Blocks over all cells until their repetition ends: first over the grid; then, where finer sizes are asked for, over
//! the grid and these together, with a warm-up of their own.

use std::collections::HashSet;
use std::time::Duration;

use super::pilot;
use super::stopping_rule::Repetition;
use iolab_plan::experiment::Experiment;
use iolab_record::Pilot;

/// The state of one such series of blocks: which trials are done, and which cells get no more.
pub(super) struct Phase {
    /// Its first block, the warm-up.
    pub(super) first_block: u32,
    /// Its trials: cell, block and visit.
    done: HashSet<(usize, u32, u32)>,
    /// The last block that has a trial: looked up for every cell after every trial.
    last_block: Option<u32>,
    /// Cells that get no further trial.
    closed: HashSet<usize>,
    /// The repetition of its cells.
    pub(super) repetition: Repetition,
    /// Whether it has a pilot.
    has_pilot: bool,
    /// What the pilot has chosen for each cell; empty until then.
    chosen: Vec<Pilot>,
    /// Most measured trials of a cell.
    trials_max: u32,
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
            last_block: None,
            closed: HashSet::new(),
            repetition: Repetition::new(experiment.design, cells),
            has_pilot: experiment.design.pilot == Some(true),
            chosen: Vec::new(),
            trials_max: experiment.design.trials_max,
        }
    }

    /// The last block of the pilot.
    fn pilot_end(&self) -> u32 {
        self.first_block + pilot::BLOCKS
    }

    /// Whether a block is one of the pilot's.
    pub(super) fn is_pilot(&self, block: u32) -> bool {
        self.has_pilot && (self.first_block + 1..=self.pilot_end()).contains(&block)
    }

    /// Whether the pilot is over and has not chosen yet.
    pub(super) fn awaits_choice(&self, block: u32) -> bool {
        self.has_pilot && self.chosen.is_empty() && block > self.pilot_end()
    }

    /// Takes over what the pilot has chosen, for each cell.
    pub(super) fn choose(&mut self, chosen: Vec<Pilot>) {
        self.chosen = chosen;
    }

    /// Whether any trial lies behind the pilot.
    pub(super) fn is_beyond_pilot(&self) -> bool {
        self.has_pilot && self.next_block() > self.pilot_end() + 1
    }

    /// Visits of a block to a cell. A cell never gets more trials than are allowed, and none after those.
    pub(super) fn visits(&self, cell: usize, block: u32) -> u32 {
        match self.chosen.get(cell) {
            Some(chosen) if block > self.pilot_end() => {
                let blocks = block - self.pilot_end() - 1;
                let before = pilot::BLOCKS.saturating_add(blocks.saturating_mul(chosen.visits));
                chosen.visits.min(self.trials_max.saturating_sub(before))
            }
            _ => 1,
        }
    }

    /// The time that ends a trial of a cell, where the pilot has shortened it.
    pub(super) fn time(&self, cell: usize, block: u32) -> Option<Duration> {
        let chosen = self.chosen.get(cell).filter(|_| block > self.pilot_end());
        chosen?.time_ns.map(Duration::from_nanos)
    }

    /// Trials done.
    pub(super) fn trials(&self) -> usize {
        self.done.len()
    }

    /// The block after the last one that has a trial.
    pub(super) fn next_block(&self) -> u32 {
        self.last_block.map_or(self.first_block, |block| block + 1)
    }

    /// The block that is being measured: the last one that has any trial.
    pub(super) fn block(&self) -> u32 {
        self.next_block().saturating_sub(1).max(self.first_block)
    }

    /// Trials of a cell that are still to come in a block.
    pub(super) fn to_come(&self, cell: usize, block: u32) -> u32 {
        let visits = 0..self.visits(cell, block);
        visits
            .filter(|visit| !self.has(cell, block, *visit))
            .count() as u32
    }

    /// Whether a trial is done, or will never be.
    pub(super) fn has(&self, cell: usize, block: u32, visit: u32) -> bool {
        self.is_closed(cell) || self.done.contains(&(cell, block, visit))
    }

    /// Whether a cell has any trial.
    pub(super) fn has_any(&self, cell: usize) -> bool {
        self.done.iter().any(|(with, ..)| *with == cell)
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
    pub(super) fn add(&mut self, cell: usize, block: u32, visit: u32) -> bool {
        self.last_block = self.last_block.max(Some(block));
        self.done.insert((cell, block, visit))
    }
}
