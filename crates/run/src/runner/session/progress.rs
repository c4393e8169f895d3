//! How far the blocks of a run are, and what is left of them.

use std::time::Duration;

use super::super::Progress;
use super::super::repetition::UnderWay;
use super::Session;
use iolab_record::ClockDomain;

impl Session<'_> {
    /// After a trial.
    pub(super) fn progress(&mut self) -> Progress {
        let (phase, design) = (&self.phase, &self.plan.experiment().design);
        let block = phase.block();
        let is_warmup = block == phase.first_block;
        let mut now = UnderWay {
            rest: Duration::ZERO,
            is_measured: !is_warmup,
            block: Duration::ZERO,
        };
        let (mut in_block, mut per_block) = (0u64, 0u64);
        for cell in 0..self.plan.cells().len() {
            let to_come = phase.to_come(cell, block);
            let next = match phase.is_closed(cell) {
                true => 0,
                false => phase.visits(cell, phase.next_block()),
            };
            let cost = self.costs.of(cell);
            now.rest += cost * to_come;
            now.block += cost * next;
            in_block += u64::from(to_come);
            per_block += u64::from(next);
        }
        let further = phase.repetition.blocks_after(&now);
        let done = phase.trials() as u64;
        let mut left = in_block + per_block * u64::from(further);
        let mut time = now.rest + (now.block + design.settle).saturating_mul(further);
        let spent = phase.repetition.spent();
        if design.refine > 0 && self.plan.experiment().refined.is_none() {
            // Finer sizes take about as long again.
            left = done + 2 * left;
            time = spent + time.saturating_mul(2);
        }
        let trials_done = self.trials_before + done;
        // Virtual time does not show how long the user has to wait, and a part of the first block little.
        let known = self.clock == ClockDomain::Real && !(is_warmup && in_block > 0);
        let left_is_bound = phase.repetition.is_bound_only();
        Progress {
            trials_done,
            share: self.advance.trial(trials_done, left),
            spent,
            left: known.then(|| self.advance.time(time)),
            left_is_bound,
        }
    }

    /// How far a search is: it ends by its budget at the latest.
    pub(super) fn progress_of_search(&self) -> Progress {
        let spent = self.phase.repetition.spent();
        let budget = self.plan.experiment().design.budget;
        let share = spent.as_secs_f64() / budget.as_secs_f64().max(1e-9);
        Progress {
            trials_done: self.phase.trials() as u64,
            share: share.min(1.0),
            spent,
            // Virtual time does not show how long the user has to wait.
            left: (self.clock == ClockDomain::Real)
                .then(|| budget.saturating_sub(spent))
                .filter(|left| *left > Duration::ZERO),
            left_is_bound: true,
        }
    }
}
