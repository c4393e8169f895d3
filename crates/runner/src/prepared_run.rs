//! A run that has its run file and no trial yet. If one answer needs several runs, all are prepared first, so that each can
//! be resumed, whichever was interrupted.
//!
//! A run without targets, whose trials the caller carries out.
//!
//! Trials whose requests come from a list, on a target or on a modelled disk.
//!
//! The peak rates of a device, found by short probes before a run (`--peak measure`).

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::session::Session;
use super::{
    Executor, Finished, NewObserver, Observer, Setup, StopFlags, experiment_record, fit, now_utc,
};
use crate::evidence::computed;
use crate::preflight::Remark;
use crate::sample::verdict_alone;
use crate::virtual_target::VirtualTarget;
use iolab_engine::list::RequestList;
use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_plan::cells::{FittedPlan, OneProcess, Plan, PlannedCell};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::{Environment, Peaks};
use iolab_record::{
    ClockDomain, EventKind, Question, Run, RunRecord, RunStatus, ServedVerdict, TargetKind,
};
use iolab_runfile::{NewFile, RunFile};
use iolab_storage::{Stack, Target};
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};
use iolab_workload::{Error, Result};

/// A run that has its run file, and no trial yet.
pub struct PreparedRun<'a> {
    plan: FittedPlan,
    file: RunFile,
    /// The content of the run file.
    begun: RunRecord,
    executor: Box<dyn Executor + 'a>,
    remarks: Vec<Remark>,
    setup: &'a Setup,
}

impl<'a> PreparedRun<'a> {
    /// Makes the run file of a plan, for a run that is to answer `asked`, or otherwise the question of its experiment.
    ///
    /// # Errors
    /// A plan that cannot be carried out or written; no file is left then.
    pub fn new(
        plan: FittedPlan,
        asked: Option<Question>,
        seed: u64,
        place: NewFile<'_>,
        setup: &'a Setup,
    ) -> Result<Self> {
        let planned = plan.cells();
        let peers = setup.find_peers(planned, plan.experiment().design.budget)?;
        let environment = setup.environment(&peers);
        let executor = setup
            .place
            .executor(plan.experiment(), seed, peers, setup)?;
        check_gaps(&*executor, planned)?;
        let remarks = setup.remarks(planned);
        let run = Run {
            status: RunStatus::Running,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: now_utc(),
            ended_utc: None,
            target: setup.place.name(),
            target_kind: setup.place.kind(),
            target_bytes: setup.place.bytes(),
            seed,
            ..setup.place.timing(&setup.clock, planned)
        };
        let mut experiment = experiment_record(plan.experiment())?;
        experiment.asked = asked.or(experiment.asked);
        let begun = RunRecord {
            run,
            environment,
            experiment,
            cells: fit::records(planned),
            further_targets: setup.place.further(),
            ..RunRecord::default()
        };
        let mut file = create(place, &begun)?;
        file.add_targets(&begun.further_targets)?;
        if let Some(ranks) = &setup.ranks {
            file.add_ranks(&ranks.rows())?;
        }
        Ok(Self {
            plan,
            file,
            begun,
            executor,
            remarks,
            setup,
        })
    }

    /// The run file of the prepared run.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Carries the plan out.
    ///
    /// # Errors
    /// A failed measurement; the user's interrupt. The run file keeps everything measured so far.
    pub fn carry_out(mut self, observer: &mut dyn Observer) -> Result<Finished> {
        observer.run_file(self.file.path());
        let left_out = self.plan.left_out().map(str::to_owned);
        let setup = self.setup;
        let ranks = setup.ranks.as_deref();
        let unread = ranks.and_then(|_| unread_drives(&setup.place.targets(), setup.observers));
        let mut session = Session::new(self.plan, setup.peers, self.file, &self.begun, observer);
        let of_ranks = ranks.map_or_else(Vec::new, |ranks| ranks.notes());
        for note in setup.place.notes().into_iter().chain(of_ranks) {
            // The user has seen this note when the target was opened.
            session.keep(EventKind::Note, None, &note)?;
        }
        for note in left_out.into_iter().chain(unread) {
            session.event(EventKind::Note, &note)?;
        }
        session.remark(&self.remarks)?;
        session.warn_about_time()?;
        session.carry_out(&mut *self.executor, &setup.stop)
    }

