//! A run in progress: carries out the steps of a strategy, and stores each trial as soon as it is made.

mod precondition;
mod trial;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::peers::PeerList;
use crate::preflight::{Remark, Severity};
use iolab_analysis::analysed_run::RunAnswer;
use iolab_analysis::consent::NeededConsent;
use iolab_analysis::disturbance::Surroundings;
use iolab_analysis::fitness::Answer;
use iolab_analysis::snapshot::{LastTrial, RepetitionGoal, RunSnapshot};
use iolab_plan::cells::{AddedCells, FittedPlan};
use iolab_record::environment::{Environment, differences};
use iolab_record::{Cell, ClockDomain, EndedBy, Event, EventKind, RunRecord, RunStatus};
use iolab_runfile::RunFile;
use iolab_workload::settings::{CellSpec, Tool};
use iolab_workload::{Error, Kind, Result};

use super::executor::Executor;
use super::record::Record;
use super::strategy::{self, Finding, Outlook, Step, Strategy};
use super::system_under_test::unidentified;
use super::{
    Basis, Finished, Observer, Progress, RunEnd, RunStart, StopFlags, TrialDone, experiment_record,
    fit, now_utc,
};

/// A run in progress.
pub(super) struct Session<'a> {
    record: Record,
    file: RunFile,
    clock: ClockDomain,
    around: Surroundings,
    /// The consent that finishing the run needs again.
    consent: NeededConsent,
    observer: &'a mut dyn Observer,
    /// Each other tool that has failed, with its first failure.
    failed_tools: Vec<(Tool, String)>,
    /// The time left, as last shown; `None` before the first estimate.
    time_left: Option<Duration>,
    /// The last forecast.
    progress: Progress,
    /// Activity during the last trial.
    last_trial: Option<LastTrial>,
    /// Trials of this session.
    trials: u64,
}

