//! Submission of requests if a cell leaves it open (`batch = auto`).

use std::sync::atomic::{AtomicBool, Ordering};

use iolab_plan::batch_probes;
use iolab_plan::blocks::trial_seed;
use iolab_plan::cells::PlannedCell;
use iolab_record::EventKind;
use iolab_workload::tool::Tool;
use iolab_workload::trial::{Batch, SyncPolicy, TrialSpec};
use iolab_workload::{Error, Result};

use super::super::batch_probe;
use super::super::executor::Executor;
use super::Session;

impl Session<'_> {
    /// Resolves `batch = auto` by short probes; cells whose strategy is known are left alone.
    pub(super) fn choose_batches(
        &mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        let is_probed = |cell: &PlannedCell| batch_probes::are_made(&cell.spec);
        let mut chosen = Vec::new();
        for id in self.cells(is_probed) {
            let mut spec = self.record.plan.cells()[id].spec.clone();
            // Probes have no cap, and completions of reads cost as much as completions of writes.
            if self.record.plan.experiment().design.writes.is_some() {
                spec.trial.read_percent = 100;
                spec.trial.sync = SyncPolicy::None;
            }
            spec.trial.seed = trial_seed(self.record.seed, id, u32::MAX, 0);
            let began = executor.now();
            let choice = batch_probe::choose(executor, &spec, stop)?;
            let took = executor.now().saturating_sub(began);
            self.record.probe(took);
            let Some((batch, numbers)) = choice else {
                // The first trial of the cell fails in the same way, and reports it in full.
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                continue;
            };
            chosen.push((id, batch));
            self.file.set_batch(id as i64, batch)?;
            self.keep(EventKind::Choice, Some(id), &numbers)?;
        }
        self.set_batches(&chosen);
        self.follow_batches()
    }

    /// Gives the cells of peers the strategy of iolab's cell that is like them, or else the one that fio has by itself.
    fn follow_batches(&mut self) -> Result<()> {
        let is_open = |cell: &PlannedCell| cell.spec.batch_auto && cell.spec.tool.is_peer();
        let mut chosen = Vec::new();
        for id in self.cells(is_open) {
            let cells = self.record.plan.cells();
            let cell = &cells[id].spec;
            let like = |other: &&PlannedCell| {
                let trial = TrialSpec {
                    batch: other.spec.trial.batch,
                    ..cell.trial.clone()
                };
                let on_the_same = other.spec.target == cell.target;
                other.spec.tool == Tool::IOLAB && on_the_same && other.spec.trial == trial
            };
            let batch = cells.iter().find(like);
            let batch = batch.map_or(Batch::One, |other| other.spec.trial.batch);
            chosen.push((id, batch));
            self.file.set_batch(id as i64, batch)?;
        }
        self.set_batches(&chosen);
        Ok(())
    }

    /// The numbers of such cells.
    fn cells(&self, is_such: impl Fn(&PlannedCell) -> bool) -> Vec<usize> {
        let cells = self.record.plan.cells().iter().enumerate();
        let such = cells.filter(|(_, cell)| is_such(cell));
        such.map(|(id, _)| id).collect()
    }

    /// Gives these cells their strategies.
    fn set_batches(&mut self, chosen: &[(usize, Batch)]) {
        if !chosen.is_empty() {
            self.record.plan = self.record.plan.clone().with_batches(chosen);
        }
    }
}
