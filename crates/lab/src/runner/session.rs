//! A run under way: blocks of trials until the repetition ends, each trial stored as soon as it is made.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iolab_engine::outcome::Ended as TrialEnded;
use iolab_engine::spec::Limit;
use iolab_engine::{Error, Kind, Result};

use super::execute::Executor;
use super::repetition::{Ended, Repetition};
use super::sample::{self, Place};
use super::{Finished, Observer, Progress, choice, fit, now_utc};
use crate::cells::PlannedCell;
use crate::environment::differences;
use crate::experiment::Experiment;
use crate::plan::{block_order, trial_seed};
use crate::record::{Event, RunRecord, RunStatus, Sample};
use crate::runfile::RunFile;
use crate::units::format_duration;

/// A run under way.
pub(super) struct Session<'a> {
    experiment: &'a Experiment,
    cells: Vec<PlannedCell>,
    seed: u64,
    file: RunFile,
    is_memory: bool,
    observer: &'a mut dyn Observer,
    repetition: Repetition,
    done: HashSet<(usize, u32)>,
    trials: u64,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        cells: Vec<PlannedCell>,
        seed: u64,
        file: RunFile,
        is_memory: bool,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let repetition = Repetition::new(experiment.design, cells.len());
        Self {
            experiment,
            cells,
            seed,
            file,
            is_memory,
            observer,
            repetition,
            done: HashSet::new(),
            trials: 0,
        }
    }

    /// Counts what an earlier session measured.
    pub(super) fn take_over(&mut self, record: &RunRecord) {
        let cells = self.cells.len();
        for sample in &record.samples {
            self.repetition.spend(Duration::from_nanos(sample.wall_ns));
            let Some(cell) = usize::try_from(sample.cell)
                .ok()
                .filter(|cell| *cell < cells)
            else {
                continue;
            };
            if sample.ok && self.done.insert((cell, sample.block)) && !sample.warmup {
                self.measured(cell, sample);
            }
        }
    }

    fn measured(&mut self, cell: usize, sample: &Sample) {
        let value = self.experiment.response.value(sample);
        self.repetition.measured(cell, value.unwrap_or(0.0));
    }

    /// Runs to the end, and leaves the file in the state that the end deserves.
    pub(super) fn carry_out(
        mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<Finished> {
        let result = self
            .choose_strategies(executor, stop)
            .and_then(|()| self.blocks(executor, stop));
        let status = match &result {
            Ok(_) => RunStatus::Done,
            Err(error) if error.kind() == Kind::Interrupted => RunStatus::Interrupted,
            Err(_) => RunStatus::Failed,
        };
        if let Ok(ended) = result {
            for cell in 0..self.cells.len() {
                let ended_by = self.repetition.ended_by(cell, ended);
                self.file.set_ended_by(cell as i64, ended_by)?;
            }
        }
        if let (Err(error), RunStatus::Failed) = (&result, status) {
            self.keep("error", None, &error.to_string())?;
        }
        let path = self.file.path().to_owned();
        let trials = self.trials;
        self.file.finish(status, &now_utc())?;
        result
            .map(|_| Finished {
                path: path.clone(),
                trials,
            })
            .map_err(|error| match status {
                RunStatus::Interrupted => {
                    error.hint(format!("finish it with: iolab resume {}", path.display()))
                }
                _ => error,
            })
    }

    fn blocks(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<Ended> {
        // A run without a single measured block would say nothing: one is granted to every session.
        let mut granted = true;
        for block in 0.. {
            let order = block_order(self.seed, block, self.cells.len());
            let open = order
                .iter()
                .any(|cell| !self.done.contains(&(*cell, block)));
            if open && block > 0 {
                if let Some(ended) = self.repetition.ends()
                    && !(granted && ended == Ended::Budget && self.repetition.has_open_cells())
                {
                    return Ok(ended);
                }
                granted = false;
            }
            let began = Instant::now();
            for (position, cell) in order.into_iter().enumerate() {
                if self.done.contains(&(cell, block)) {
                    continue;
                }
                self.trial(
                    Place {
                        cell,
                        block,
                        position: position as u32,
                    },
                    executor,
                    stop,
                )?;
            }
            if open {
                self.repetition.block_took(began.elapsed());
            }
        }
        unreachable!("the blocks end by the number of trials at the latest")
    }

    fn trial(
        &mut self,
        place: Place,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut spec = self.cells[place.cell].spec.clone();
        spec.trial.seed = trial_seed(self.seed, place.cell, place.block);
        let name = fit::describe(self.experiment, &self.cells[place.cell]);
        self.observer.trial_starts(&name);
        let (started_utc, began) = (now_utc(), Instant::now());
        let outcome = executor.run(&spec, stop)?;
        if outcome.ended == TrialEnded::Interrupted {
            return Err(Error::interrupted());
        }
        let wall = began.elapsed();
        let sample = sample::sample(
            &spec.trial,
            place,
            &outcome,
            self.is_memory,
            started_utc,
            wall,
        );
        self.file
            .add_sample(&sample, &outcome.reads.latency, &outcome.writes.latency)?;
        self.repetition.spend(wall);
        self.trials += 1;
        if let Some(failure) = &outcome.failure {
            return Err(Error::failed(sample::describe(failure))
                .within(name)
                .hint(sample::remedy(failure)));
        }
        self.done.insert((place.cell, place.block));
        if !sample.warmup {
            self.measured(place.cell, &sample);
        }
        let progress = self.progress();
        self.observer.trial_done(progress);
        Ok(())
    }

    fn progress(&self) -> Progress {
        let cells = self.cells.len() as u64;
        let done = self.done.len() as u64;
        let in_block = (cells - done % cells) % cells;
        let per_trial = self
            .repetition
            .spent()
            .checked_div(done.max(1) as u32)
            .unwrap_or_default();
        let block = self.repetition.block_estimate(per_trial);
        let blocks = u64::from(self.repetition.blocks_left(block));
        // In the warm-up block every measured block is still to come; later the one under way is counted.
        let under_way = u64::from(in_block > 0 && done > cells);
        let left = in_block + cells * blocks.saturating_sub(under_way);
        Progress {
            trials_done: done,
            trials_expected: done + left,
            spent: self.repetition.spent(),
            left: Some(per_trial.saturating_mul(left as u32)),
        }
    }

    /// Resolves `batch = auto` by short probes; cells whose strategy is known are left alone.
    fn choose_strategies(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<()> {
        for id in 0..self.cells.len() {
            if !self.cells[id].spec.batch_auto {
                continue;
            }
            let mut spec = self.cells[id].spec.clone();
            spec.trial.seed = trial_seed(self.seed, id, u32::MAX);
            let began = Instant::now();
            let chosen = choice::choose(executor, &spec, stop)?;
            self.repetition.spend(began.elapsed());
            let Some((batch, numbers)) = chosen else {
                // The first trial of the cell meets the same failure, and tells it in full.
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                continue;
            };
            self.cells[id].spec.trial.batch = batch;
            self.cells[id].spec.batch_auto = false;
            self.file.set_batch(id as i64, &batch.to_string())?;
            self.keep("choice", Some(id), &numbers)?;
        }
        Ok(())
    }

    /// Tells the user, and keeps it in the file.
    pub(super) fn event(&mut self, kind: &str, message: &str) -> Result<()> {
        self.observer.note(message);
        self.keep(kind, None, message)
    }

    pub(super) fn keep(&mut self, kind: &str, cell: Option<usize>, message: &str) -> Result<()> {
        self.file.add_event(&Event {
            at_utc: now_utc(),
            kind: kind.to_owned(),
            cell: cell.map(|id| id as i64),
            message: message.to_owned(),
        })
    }

    /// Says so when the budget cannot pay for the fewest trials, from the trials' own time bounds.
    pub(super) fn warn_about_time(&mut self) -> Result<()> {
        let bound = |Limit { time, .. }: &Limit| time.unwrap_or_default();
        // The time of a program is a limit for emergencies, and tells nothing of how long it takes.
        let block: Duration = self
            .cells
            .iter()
            .filter(|cell| !cell.spec.runs_program())
            .map(|cell| bound(&cell.spec.trial.limit))
            .sum();
        let design = &self.experiment.design;
        let fewest = block.saturating_mul(design.trials_min + 1);
        // Trials may end by their byte bound long before; only a gross misfit is worth a warning.
        if fewest <= design.budget.saturating_mul(2) {
            return Ok(());
        }
        self.event(
            "warning",
            &format!(
                "{} cells with {} measured trials each may take {}, the budget is {}: cells may end with fewer; raise --budget or lower --time",
                self.cells.len(),
                design.trials_min,
                format_duration(Duration::from_secs(fewest.as_secs().max(1))),
                format_duration(design.budget)
            ),
        )
    }

    /// Notes what differs between the machine of the earlier session and this one.
    pub(super) fn note_changes(
        &mut self,
        before: &[(String, String)],
        now: &[(String, String)],
    ) -> Result<()> {
        for (key, earlier, value) in differences(before, now) {
            if let (Some(earlier), Some(value)) = (earlier, value) {
                let message =
                    format!("{key} was {earlier} and is {value} since the run was resumed");
                self.event("warning", &message)?;
            }
        }
        Ok(())
    }
}
