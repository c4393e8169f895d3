//! Trials on a disk that is computed, in virtual time: no device, no privilege, nothing written.

mod disk;
#[cfg(test)]
mod tests;
mod unsupported_settings;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_diskmodel::{Completion, Model, Request};
use iolab_engine::simulation::{self, Ask};
use iolab_engine::trial;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::{Error, Result};

use super::executor::Executor;
use crate::evidence::Origin;
use iolab_plan::cells::PlannedCell;
use iolab_workload::settings::CellSpec;

pub use disk::Disk;
pub(super) use disk::VIRTUAL;
pub use unsupported_settings::adapt;

/// The budget of a built-in suite on a model, if the user names none, in virtual time: at least forty minutes. They take seconds, and a
/// hard disk needs that long for an interval in every cell of a suite made for two minutes of a real disk.
pub fn budget_on_model(suite: Duration) -> Duration {
    suite.max(Duration::from_secs(40 * 60))
}

/// The engine in virtual time.
pub(super) struct Simulated<'a> {
    disk: &'a Disk,
    running: Running,
    now_ns: u64,
    /// The seed of the disk of the next trial, if each has a new one.
    next_seed: Option<u64>,
}

impl<'a> Simulated<'a> {
    /// A new disk without written data; with `afresh`, another one for each trial.
    ///
    /// # Errors
    /// Of kind usage: a definition that makes no model.
    pub(super) fn new(disk: &'a Disk, seed: u64, afresh: bool) -> Result<Self> {
        Ok(Self {
            disk,
            running: Running::new(disk, seed)?,
            now_ns: 0,
            next_seed: afresh.then(|| seed.wrapping_add(1)),
        })
    }

    fn trial(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        let (disk, now) = (&mut self.running, self.now_ns);
        let (outcome, end) = match cell.has_groups() {
            true => simulation::run_groups(&cell.group_trials(), disk, now, stop)?,
            false => simulation::run(&cell.trial, disk, now, stop)?,
        };
        self.now_ns = end;
        match outcome.ended {
            Ended::Interrupted => Err(Error::interrupted()),
            _ => Ok(outcome),
        }
    }

    /// Makes durable what earlier trials have written, as the engine does before a trial that writes, and after one that leaves writes in a
    /// cache.
    fn flush(&mut self) {
        let flushed =
            iolab_diskmodel::serve(&mut *self.running.model, self.now_ns, &Request::flush());
        self.now_ns = flushed.finished;
    }
}

impl Executor for Simulated<'_> {
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        if let Some(seed) = self.next_seed {
            self.running = Running::new(self.disk, seed)?;
            self.next_seed = Some(seed.wrapping_add(1));
        }
        if cell.trial.writes() {
            self.flush();
        }
        let mut outcome = self.trial(cell, stop)?;
        if leaves_writes(cell, &outcome) {
            let began = self.now_ns;
            self.flush();
            outcome.region.owed_sync_ns = Some(self.now_ns - began);
        }
        Ok(outcome)
    }

    fn purge(
        &mut self,
        _cell: &CellSpec,
        _stop: &AtomicBool,
        _begins: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<std::result::Result<(u64, Duration), String>> {
        Ok(Err("is new".to_owned()))
    }

    fn gap(&self, _cell: &CellSpec) -> Option<String> {
        None
    }

    fn pause(&mut self, time: Duration, _stop: &AtomicBool) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns = self.now_ns.saturating_add(ns);
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        self.disk.fit(cell)
    }

    fn alignment(&self) -> u64 {
        self.disk.block()
    }

    fn origin(&self, _cell: &CellSpec) -> Origin {
        Origin::Model
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }
}

/// Whether a trial has left writes in a cache that no sync of its own has made durable.
fn leaves_writes(cell: &CellSpec, outcome: &Outcome) -> bool {
    match cell.has_groups() {
        true => {
            let groups = cell.group_trials();
            let mut own = groups.iter().zip(&outcome.groups);
            own.any(|(group, own)| trial::owes_sync(&group.trial, &own.outcome))
        }
        false => trial::owes_sync(&cell.trial, outcome),
    }
}

/// A model as the engine asks it.
pub(super) struct Running {
    model: Box<dyn Model>,
    completions: Vec<Completion>,
}

impl Running {
    pub(super) fn new(disk: &Disk, seed: u64) -> Result<Self> {
        Ok(Self {
            model: disk.build(seed)?,
            completions: Vec::new(),
        })
    }
}

impl simulation::Disk for Running {
    fn submit(&mut self, now_ns: u64, tag: u64, ask: Ask) {
        let request = match ask {
            Ask::Read { offset, bytes } => Request::read(offset, bytes),
            Ask::Write { offset, bytes } => Request::write(offset, bytes),
            Ask::Flush => Request::flush(),
        };
        self.model.submit(now_ns, tag, &request);
    }

    fn next_event(&self) -> Option<u64> {
        self.model.next_event()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<u64>) {
        self.model.advance(until_ns, &mut self.completions);
        done.extend(self.completions.drain(..).map(|completion| completion.tag));
    }
}