impl<'a> Session<'a> {
    /// A session of the run that the file keeps; `begun` is its content.
    pub(super) fn new(
        plan: FittedPlan,
        peers: PeerList,
        file: RunFile,
        begun: &RunRecord,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            record: Record::new(plan, peers, begun.run.seed, file.path().to_owned()),
            file,
            clock: begun.run.clock_domain,
            around: Surroundings::of_run(&begun.environment, begun.targets().count()),
            consent: NeededConsent::of(begun),
            observer,
            failed_tools: Vec::new(),
            time_left: None,
            progress: Progress::default(),
            last_trial: None,
            trials: 0,
        }
    }

    /// Counts the measurements of an earlier session, and continues with cells that the user had ended.
    ///
    /// # Errors
    /// When the run file cannot be written.
    pub(super) fn take_over(&mut self, record: &RunRecord) -> Result<()> {
        let by_user = |cell: &&Cell| cell.ended_by == Some(EndedBy::User);
        for cell in record.cells.iter().filter(by_user) {
            self.file.set_ended_by(cell.id, None)?;
        }
        self.record.take_over(record);
        Ok(())
    }

    /// Measures all that the plan asks for, and marks the run file as done, interrupted or failed.
    ///
    /// # Errors
    /// A failed measurement, a tool that never worked, the user's interrupt, or a run file that cannot be written.
    pub(super) fn carry_out(
        mut self,
        executor: &mut dyn Executor,
        stop: &StopFlags,
    ) -> Result<Finished> {
        executor.keeps_in(self.file.path(), self.consent);
        let result = self
            .measure(executor, stop)
            .and_then(|()| self.check_tools());
        let status = match &result {
            Ok(_) => RunStatus::Done,
            Err(error) if error.kind() == Kind::Interrupted => RunStatus::Interrupted,
            Err(_) => RunStatus::Failed,
        };
        let error = result
            .as_ref()
            .err()
            .filter(|_| status == RunStatus::Failed);
        let error = error.map(ToString::to_string);
        let is_computed = self.clock == ClockDomain::Virtual;
        let (processes, consent) = (executor.processes(), self.consent);
        let ended = self.end(status, error.as_deref());
        match (result, ended) {
            (Ok(()), ended) => ended,
            (Err(error), Ok(Finished { path, .. })) if status == RunStatus::Interrupted => {
                Err(error.hint(if is_computed {
                    "start it again: the state of a model is not kept".to_owned()
                } else {
                    let file = path.to_string_lossy();
                    // Without its facts the command itself reports obstacles.
                    let record = iolab_runfile::read(&path).unwrap_or_default();
                    match unidentified(&record, consent) {
                        None => {
                            let command = consent.resume_command(&[&file], processes);
                            format!("finish it with: {command}")
                        }
                        Some(path) => format!(
                            "start a new run: {path} has no id that tells it from others, so that iolab resume refuses to write to it"
                        ),
                    }
                }))
            }
            (Err(error), Ok(_)) => Err(error),
            // The failure of the run comes first, and has often caused this one.
            (Err(error), Err(trouble)) => Err(error.also(trouble.message())),
        }
    }

    /// Marks the run file with this status, after `error` if one has led to it.
    fn end(mut self, status: RunStatus, error: Option<&str>) -> Result<Finished> {
        let kept = self.follow().and_then(|()| match error {
            Some(error) => self.keep(EventKind::Error, None, error),
            None => Ok(()),
        });
        let kept = kept.and_then(|()| match status {
            RunStatus::Interrupted => self.close_by_user(),
            RunStatus::Running | RunStatus::Done | RunStatus::Failed => Ok(()),
        });
        let finished = Finished {
            path: self.file.path().to_owned(),
            trials: self.trials,
            spent: self.record.spent,
        };
        let (answer, trouble) = match kept.and_then(|()| self.answer(status)) {
            Ok(answer) => (answer, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let ended = self
            .file
            .finish(status, &now_utc(), answer.map(Answer::name));
        let last = snapshot(&self.record, (0, false), self.last_trial);
        let within = match last.goal {
            RepetitionGoal::Precision(goal) => Some(last.within(goal)),
            _ => None,
        };
        self.observer.run_ends(&RunEnd {
            status,
            trials_done: self.record.trials_done(),
            measured: self.record.measured(),
            cells: last.cells.len(),
            within,
        });
        trouble.and(ended).map(|()| finished)
    }

    /// Notes that the user has ended the repetition of each cell that gets further trials.
    fn close_by_user(&mut self) -> Result<()> {
        let mut open = self.record.open_cells();
        open.try_for_each(|id| self.file.set_ended_by(id as i64, Some(EndedBy::User)))
    }

    /// The answer of the run to its question, if it has one and is done.
    fn answer(&self, status: RunStatus) -> Result<Option<Answer>> {
        if status != RunStatus::Done || !self.file.asks()? {
            return Ok(None);
        }
        let mut record = iolab_runfile::read(self.file.path())?;
        record.run.status = status;
        let latencies = iolab_runfile::read_latency(self.file.path())?;
        let answer = RunAnswer::of(&record, latencies)?;
        Ok(answer.map(|answer| answer.answer()))
    }

    /// Continues in a new run file if another process has moved or removed the current one.
    fn follow(&mut self) -> Result<()> {
        let before = self.file.path().to_owned();
        let Some(path) = self.file.follow()? else {
            return Ok(());
        };
        self.record.path.clone_from(&path);
        self.observer.run_file(&path);
        let message = format!(
            "the run file {} was moved, removed or replaced during the run: everything measured is in {}",
            before.display(),
            path.display()
        );
        self.event(EventKind::Warning, &message)
    }

    /// Prepares the target, then measures the steps of the experiment's strategy.
    fn measure(&mut self, executor: &mut dyn Executor, stop: &StopFlags) -> Result<()> {
        self.record.alignment = executor.alignment();
        self.leave_gaps(executor, 0)?;
        self.precondition(executor, &stop.after_trial)?;
        let mut strategy = strategy::of(&self.record)?;
        self.update_progress(strategy.outlook(&self.record));
        self.tell_start();
        self.follow_strategy(&mut *strategy, executor, stop)
    }

    /// Measures the steps of this strategy until it ends.
    pub(super) fn follow_strategy(
        &mut self,
        strategy: &mut dyn Strategy,
        executor: &mut dyn Executor,
        stop: &StopFlags,
    ) -> Result<()> {
        self.choose_batches(executor, &stop.after_trial)?;
        loop {
            self.record.now = executor.now();
            match strategy.next(&self.record)? {
                Step::Visit(place) => {
                    check(&stop.after_trial)?;
                    if self.trial(place, executor, stop)? {
                        self.update_progress(strategy.outlook(&self.record));
                        self.tell_trial();
                    }
                }
                Step::Rest(time) => {
                    executor.pause(time, &stop.after_trial);
                    check(&stop.after_trial)?;
                }
                Step::Add(addition) => {
                    self.add(*addition, executor)?;
                    self.choose_batches(executor, &stop.after_trial)?;
                }
                Step::Keep(found) => found.into_iter().try_for_each(|found| self.find(found))?,
                Step::Done => return Ok(()),
            }
        }
    }

    /// Stores a finding of a strategy.
    fn find(&mut self, found: Finding) -> Result<()> {
        match found {
            Finding::Told(kind, message) => self.event(kind, &message),
            Finding::Event(kind, cell, message) => self.keep(kind, cell, &message),
            Finding::Ended(cell, ended_by) => self.file.set_ended_by(cell as i64, Some(ended_by)),
            Finding::LeftOutBefore(block) => self.file.leave_out_before(block),
        }
    }

    /// Takes further cells into the plan and into the run file.
    fn add(&mut self, addition: AddedCells, executor: &mut dyn Executor) -> Result<()> {
        let first = self.record.plan.cells().len();
        let plan = self.record.plan.clone();
        let plan = plan.grown(addition, &|cell| executor.fit(cell))?;
        let added = plan.cells().iter().enumerate().skip(first);
        let rows: Vec<_> = added.map(|(id, cell)| fit::record(id, cell)).collect();
        self.file
            .add_cells(&experiment_record(plan.experiment())?, &rows)?;
        self.record.plan = plan;
        self.leave_gaps(executor, first)
    }

    /// Updates the progress from a forecast.
    fn update_progress(&mut self, outlook: Outlook) {
        let left = match outlook.basis {
            Basis::Budget => outlook.time,
            // It never grows: a longer later estimate is ignored.
            Basis::AtMost | Basis::Trials => {
                let shown = self.time_left.unwrap_or(outlook.time);
                *self.time_left.insert(shown.min(outlook.time))
            }
        };
        self.progress = Progress {
            trials_done: self.record.trials_done(),
            spent: self.record.spent,
            left,
            basis: outlook.basis,
        };
    }

    /// Announces the measurement to the user.
    fn tell_start(&mut self) {
        let experiment = self.record.plan.experiment();
        self.observer.run_starts(&RunStart {
            file: self.file.path(),
            experiment: &experiment.name,
            factors: &self.record.plan.factor_names(),
            response: experiment.response,
            cells: self.record.plan.cells().len(),
            adds_cells: self.record.plan.adds_cells(),
            progress: self.progress,
            leaves_writes: self.record.plan.leaves_writes(),
        });
    }

    /// Tells the user of the last trial.
    fn tell_trial(&mut self) {
        let Some(trial) = self.record.trials.last() else {
            return;
        };
        self.observer.trial_done(&TrialDone {
            levels: &self.record.plan.cells()[trial.place.cell].levels,
            block: trial.place.block,
            warmup: trial.place.warmup,
            value: trial.value,
            progress: self.progress,
        });
    }

    /// Leaves cells from `first` on without trials if their tool cannot carry them out, and gives the reason.
    fn leave_gaps(&mut self, executor: &dyn Executor, first: usize) -> Result<()> {
        let gap = |cell: &CellSpec| executor.gap(cell);
        for gap in crate::peers::gaps(&self.record.plan, first, &gap) {
            self.observer.note(&gap.told);
            for id in gap.cells {
                self.record.closed.insert(id);
                self.keep(EventKind::Gap, Some(id), &gap.why)?;
            }
        }
        Ok(())
    }

    /// Gives no further trial to a cell whose tool has failed; the run goes on. A tool that hung gets no further
    /// trial of any cell: it would hang again, each time for as long.
    fn give_up(&mut self, id: usize, why: &Error, hung: bool) -> Result<()> {
        let tool = self.record.plan.cells()[id].spec.tool;
        if !self.failed_tools.iter().any(|(known, _)| *known == tool) {
            self.failed_tools.push((tool, why.message().to_owned()));
        }
        let name = self.record.plan.describe(&self.record.plan.cells()[id]);
        self.observer
            .note(&format!("{name} gets no further trial: {why}"));
        self.record.closed.insert(id);
        self.keep(EventKind::Gap, Some(id), &why.to_string())?;
        let is_other = |id: &usize| self.record.plan.cells()[*id].spec.tool == tool;
        let others: Vec<usize> = self.record.open_cells().filter(is_other).collect();
        for other in others.into_iter().filter(|_| hung) {
            self.record.closed.insert(other);
            let message = format!("it hung at {name}");
            self.keep(EventKind::Gap, Some(other), &message)?;
        }
        Ok(())
    }

    /// Checks that each other tool that was tried succeeded at least once.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed): the first one that never succeeded, and its first failure.
    fn check_tools(&self) -> Result<()> {
        let cells = self.record.plan.cells();
        let worked = |tool: Tool| {
            let mut trials = self.record.trials.iter().filter(|trial| trial.ok);
            trials.any(|trial| cells[trial.place.cell].spec.tool == tool)
        };
        let never = self.failed_tools.iter().find(|(tool, _)| !worked(*tool));
        let Some((tool, why)) = never else {
            return Ok(());
        };
        Err(
            Error::failed(format!("{tool} never worked: {why}")).hint(format!(
                "repair it and resume the run, or measure without {tool} (--set tool=iolab)"
            )),
        )
    }

    /// Reports an event to the user and stores it in the run file.
    pub(super) fn event(&mut self, kind: EventKind, message: &str) -> Result<()> {
        self.observer.note(message);
        self.keep(kind, None, message)
    }

    pub(super) fn keep(
        &mut self,
        kind: EventKind,
        cell: Option<usize>,
        message: &str,
    ) -> Result<()> {
        self.file.add_event(&Event {
            at_utc: now_utc(),
            kind,
            cell: cell.map(|id| id as i64),
            message: message.to_owned(),
        })
    }

    /// Stores the examination before the first trial, and reports the remarks that concern this experiment.
    pub(super) fn remark(&mut self, remarks: &[Remark]) -> Result<()> {
        for remark in remarks {
            let kind = match remark.finding.severity {
                Severity::MustFix => EventKind::Warning,
                Severity::WorthKnowing | Severity::Fine => EventKind::Note,
            };
            if remark.shown {
                self.event(kind, &remark.text())?;
            } else {
                self.keep(kind, None, &remark.text())?;
            }
        }
        Ok(())
    }

    /// Warns if the budget is too short for the fewest trials, or if other tools take long.
    pub(super) fn warn_about_time(&mut self) -> Result<()> {
        let plan = &self.record.plan;
        let messages = [
            crate::peers::waiting(self.record.peers, plan),
            plan.shortfall(&crate::peers::overhead(self.record.peers)),
        ];
        // A study shows them one after the other.
        let name = plan.experiment().name.clone();
        let mut messages = messages.into_iter().flatten();
        messages.try_for_each(|text| self.event(EventKind::Warning, &format!("{name}: {text}")))
    }

    /// Notes what differs between the machine of the earlier session and this one.
    pub(super) fn note_changes(&mut self, before: &Environment, now: &Environment) -> Result<()> {
        for (key, earlier, value) in differences(before, now) {
            if let (Some(earlier), Some(value)) = (earlier, value) {
                let message =
                    format!("{key} was {earlier} and is {value} since the run was resumed");
                self.event(EventKind::Warning, &message)?;
            }
        }
        Ok(())
    }
}

/// The state of each cell; `now` is measured next.
fn snapshot(
    record: &Record,
    (now, warms_up): (usize, bool),
    last: Option<LastTrial>,
) -> RunSnapshot {
    let experiment = record.plan.experiment();
    RunSnapshot {
        factors: record.plan.factor_names(),
        response: experiment.response,
        goal: record.goal(now),
        cells: record.cells(),
        now,
        warms_up,
        last,
    }
}

/// Returns the error of an interrupted run if the user has asked for the end.
fn check(stop: &AtomicBool) -> Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::interrupted()),
        false => Ok(()),
    }
}
