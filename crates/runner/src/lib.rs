//! iolab-runner: carries a plan out: warm-up block, measured blocks, the end by precision or budget. It resumes an
//! interrupted run, and imports results of other tools.
//!
//! Files to begin with: `campaign.rs` the way from targets and experiments to runs, `session.rs` a run in progress,
//! `strategy.rs` its next step, `stopping_rule.rs` the stopping rule.
//! `executor.rs` is the trait in front of the engine, `ranks.rs` what a run needs of several processes, `program_executor.rs` what it
//! needs of programs. `system_under_test.rs` is the measured system (target, programs or model), `virtual_target.rs` the trait of
//! models. `evidence.rs` turns counters into `served_by`, `peers.rs` starts other tools.

pub mod campaign;
pub mod environment;
pub mod evidence;
mod executor;
mod fit;
mod hung_storage;
mod import;
pub mod launch;
pub mod peers;
pub mod preflight;
mod prepared_run;
mod program_executor;
pub mod ranks;
mod record;
mod sample;
mod session;
mod stopping_rule;
mod strategy;
mod system_under_test;
mod targets;
#[cfg(test)]
mod tests;
pub mod timeouts;
mod virtual_target;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use iolab_engine::request_tracer::Tracing;
use iolab_host::clock::Clock;
use iolab_host::system_control::SystemControl;
use iolab_workload::{Error, Result, usage_errors};

pub use executor::{DriveObserver, Executor, NewObserver};
pub use fit::{adapt_to_system, cut_region, fit_all, fit_groups};
pub use hung_storage::{EndProcess, Watch};
pub use import::transferred;
pub use prepared_run::{OwnTrials, PreparedRun, run_list, run_virtual_list};
pub use program_executor::{OpenedPrograms, ProgramExecutor, Programs, RunPrograms};
pub use sample::describe_failure;
pub use system_under_test::SystemUnderTest;
pub use targets::{Targets, full, join_targets, need, needs, number_of, settle_targets};
pub use virtual_target::{
    GivenTargets, OpenedVirtual, Scheme, SchemeList, VirtualTarget, open_virtual,
};

use crate::peers::{PeerList, Peers};
use crate::ranks::Ranks;
pub use iolab_analysis::snapshot::{RepetitionGoal, RunSnapshot, WithinGoal};
use iolab_plan::cells::{FittedPlan, PlannedCell, factor_names};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{Asked, EventKind, ExperimentRecord, Question, RunRecord, RunStatus};
use iolab_runfile::RunFile;
use iolab_workload::names::TargetName;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, Tool};
use preflight::{Preflight, Remark, remarks_of_targets};
use session::Session;
use system_under_test::{TargetNow, check_same_targets};

/// Progress of a run; by default of one that has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Trials done, warm-ups included, in all sessions.
    pub trials_done: u64,
    /// Time spent, by the clock that budgets count.
    pub spent: Duration,
    /// Time left by the same clock.
    pub left: Duration,
    /// The basis of this estimate.
    pub basis: Basis,
}

/// The basis of the time left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// The budget, or the time of the first two blocks if that is longer: no block shows yet how long trials take.
    #[default]
    Budget,
    /// The trials so far; the run may end earlier, because too few show yet how many the precision goal takes. From here on
    /// the time left never grows.
    AtMost,
    /// The trials so far.
    Trials,
}

/// A run that begins or continues.
#[derive(Debug, Clone, Copy)]
pub struct RunStart<'a> {
    /// The run file.
    pub file: &'a Path,
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Factors of the experiment, in the order of the levels of a cell.
    pub factors: &'a [String],
    /// The measured quantity.
    pub response: Response,
    /// Cells.
    pub cells: usize,
    /// Whether the run adds cells.
    pub adds_cells: bool,
    /// Progress of the run.
    pub progress: Progress,
    /// Whether its trials leave writes in caches, which are written out between them: no bound counts that time.
    pub leaves_writes: bool,
}

/// A trial that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct TrialDone<'a> {
    /// The factor levels of its cell.
    pub levels: &'a [String],
    /// 0-based number of its block.
    pub block: u32,
    /// Whether it is excluded from every summary.
    pub warmup: bool,
    /// The measured quantity, in the unit of [`Response`]; `None` with too few requests for it.
    pub value: Option<f64>,
    /// The progress of the run after it.
    pub progress: Progress,
}

/// A run that has ended.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd {
    /// Final status of the run.
    pub status: RunStatus,
    /// Trials done, warm-ups included, in all sessions.
    pub trials_done: u64,
    /// Trials that count.
    pub measured: u64,
    /// Cells.
    pub cells: usize,
    /// The precision goal and how many of the cells have reached it; `None` if the run has no such goal.
    pub within: Option<WithinGoal>,
}

