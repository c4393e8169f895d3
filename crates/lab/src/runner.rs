//! Carries an experiment out: warm-up block, measured blocks, the end by precision or budget; and takes a run up
//! again where it was cut off.

mod choice;
mod execute;
mod fit;
mod repetition;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use iolab_engine::clock::Clock;
use iolab_engine::outcome::Ended as TrialEnded;
use iolab_engine::spec::{Limit, TrialSpec};
use iolab_engine::target::{Target, TargetKind};
use iolab_engine::trial::floor_ns;
use iolab_engine::{Error, Kind, Result};

pub use execute::Executor;
pub use fit::{need, wants_direct};

use crate::analysis::Response;
use crate::cells::PlannedCell;
use crate::environment;
use crate::experiment::Experiment;
use crate::plan::{block_order, trial_seed};
use crate::record::{Event, ExperimentRecord, Run, RunRecord, RunStatus, Sample};
use crate::runfile::RunFile;
use crate::units::format_duration;
use execute::Engine;
use repetition::{Ended, Repetition};
use sample::Place;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Trials done, warm-ups included.
    pub trials_done: u64,
    /// Trials that the run will have at its end, as far as can be foreseen.
    pub trials_expected: u64,
    /// Time spent.
    pub spent: Duration,
    /// Time left, as far as can be foreseen; `None` before the first trial.
    pub left: Option<Duration>,
}

/// Is told what happens during a run.
pub trait Observer {
    /// A trial is about to start: the cell in words.
    fn trial_starts(&mut self, _cell: &str) {}
    /// A trial is done.
    fn trial_done(&mut self, _progress: Progress) {}
    /// Something the user should know.
    fn note(&mut self, _message: &str) {}
}

/// What a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The run file.
    pub path: PathBuf,
    /// Trials done in this session.
    pub trials: u64,
}

/// What a run needs besides its experiment.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The target, filled.
    pub target: &'a Target,
    /// The target as the user named it.
    pub named: &'a Path,
    /// The calibrated clock.
    pub clock: &'a Clock,
    /// Raised to end the run early.
    pub stop: &'a AtomicBool,
}

/// Checks that an experiment fits a target, cell by cell, and writes nothing.
///
/// # Errors
/// Of kind usage, naming the cell and what would fit.
pub fn check(experiment: &Experiment, target: &Target) -> Result<()> {
    fit::resolve(experiment, target).map(drop)
}

/// Runs an experiment into a new run file at `path`.
///
/// # Errors
/// What does not fit the target (nothing is written then); a failed measurement; the user's interrupt. In the last
/// two cases the run file keeps everything measured so far.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    path: &Path,
    setup: Setup<'_>,
    observer: &mut dyn Observer,
) -> Result<Finished> {
    let planned = fit::resolve(experiment, setup.target)?;
    let rows: Vec<_> = planned
        .iter()
        .enumerate()
        .map(|(id, cell)| fit::record(id, cell))
        .collect();
    let environment = environment::capture(setup.target, setup.clock);
    let run = Run {
        status: RunStatus::Running,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_utc: now_utc(),
        ended_utc: None,
        target: std::path::absolute(setup.named)
            .unwrap_or_else(|_| setup.named.to_owned())
            .display()
            .to_string(),
        target_kind: kind_name(setup.target.kind()).to_owned(),
        target_bytes: setup.target.size(),
        seed,
        clock_cost_ns: setup.clock.cost_ns(),
        clock_source: setup.clock.source(),
        floor_ns: floor_ns(setup.clock),
    };
    let file = RunFile::create(
        path,
        &run,
        &environment,
        &experiment_record(experiment)?,
        &rows,
    )?;
    let mut session = Session::new(
        experiment,
        planned,
        seed,
        file,
        setup.target.is_memory(),
        observer,
    );
    for note in setup.target.notes() {
        // Whoever opened the target has told it.
        session.keep("note", None, note)?;
    }
    session.warn_about_time()?;
    let mut engine = Engine {
        target: setup.target,
        clock: setup.clock,
    };
    session.carry_out(&mut engine, setup.stop)
}

/// Takes up the run in the file at `path` and finishes its plan on the same target.
///
/// # Errors
/// As [`run`]; also a file that is no run file, and a target that differs from the run's own.
pub fn resume(path: &Path, setup: Setup<'_>, observer: &mut dyn Observer) -> Result<Finished> {
    let (file, record) = RunFile::open_resume(path)?;
    if record.run.status == RunStatus::Done {
        return Err(
            Error::usage(format!("the run in {} is complete", path.display()))
                .hint("see it with: iolab table, or start a new run"),
        );
    }
    if setup.target.size() < record.run.target_bytes {
        return Err(Error::usage(format!(
            "the target has {} bytes now and had {} when the run began",
            setup.target.size(),
            record.run.target_bytes
        ))
        .hint("make room for what it had, or start a new run"));
    }
    let experiment = Experiment::from_toml(&record.experiment.toml, &path.display().to_string())?;
    let mut planned = fit::resolve(&experiment, setup.target)?;
    restore(&mut planned, &record, path)?;
    let mut session = Session::new(
        &experiment,
        planned,
        record.run.seed,
        file,
        setup.target.is_memory(),
        observer,
    );
    session.take_over(&record);
    session.event(
        "resume",
        &format!("resumed after {} samples", record.samples.len()),
    )?;
    session.note_changes(
        &record.environment,
        &environment::capture(setup.target, setup.clock),
    )?;
    let mut engine = Engine {
        target: setup.target,
        clock: setup.clock,
    };
    session.carry_out(&mut engine, setup.stop)
}

