//! Cells that are measured together, block by block, until their repetition ends: first the grid, then, where finer
//! sizes are asked for, those with their neighbours.

use std::collections::HashSet;

use super::repetition::Repetition;
use crate::cells::PlannedCell;
use crate::experiment::{Design, Experiment};
use crate::plan::block_order;

/// See the module.
pub(super) struct Phase {
    /// Numbers of its cells, ascending.
    members: Vec<usize>,
    /// Its first block.
    pub(super) first_block: u32,
    /// Cells from this number on are measured for the first time, and have their warm-up here.
    pub(super) fresh_from: usize,
    /// Its trials: cell and block.
    done: HashSet<(usize, u32)>,
    /// The repetition of its cells.
    pub(super) repetition: Repetition,
}

impl Phase {
    /// The phase that an experiment is in: the grid, unless finer sizes have been added to it.
    pub(super) fn of(experiment: &Experiment, cells: &[PlannedCell]) -> Self {
        let Some(refined) = &experiment.refined else {
            return Self::new(experiment.design, (0..cells.len()).collect(), 0, 0);
        };
        let anchors = experiment.anchors();
        let members: Vec<usize> = (0..cells.len())
            .filter(|id| cells[*id].refined || anchors.contains(&cells[*id].spec.trial.bs))
            .collect();
        let fresh = cells.iter().position(|cell| cell.refined);
        Self::new(
            experiment.design,
            members,
            refined.block,
            fresh.unwrap_or(cells.len()),
        )
    }

    fn new(design: Design, members: Vec<usize>, first_block: u32, fresh_from: usize) -> Self {
        Self {
            repetition: Repetition::new(design, members.len()),
            members,
            first_block,
            fresh_from,
            done: HashSet::new(),
        }
    }

    /// The cells that are measured here for the first time.
    pub(super) fn fresh(&self) -> impl Iterator<Item = (usize, usize)> {
        let members = self.members.iter().copied().enumerate();
        members.filter(|(_, cell)| *cell >= self.fresh_from)
    }

    /// Number of its cells.
    pub(super) fn len(&self) -> usize {
        self.members.len()
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

    /// The cells of a block in the order of their trials.
    pub(super) fn order(&self, seed: u64, block: u32) -> Vec<usize> {
        block_order(seed, block, self.members.len())
            .into_iter()
            .map(|place| self.members[place])
            .collect()
    }

    /// Whether a trial belongs to this phase.
    pub(super) fn owns(&self, cell: usize, block: u32) -> bool {
        block >= self.first_block && self.members.binary_search(&cell).is_ok()
    }

    /// Whether a trial is its cell's first, which is left out of summaries.
    pub(super) fn is_warmup(&self, cell: usize, block: u32) -> bool {
        block == self.first_block && cell >= self.fresh_from
    }

    /// Whether a trial is done.
    pub(super) fn has(&self, cell: usize, block: u32) -> bool {
        self.done.contains(&(cell, block))
    }

    /// Notes that a trial is done; false when it was before.
    pub(super) fn add(&mut self, cell: usize, block: u32) -> bool {
        self.done.insert((cell, block))
    }

    /// Adds the response of a measured trial.
    pub(super) fn measured(&mut self, cell: usize, value: f64) {
        if let Ok(place) = self.members.binary_search(&cell) {
            self.repetition.measured(place, value);
        }
    }
}
