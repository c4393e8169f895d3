//! A run without targets, whose trials the caller carries out.

use iolab_analysis::consent::NeededConsent;
use iolab_analysis::disturbance::Surroundings;
use iolab_host::clock::Clock;
use iolab_plan::cells::{FittedPlan, OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_record::environment::Environment;
use iolab_record::{ClockDomain, EventKind, Run, RunStatus, TargetKind};
use iolab_runfile::{NewFile, RunFile};
use iolab_workload::Result;

use super::executor::Executor;
use super::session::Session;
use super::{Finished, Observer, Stop, experiment_record, fit, now_utc};

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
    pub stop: Stop<'a>,
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
        let experiment = experiment_record(plan.experiment())?;
        let rows = fit::records(plan.cells());
        let file = RunFile::create(place, &run, &self.environment, &experiment, &rows)?;
        let around = Surroundings::of_run(&self.environment, 1);
        observer.run_file(file.path());
        let consent = NeededConsent::default();
        let clock = ClockDomain::Real;
        let mut session = Session::new(plan, self.seed, file, clock, around, consent, observer);
        for note in self.notes {
            session.keep(EventKind::Note, None, &note)?;
        }
        session.carry_out(executor, self.stop)
    }
}