    /// Records it as interrupted, so that it can be resumed.
    ///
    /// # Errors
    /// When the run file cannot be written.
    pub fn leave(self) -> Result<()> {
        self.file.finish(RunStatus::Interrupted, &now_utc(), None)
    }
}

/// Makes the file of a run that begins.
pub(super) fn create(place: NewFile<'_>, begun: &RunRecord) -> Result<RunFile> {
    let (environment, experiment) = (&begun.environment, &begun.experiment);
    RunFile::create(place, &begun.run, environment, experiment, &begun.cells)
}

/// Refuses a plan of which nothing can be carried out.
fn check_gaps(executor: &dyn Executor, cells: &[PlannedCell]) -> Result<()> {
    let mut first = None;
    for cell in cells {
        let Some(gap) = executor.gap(&cell.spec) else {
            return Ok(());
        };
        first.get_or_insert((&cell.spec.tool, gap));
    }
    match first {
        Some((tool, gap)) => Err(Error::usage(format!("{tool} cannot measure it: {gap}"))
            .hint("measure with iolab too: --set tool=iolab")),
        None => Ok(()),
    }
}

/// Note that several processes read no log of the drives below targets; `None` if there is none that can be read.
pub(super) fn unread_drives(
    targets: &[(&Path, &Target)],
    observers: &[NewObserver],
) -> Option<String> {
    let stacks = targets.iter().flat_map(|(_, target)| target.stack().each());
    let disks = stacks.filter_map(Stack::disks).flatten().collect();
    let read = |new: &NewObserver| {
        let mut observer = new();
        observer.before(&disks);
        observer.after()
    };
    let first = observers.iter().flat_map(read).next()?;
    Some(format!(
        "the log of {} is not read in a run of several processes: throttling and write amplification stay unknown",
        first.drive
    ))
}

/// A run without targets: what is timed, and by what.
pub struct OwnTrials<'a> {
    /// The experiment.
    pub experiment: Experiment,
    /// Its name in place of a target.
    pub place: String,
    /// Facts that the results depend on.
    pub environment: Environment,
    /// Facts for readers of the results, in words.
    pub notes: Vec<String>,
    /// The seed of the order of the trials.
    pub seed: u64,
    /// The clock that times the trials.
    pub clock: &'a Clock,
    /// The user's ways to end it early.
    pub stop: StopFlags,
}

impl OwnTrials<'_> {
    /// Carries the experiment out in randomised blocks, into a new run file.
    ///
    /// # Errors
    /// An experiment that cannot be planned, a failed trial, or the user's interrupt: the run file keeps everything measured so far.
    pub fn carry_out(
        self,
        executor: &mut dyn Executor,
        place: NewFile<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Finished> {
        let plan = Plan::of_new_run(self.experiment, &OneProcess)?;
        let plan = FittedPlan::of(plan, &|cell| executor.fit(cell))?;
        let run = Run {
            status: RunStatus::Running,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: now_utc(),
            target: self.place,
            target_kind: TargetKind::Commands,
            seed: self.seed,
            clock_domain: ClockDomain::Real,
            clock_cost_ns: Some(self.clock.cost_ns()),
            clock_resolution_ns: Some(self.clock.resolution_ns()),
            clock_source: self.clock.source(),
            ..Run::default()
        };
        let begun = RunRecord {
            run,
            environment: self.environment,
            experiment: experiment_record(plan.experiment())?,
            cells: fit::records(plan.cells()),
            ..RunRecord::default()
        };
        let file = create(place, &begun)?;
        observer.run_file(file.path());
        let mut session = Session::new(plan, &[], file, &begun, observer);
        for note in self.notes {
            session.keep(EventKind::Note, None, &note)?;
        }
        session.carry_out(executor, &self.stop)
    }
}

