//! How the trials of a run follow each other.

use iolab_plan::experiment::Experiment;

/// The order in which the trials of a run follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOrder {
    /// Blocks of one trial of each cell, in random order, the first block as a warm-up.
    BlocksAfterWarmUp,
    /// Blocks of one trial of each cell, in random order, without a warm-up.
    Blocks,
    /// Rounds of one trial of each cell, in the order of the definition, until the last of them are steady.
    Rounds,
    /// One trial of each cell, from its first request on.
    OnlyTrials,
}

impl TrialOrder {
    /// Order of the trials of an experiment.
    pub(super) fn of(experiment: &Experiment) -> Self {
        let design = &experiment.design;
        if design.precondition.rounds_of_cells().is_some() {
            Self::Rounds
        } else if !design.seeks_precision() {
            Self::OnlyTrials
        } else if design.warm_ups() > 0 {
            Self::BlocksAfterWarmUp
        } else {
            Self::Blocks
        }
    }
}
