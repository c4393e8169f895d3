//! How requests are handed in where a cell leaves that open (`batch = auto`).

use std::sync::atomic::{AtomicBool, Ordering};

use iolab_plan::blocks::trial_seed;
use iolab_plan::cells::PlannedCell;
use iolab_record::EventKind;
use iolab_spec::tool::Tool;
use iolab_spec::trial::{Batch, TrialSpec};
use iolab_spec::{Error, Result};

use super::super::choice;
use super::super::execute::Executor;
use super::Session;

impl Session<'_> {
    /// Resolves `batch = auto` by short probes; cells whose strategy is known are left alone.
    pub(super) fn choose_batches(
        &mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        for id in 0..self.record.plan.cells().len() {
            if !self.record.plan.cells()[id].spec.batch_auto
                || self.record.plan.cells()[id].spec.tool.is_peer()
            {
                continue;
            }
            let mut spec = self.record.plan.cells()[id].spec.clone();
            spec.trial.seed = trial_seed(self.record.seed, id, u32::MAX, 0);
            let began = executor.now();
            let chosen = choice::choose(executor, &spec, stop)?;
            let took = executor.now().saturating_sub(began);
            self.record.probe(took);
            let Some((batch, numbers)) = chosen else {
                // The first trial of the cell meets the same failure, and tells it in full.
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                continue;
            };
            self.record.plan = self.record.plan.clone().with_batch(id, batch);
            self.file.set_batch(id as i64, batch)?;
            self.keep(EventKind::Choice, Some(id), &numbers)?;
        }
        self.follow_batches()
    }

    /// Gives the cells of peers the strategy of iolab's cell that is like them, or else the one that fio has by itself.
    fn follow_batches(&mut self) -> Result<()> {
        for id in 0..self.record.plan.cells().len() {
            let cell = &self.record.plan.cells()[id].spec;
            if !cell.batch_auto || !cell.tool.is_peer() {
                continue;
            }
            let like = |other: &&PlannedCell| {
                let trial = TrialSpec {
                    batch: other.spec.trial.batch,
                    ..cell.trial.clone()
                };
                let on_the_same = other.spec.target == cell.target;
                other.spec.tool == Tool::IOLAB && on_the_same && other.spec.trial == trial
            };
            let batch = self.record.plan.cells().iter().find(like);
            let batch = batch.map_or(Batch::One, |other| other.spec.trial.batch);
            self.record.plan = self.record.plan.clone().with_batch(id, batch);
            self.file.set_batch(id as i64, batch)?;
        }
        Ok(())
    }
}