/// Receives what happens during a run. It is called between trials, and the next one waits until it returns.
pub trait Observer {
    /// The run begins or continues.
    fn run_starts(&mut self, _start: &RunStart<'_>) {}
    /// The run continues in another file.
    fn run_file(&mut self, _path: &Path) {}
    /// A step other than a trial is about to start: its name in words.
    fn step_starts(&mut self, _step: &str) {}
    /// A trial is about to start; the state so far is put together on request.
    fn trial_starts(&mut self, _snapshot: &dyn Fn() -> RunSnapshot) {}
    /// A trial has succeeded.
    fn trial_done(&mut self, _trial: &TrialDone<'_>) {}
    /// The run has ended.
    fn run_ends(&mut self, _end: &RunEnd) {}
    /// Something the user should know.
    fn note(&mut self, _message: &str) {}
}

/// The flags with which a user ends a measurement.
#[derive(Debug, Clone, Default)]
pub struct StopFlags {
    /// Set to end after the trial in flight; anything else ends at once.
    pub after_trial: Arc<AtomicBool>,
    /// Set to end at once.
    pub now: Arc<AtomicBool>,
    /// Whether trials are being made.
    pub makes_trials: Arc<AtomicBool>,
    /// Held by everything that has to be closed or removed before the process may end.
    pub measuring: Arc<Measuring>,
}

/// The measuring part of a session. Until the last holder drops it, a signal only sets flags. From then on no file is open
/// or left over, and a signal that would end the process does so: an analysis can take long.
#[derive(Debug, Default)]
pub struct Measuring {
    /// Whether it is over.
    pub is_over: Arc<AtomicBool>,
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl StopFlags {
    /// One flag that ends all at once.
    pub fn at_once(flag: Arc<AtomicBool>) -> Self {
        Self {
            after_trial: Arc::clone(&flag),
            now: flag,
            ..Self::default()
        }
    }
}

/// Result of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The run file.
    pub path: PathBuf,
    /// Trials done in this session.
    pub trials: u64,
    /// Time of the trials, taken from the budget.
    pub spent: Duration,
}

/// Everything that a run needs besides its experiment.
pub struct Setup {
    /// The system to measure, filled.
    pub place: SystemUnderTest,
    /// The calibrated clock.
    pub clock: Clock,
    /// The flags with which the user ends the run early.
    pub stop: StopFlags,
    /// Examinations of each target and of the machine right before; empty without one.
    pub preflight: Vec<Vec<Box<dyn Preflight>>>,
    /// Facts known before the run, in the form of the environment (further targets as their facts). They are the names that
    /// the user gave, and ceilings that were stated or measured ([`iolab_record::environment::Peaks::environment`]).
    pub known: Environment,
    /// The other processes of the run; `None` if this one is alone.
    pub ranks: Option<Rc<dyn Ranks>>,
    /// The right to change settings of the kernel; `None` if no cell asks for it.
    pub system: Option<SystemControl>,
    /// The peers of the program.
    pub peers: PeerList,
    /// Observers of the drives.
    pub observers: &'static [NewObserver],
    /// The tracer of requests; `None` in a program without one.
    pub tracing: Tracing,
    /// Ends the process if its storage does not answer.
    pub end: EndProcess,
}

impl Setup {
    /// Remarks on target and machine for readers of the results.
    fn remarks(&self, cells: &[PlannedCell]) -> Vec<Remark> {
        let names: Vec<&Path> = self.place.names().collect();
        let of_target = |(number, looks): (usize, &Vec<Box<dyn Preflight>>)| {
            let is_it = |name: Option<&TargetName>| {
                number_of(names.iter().copied(), name).is_ok_and(|own| own == number)
            };
            let is_own = |spec: &&CellSpec| spec.targets().into_iter().any(is_it);
            let specs = cells.iter().map(|cell| &cell.spec).filter(is_own);
            let specs: Vec<&CellSpec> = specs.collect();
            let remarks = looks.iter().flat_map(|look| look.remarks(&specs));
            let name = names.get(number).map(|name| name.display().to_string());
            (name.unwrap_or_default(), remarks.collect())
        };
        remarks_of_targets(self.preflight.iter().enumerate().map(of_target).collect())
    }

    /// The environment of the run.
    fn environment(&self, peers: &Peers) -> Environment {
        let mut environment = self.place.environment(&self.clock);
        environment.extend(peers.environment());
        environment.extend(self.known.clone());
        if let Some(ranks) = &self.ranks {
            let hosts = ranks.rows().into_iter().map(|rank| rank.host + 1).max();
            environment.put(&KEYS.ranks, ranks.count() as u64);
            environment.put(&KEYS.rank_hosts, hosts.map(u64::from));
        }
        environment
    }

    /// The tools that the cells name besides iolab.
    fn find_peers(&self, cells: &[PlannedCell], budget: Duration) -> Result<Peers> {
        let tools: Vec<Tool> = cells.iter().map(|cell| cell.spec.tool).collect();
        Peers::find(
            self.peers, &tools, budget, &self.clock, &self.stop.after_trial,
        )
    }
}

/// Resumes the run in the file at `path` and finishes its plan, the plan of its definition fitted to the same target.
///
/// # Errors
/// As [`PreparedRun::carry_out`]; also for a file that is not a run file, and for a target that differs from the recorded one.
pub fn resume(
    path: &Path,
    plan: FittedPlan,
    setup: &Setup,
    observer: &mut dyn Observer,
) -> Result<Finished> {
    observer.run_file(path);
    let (file, record) = RunFile::open_resume(path)?;
    usage_errors! {
        record.run.status == RunStatus::Done => format!("the run in {} is complete", path.display()),
            "see it with: iolab table, or start a new run";
    }
    let further = setup.place.further();
    let now = std::iter::once(setup.place.bytes()).chain(further.iter().map(|t| t.bytes));
    let before = record.target_bytes();
    if let Some((now, before)) = now.zip(before).find(|(now, before)| now < before) {
        return Err(Error::usage(format!(
            "the target has {now} bytes now and had {before} when the run began"
        ))
        .hint("make room for what it had, or start a new run"));
    }
    let plan = as_begun(plan, &record, path)?;
    let remarks = setup.remarks(plan.cells());
    let peers = setup.find_peers(plan.cells(), plan.experiment().design.budget)?;
    let environment = setup.environment(&peers);
    let targets = setup.place.targets();
    let targets = targets.iter().map(|(_, target)| TargetNow::of(target));
    let others = check_same_targets(&record, targets, &environment)?;
    let seed = record.run.seed;
    let mut executor = setup
        .place
        .executor(plan.experiment(), seed, peers, setup)?;
    let mut session = Session::new(plan, setup.peers, file, &record, observer);
    session.take_over(&record)?;
    session.event(
        EventKind::Resume,
        &format!("resumed after {} samples", record.samples.len()),
    )?;
    for text in others {
        session.event(EventKind::Warning, &text)?;
    }
    session.note_changes(&record.environment, &environment)?;
    let ranks = setup.ranks.as_ref();
    if let Some(ranks) = ranks.filter(|ranks| ranks.rows() != record.ranks) {
        let hosts: Vec<String> = ranks.rows().into_iter().map(|rank| rank.name).collect();
        let message = format!(
            "the ranks are on other hosts since the run was resumed: {}; the run file names those that it began on",
            hosts.join(", ")
        );
        session.event(EventKind::Warning, &message)?;
    }
    session.remark(&remarks)?;
    session.carry_out(&mut *executor, &setup.stop)
}

/// The plan as the run began it.
fn as_begun(plan: FittedPlan, record: &RunRecord, path: &Path) -> Result<FittedPlan> {
    let (had, has) = (record.cells.len(), plan.cells().len());
    usage_errors! {
        had != has => format!("{} holds {had} cells, but its experiment has {has}", path.display()),
            "the file was changed; start a new run";
    }
    Ok(plan.as_begun(record.cells.iter().map(|cell| &cell.spec)))
}

/// The question about service levels in the definition of an experiment.
fn asked_by(experiment: &Experiment) -> Option<Question> {
    let (of, levels) = match (&experiment.seek, &experiment.hold) {
        (Some(levels), _) => (Asked::Limit, levels),
        (None, Some(levels)) => (Asked::Cells, levels),
        (None, None) => return None,
    };
    Some(Question::of_levels(of, levels))
}

fn experiment_record(experiment: &Experiment) -> Result<ExperimentRecord> {
    Ok(ExperimentRecord {
        name: experiment.name.clone(),
        question: experiment.question.clone(),
        response: experiment.response,
        response_group: experiment.response_group.clone(),
        asked: asked_by(experiment),
        toml: experiment.to_toml()?,
        factors: factor_names(experiment),
        precision: experiment.design.precision,
        budget_ns: experiment.design.budget.as_nanos() as u64,
        trials_min: experiment.design.trials_min,
        trials_max: experiment.design.trials_max,
    })
}

/// The time now, RFC 3339, UTC.
pub fn now_utc() -> String {
    humantime::format_rfc3339_nanos(SystemTime::now()).to_string()
}