/// Gives the cells the region and the completion strategy that the run began with.
fn restore(planned: &mut [PlannedCell], record: &RunRecord, path: &Path) -> Result<()> {
    if planned.len() != record.cells.len() {
        return Err(Error::usage(format!(
            "{} holds {} cells, but its experiment has {}",
            path.display(),
            record.cells.len(),
            planned.len()
        ))
        .hint("the file was changed; start a new run"));
    }
    for (cell, row) in planned.iter_mut().zip(&record.cells) {
        cell.spec.trial.region = row.region_bytes;
        if row.batch != "auto" {
            cell.spec.trial.batch = row.batch.parse()?;
            cell.spec.batch_auto = false;
        }
    }
    Ok(())
}

/// A run under way.
struct Session<'a> {
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
    fn new(
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
    fn take_over(&mut self, record: &RunRecord) {
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
        let value = match self.experiment.response {
            Response::Throughput => Some(sample.throughput_mb_s()),
            Response::Iops => Some(sample.iops()),
            Response::Latency => sample.latency_p50_ns().map(|ns| ns as f64),
        };
        self.repetition.measured(cell, value.unwrap_or(0.0));
    }

    /// Runs to the end, and leaves the file in the state that the end deserves.
    fn carry_out(mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<Finished> {
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
        let spec = TrialSpec {
            seed: trial_seed(self.seed, place.cell, place.block),
            ..self.cells[place.cell].spec.trial.clone()
        };
        let name = fit::describe(self.experiment, &self.cells[place.cell]);
        self.observer.trial_starts(&name);
        let (started_utc, began) = (now_utc(), Instant::now());
        let outcome = executor.run(&spec, stop)?;
        if outcome.ended == TrialEnded::Interrupted {
            return Err(Error::interrupted());
        }
        let wall = began.elapsed();
        let sample = sample::sample(&spec, place, &outcome, self.is_memory, started_utc, wall);
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
            let spec = TrialSpec {
                seed: trial_seed(self.seed, id, u32::MAX),
                ..self.cells[id].spec.trial.clone()
            };
            let began = Instant::now();
            let chosen = choice::choose(executor, &spec, stop)?;
            self.repetition.spend(began.elapsed());
            let Some((batch, numbers)) = chosen else {
                // The first trial of the cell meets the same failure, and tells it in full.
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
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
    fn event(&mut self, kind: &str, message: &str) -> Result<()> {
        self.observer.note(message);
        self.keep(kind, None, message)
    }

    fn keep(&mut self, kind: &str, cell: Option<usize>, message: &str) -> Result<()> {
        self.file.add_event(&Event {
            at_utc: now_utc(),
            kind: kind.to_owned(),
            cell: cell.map(|id| id as i64),
            message: message.to_owned(),
        })
    }

    /// Says so when the budget cannot pay for the fewest trials, from the trials' own time bounds.
    fn warn_about_time(&mut self) -> Result<()> {
        let bound = |Limit { time, .. }: &Limit| time.unwrap_or_default();
        let block: Duration = self
            .cells
            .iter()
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
    fn note_changes(
        &mut self,
        before: &[(String, String)],
        now: &[(String, String)],
    ) -> Result<()> {
        // These change by themselves.
        let passing = ["uptime_s", "memory_available_bytes", "clock_cost_ns"];
        for (key, value) in now
            .iter()
            .filter(|(key, _)| !passing.contains(&key.as_str()))
        {
            let earlier = before
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value);
            if let Some(earlier) = earlier.filter(|earlier| *earlier != value) {
                let message =
                    format!("{key} was {earlier} and is {value} since the run was resumed");
                self.event("warning", &message)?;
            }
        }
        Ok(())
    }
}

fn experiment_record(experiment: &Experiment) -> Result<ExperimentRecord> {
    Ok(ExperimentRecord {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        response: experiment.response_name().to_owned(),
        toml: experiment.to_toml()?,
        factors: fit::factor_names(experiment),
        precision: experiment.design.precision,
        budget_ns: experiment.design.budget.as_nanos() as u64,
        trials_min: experiment.design.trials_min,
        trials_max: experiment.design.trials_max,
    })
}

fn kind_name(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Scratch => "scratch",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block-device",
        TargetKind::CharDevice => "char-device",
    }
}

fn now_utc() -> String {
    jiff::Timestamp::now().to_string()
}