/// Carries a trial out on a target that does not change meanwhile, and judges where the bytes came from.
///
/// # Errors
/// As [`trial::run_list`]; also a target that became another one, a failed request, and the user's interrupt.
pub fn run_list(
    spec: &TrialSpec,
    list: &Mutex<dyn RequestList>,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(Outcome, ServedVerdict)> {
    let before = target.standing(false)?;
    let outcome = trial::run_list(spec, list, target, clock, stop)?;
    target.check_standing(before)?;
    let verdict = verdict_alone(spec, &outcome, target.medium());
    whole(outcome).map(|outcome| (outcome, verdict))
}

/// As [`run_list`], on a new disk in virtual time.
///
/// # Errors
/// As [`VirtualTarget::run_list`]; also the user's interrupt.
pub fn run_virtual_list(
    spec: &TrialSpec,
    list: &mut dyn RequestList,
    target: &dyn VirtualTarget,
    stop: &AtomicBool,
) -> Result<(Outcome, ServedVerdict)> {
    let outcome = target.run_list(spec, list, stop)?;
    whole(outcome).map(|outcome| (outcome, computed()))
}

/// The outcome of a trial that came to its end.
fn whole(outcome: Outcome) -> Result<Outcome> {
    if let Some(failure) = &outcome.failure {
        let (what, remedy) = crate::describe_failure(failure);
        return Err(Error::failed(what).hint(remedy));
    }
    match outcome.ended {
        Ended::Interrupted => Err(Error::interrupted()),
        _ => Ok(outcome),
    }
}

/// Length of one probe.
const PROBE: Duration = Duration::from_millis(300);

/// A higher concurrency counts as faster from this factor up.
const GAIN: f64 = 1.05;

/// Steps in a row without a gain after which no other is tried: one alone may be a neighbour's doing.
const STEPS_WITHOUT_GAIN: u32 = 2;

/// Most requests at once that are tried.
const AT_ONCE_MAX: u32 = 128;

/// Finds the ceilings of a target by short probes: large sequential and small random requests, with twice as many threads
/// until that has twice gained nothing. Writes only if `writes` says that the run will write too.
///
/// # Errors
/// When a probe cannot be made, or `stop` is raised meanwhile.
pub(crate) fn measure_peaks(
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
    writes: bool,
) -> Result<Peaks> {
    let best = |read_percent: u8, pattern: Pattern, bs: u64| -> Result<Option<f64>> {
        let mut best: f64 = 0.0;
        let mut threads = 1;
        let mut without_gain = 0;
        while without_gain < STEPS_WITHOUT_GAIN
            && threads <= AT_ONCE_MAX
            && u64::from(threads) * bs <= target.size()
        {
            let spec = TrialSpec {
                pattern,
                bs,
                region: target.size() / bs * bs,
                threads,
                read_percent,
                limit: TrialLimit {
                    time: Some(PROBE),
                    ..TrialLimit::default()
                },
                cache: match target.direct_alignment() {
                    Ok(_) => CacheState::Direct,
                    Err(_) => CacheState::Cold,
                },
                ..TrialSpec::default()
            };
            let outcome = trial::run(&spec, target, clock, stop)?;
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let rate = outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64;
            without_gain = if rate < best * GAIN {
                without_gain + 1
            } else {
                0
            };
            best = rate.max(best);
            threads *= 2;
        }
        Ok((best > 0.0).then_some(best))
    };
    const LARGE: u64 = 1 << 20;
    const SMALL: u64 = 4096;
    let mb_s = |rate: Option<f64>| rate.map(|rate| rate * LARGE as f64 / 1e6);
    let write = |pattern, bs| {
        if writes {
            best(0, pattern, bs)
        } else {
            Ok(None)
        }
    };
    Ok(Peaks {
        read_mb_s: mb_s(best(100, Pattern::Seq, LARGE)?),
        read_iops: best(100, Pattern::Rand, SMALL)?,
        write_mb_s: mb_s(write(Pattern::Seq, LARGE)?),
        write_iops: write(Pattern::Rand, SMALL)?,
    })
}
