//! A run that has its run file and no trial yet. If one answer needs several runs, all are prepared first, so that each can
//! be resumed, whichever was interrupted.

use std::path::Path;

use iolab_analysis::consent::NeededConsent;
use iolab_analysis::disturbance::Surroundings;
use iolab_doctor::Remark;
use iolab_host::device::Device;
use iolab_plan::cells::{FittedPlan, PlannedCell};
use iolab_record::{ClockDomain, EventKind, Question, Run, RunRecord, RunStatus};
use iolab_runfile::{NewFile, RunFile};
use iolab_storage::{Stack, Target};
use iolab_workload::{Error, Result};

use super::ranks::Ranks;
use super::session::Session;
use super::{Executor, Finished, NewObserver, Observer, Setup, experiment_record, fit, now_utc};

/// A run that has its run file, and no trial yet.
pub struct PreparedRun<'a> {
    plan: FittedPlan,
    seed: u64,
    file: RunFile,
    clock: ClockDomain,
    around: Surroundings,
    consent: NeededConsent,
    executor: Box<dyn Executor + 'a>,
    remarks: Vec<Remark>,
    setup: Setup<'a>,
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
        setup: Setup<'a>,
    ) -> Result<Self> {
        let planned = plan.cells();
        let rows = fit::records(planned);
        let peers = setup.peers(planned, plan.experiment().design.budget)?;
        let environment = setup.environment(&peers);
        let executor = setup
            .place
            .executor(plan.experiment(), seed, peers, &setup)?;
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
            ..setup.place.timing(setup.clock, planned)
        };
        let mut experiment = experiment_record(plan.experiment())?;
        experiment.asked = asked.or(experiment.asked);
        let mut file = RunFile::create(place, &run, &environment, &experiment, &rows)?;
        let further_targets = setup.place.further();
        file.add_targets(&further_targets)?;
        if let Some(ranks) = setup.ranks {
            file.add_ranks(&ranks.rows())?;
        }
        let clock = run.clock_domain;
        let around = Surroundings::of_run(&environment, 1 + further_targets.len());
        // The record as a resumed run finds it.
        let begun = RunRecord {
            run,
            experiment,
            cells: rows,
            further_targets,
            ..RunRecord::default()
        };
        Ok(Self {
            plan,
            seed,
            file,
            clock,
            around,
            consent: NeededConsent::of(&begun),
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
        let tracing = tracing_note(self.plan.cells(), &self.setup.place.targets());
        let unread = self
            .setup
            .ranks
            .and_then(|_| unread_drives(&self.setup.place.targets(), self.setup.observers));
        let mut session = Session::new(
            self.plan, self.seed, self.file, self.clock, self.around, self.consent, observer,
        );
        let of_ranks = self.setup.ranks.map_or_else(Vec::new, Ranks::notes);
        for note in self.setup.place.notes().into_iter().chain(of_ranks) {
            // The user has seen this note when the target was opened.
            session.keep(EventKind::Note, None, &note)?;
        }
        for note in left_out.into_iter().chain(tracing).chain(unread) {
            session.event(EventKind::Note, &note)?;
        }
        session.remark(&self.remarks)?;
        session.warn_about_time()?;
        session.carry_out(&mut *self.executor, self.setup.stop)
    }

    /// Records it as interrupted, so that it can be resumed.
    ///
    /// # Errors
    /// When the run file cannot be written.
    pub fn leave(self) -> Result<()> {
        self.file.finish(RunStatus::Interrupted, &now_utc(), None)
    }
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

/// Warning about tracing requests on disks in memory (zram, brd), which are that fast; `None` if no such disk is traced.
fn tracing_note(cells: &[PlannedCell], targets: &[(&Path, &Target)]) -> Option<String> {
    let is_traced = |cell: &PlannedCell| cell.spec.trials().into_iter().any(|trial| trial.trace);
    let is_memory = |(_, target): &&(&Path, &Target)| {
        let disk = target.traced_disk().ok();
        let device = disk.and_then(|disk| Device::read(Path::new("/sys"), disk.number));
        device.is_some_and(|device| device.transport.is_memory())
    };
    if !cells.iter().any(is_traced) {
        return None;
    }
    let (named, _) = targets.iter().find(is_memory)?;
    Some(format!(
        "{}: trace=true costs about 0.3 us per recorded event, with two or more per request: a large share of the time of a request on a disk in memory; --set trace=false,true measures it",
        named.display()
    ))
}
