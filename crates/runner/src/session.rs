//! A run under way: blocks of trials until the repetition ends, each trial stored as soon as it is made.

mod choose;
mod progress;
mod refine;
mod search;
mod strategies;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iolab_workload::outcome::{Ended as TrialEnded, Failure, ProgramEnd};
use iolab_workload::{Error, Kind, Result};

use super::executor::Executor;
use super::phase::Phase;
use super::pilot::length::{FINE_NS, Profile, can_be_shorter};
use super::progress_estimate::{Costs, ProgressEstimate};
use super::sample::{self, VisitPosition};
use super::stopping_rule::Ended;
use super::tool_failures::ToolFailures;
use super::{Finished, Observer, now_utc, precondition};
use iolab_analysis::answer::RunAnswer;
use iolab_analysis::fitness::{Answer, Times, counted};
use iolab_doctor::{Remark, Severity};
use iolab_plan::blocks::{block_visits, group_seed, trial_seed};
use iolab_plan::cells::Plan;
use iolab_record::environment::{Environment, differences};
use iolab_record::{ClockDomain, Event, EventKind, RankReport, RunRecord, RunStatus, Sample};
use iolab_runfile::RunFile;
use iolab_workload::series::INTERVAL_NS;

/// A run under way.
pub(super) struct Session<'a> {
    plan: Plan,
    seed: u64,
    file: RunFile,
    clock: ClockDomain,
    observer: &'a mut dyn Observer,
    phase: Phase,
    tool_failures: ToolFailures,
    advance: ProgressEstimate,
    costs: Costs,
    /// Trials of earlier phases.
    trials_before: u64,
    /// The time that they took.
    spent_before: Duration,
    trials: u64,
    /// What the trials of the pilot show, of cells whose trials may become shorter.
    profiles: HashMap<usize, Vec<Profile>>,
    /// The last trial of a search, with its times.
    seen: Option<(Sample, Times)>,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        plan: Plan,
        seed: u64,
        file: RunFile,
        clock: ClockDomain,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            phase: Phase::of(plan.experiment(), plan.cells().len()),
            tool_failures: ToolFailures::default(),
            advance: ProgressEstimate::default(),
            costs: Costs::default(),
            plan,
            seed,
            file,
            clock,
            observer,
            trials_before: 0,
            spent_before: Duration::ZERO,
            trials: 0,
            profiles: HashMap::new(),
            seen: None,
        }
    }

    /// Counts what an earlier session measured.
    pub(super) fn take_over(&mut self, record: &RunRecord) {
        let cells = self.plan.cells.len();
        for sample in &record.samples {
            if sample.block < self.phase.first_block {
                self.trials_before += u64::from(sample.ok);
                continue;
            }
            self.phase
                .repetition
                .spend(Duration::from_nanos(sample.wall_ns));
            let Some(cell) = usize::try_from(sample.cell)
                .ok()
                .filter(|cell| *cell < cells)
            else {
                continue;
            };
            if sample.ok {
                self.tool_failures.worked(self.plan.cells[cell].spec.tool);
            }
            self.costs
                .add(cell, sample.warmup, Duration::from_nanos(sample.wall_ns));
            let is_new = sample.ok && self.phase.add(cell, sample.block, sample.visit);
            if is_new && !sample.warmup {
                self.measured(cell, sample, record.groups_of(sample.id));
            }
        }
        // A pilot that has chosen for some trials already is not asked again.
        let chosen = record.cells.iter().map(|cell| cell.pilot);
        if self.phase.is_beyond_pilot()
            && let Some(chosen) = chosen.collect()
        {
            self.phase.choose(chosen);
        }
    }

    /// Takes what the experiment asks about of a trial, or of the group that it asks about.
    fn measured(&mut self, cell: usize, sample: &Sample, groups: &[Sample]) {
        let experiment = self.plan.experiment();
        let value = match self.plan.cells[cell]
            .spec
            .number_of(experiment.response_group.as_deref())
        {
            None => sample.value(experiment.response),
            Some(number) => {
                let own = groups.iter().find(|group| group.group == number);
                own.and_then(|group| group.value(experiment.response))
            }
        };
        self.phase.repetition.measured(cell, value.unwrap_or(0.0));
    }

    /// Carries out all blocks, and records in the run file how the run ended: done, interrupted or failed.
    pub(super) fn carry_out(
        mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<Finished> {
        let result = self
            .phases(executor, stop)
            .and_then(|()| self.tool_failures.check());
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
        let launcher = match executor.processes() {
            1 => String::new(),
            ranks => format!("mpirun -n {ranks} "),
        };
        let ended = self.end(status, error.as_deref());
        match (result, ended) {
            (Ok(()), ended) => ended,
            (Err(error), Ok(Finished { path, .. })) if status == RunStatus::Interrupted => {
                Err(error.hint(if is_computed {
                    "start it again: the state of a model is not kept".to_owned()
                } else {
                    format!("finish it with: {launcher}iolab resume {}", path.display())
                }))
            }
            (Err(error), Ok(_)) => Err(error),
            // What the run has failed with comes first, and often has led to this.
            (Err(error), Err(trouble)) => Err(error.also(trouble.message())),
        }
    }

    /// Leaves the file in a state of this kind; `error` is what has led to it.
    fn end(mut self, status: RunStatus, error: Option<&str>) -> Result<Finished> {
        let kept = self.follow().and_then(|()| match error {
            Some(error) => self.keep(EventKind::Error, None, error),
            None => Ok(()),
        });
        let finished = Finished {
            path: self.file.path().to_owned(),
            trials: self.trials,
            spent: self.spent_before + self.phase.repetition.spent(),
        };
        let (answer, trouble) = match kept.and_then(|()| self.answer(status)) {
            Ok(answer) => (answer, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let ended = self
            .file
            .finish(status, &now_utc(), answer.map(Answer::name));
        trouble.and(ended).map(|()| finished)
    }

    /// What the run answers to its question, where it has one and is done.
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

    /// Goes on in a new file where another process has moved or removed the run's.
    fn follow(&mut self) -> Result<()> {
        let before = self.file.path().to_owned();
        let Some(path) = self.file.follow()? else {
            return Ok(());
        };
        self.observer.run_file(&path);
        let message = format!(
            "the run file {} was moved, removed or replaced during the run: everything measured is in {}",
            before.display(),
            path.display()
        );
        self.event(EventKind::Warning, &message)
    }

    /// The grid, and the finer sizes where they are asked for.
    fn phases(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<()> {
        self.leave_gaps(executor)?;
        self.precondition(executor, stop)?;
        loop {
            self.choose_strategies(executor, stop)?;
            let ended = match self.plan.experiment().seek.clone() {
                Some(levels) => {
                    let ended = self.search(&levels, executor, stop)?;
                    self.leave_unvisited()?;
                    ended
                }
                None => self.blocks(executor, stop)?,
            };
            for cell in (0..self.plan.cells.len()).filter(|cell| !self.phase.is_closed(*cell)) {
                let ended_by = self.phase.repetition.ended_by(cell, ended);
                self.file.set_ended_by(cell as i64, ended_by)?;
            }
            if !self.refine(executor)? {
                return self.leave_out_exploration();
            }
        }
    }

    /// Writes to the target what the design wants to lie there before the first trial, also when a run is taken up again:
    /// the target may have changed in between.
    fn precondition(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<()> {
        let (plan, seed) = (self.plan.experiment().design.precondition, self.seed);
        let cells = std::mem::take(&mut self.plan.cells);
        let result = precondition::carry_out(plan, &cells, seed, executor, stop, self);
        self.plan.cells = cells;
        result
    }

    /// Gives no trial to the cells that their tool cannot carry out, and says why.
    fn leave_gaps(&mut self, executor: &dyn Executor) -> Result<()> {
        let mut told: Vec<String> = Vec::new();
        for id in 0..self.plan.cells.len() {
            let Some(why) = executor.gap(&self.plan.cells[id].spec) else {
                continue;
            };
            if !told.contains(&why) {
                self.observer.note(&why);
                told.push(why.clone());
            }
            self.phase.close(id);
            self.keep(EventKind::Gap, Some(id), &why)?;
        }
        Ok(())
    }

    /// Gives no further trial to a cell whose tool has failed: that is its failure, and not the run's. A tool that hung gets
    /// none at all: it would hang again, each time for as long.
    fn give_up(&mut self, id: usize, why: &Error, hung: bool) -> Result<()> {
        let tool = self.plan.cells[id].spec.tool;
        self.tool_failures.failed(tool, why);
        let name = self.plan.describe(&self.plan.cells[id]);
        let message = format!("{name} gets no further trial: {why}");
        self.observer.note(&message);
        self.phase.close(id);
        self.keep(EventKind::Gap, Some(id), &message)?;
        let others =
            |id: &usize| self.plan.cells[*id].spec.tool == tool && !self.phase.is_closed(*id);
        let others: Vec<usize> = (0..self.plan.cells.len()).filter(others).collect();
        for other in others.into_iter().filter(|_| hung) {
            self.phase.close(other);
            let message = format!("no further trial with {tool}, which hung ({name})");
            self.keep(EventKind::Gap, Some(other), &message)?;
        }
        Ok(())
    }

    fn blocks(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<Ended> {
        // A run without a single measured block would say nothing: one is granted to every session.
        let mut granted = true;
        for block in self.phase.first_block.. {
            if self.phase.awaits_choice(block) {
                self.choose_visits()?;
            }
            let cells = 0..self.plan.cells.len();
            let counts: Vec<u32> = cells.map(|cell| self.phase.visits(cell, block)).collect();
            let mut order = block_visits(self.seed, block, &counts);
            order.retain(|(cell, _)| !self.phase.is_closed(*cell));
            let has = |(cell, visit): &&(usize, u32)| self.phase.has(*cell, block, *visit);
            let done = order.iter().filter(has).count();
            let open = done < order.len();
            // A block that an earlier session has begun is carried to its end, whatever it was that would end it now.
            if done == 0 && block > self.phase.first_block {
                let repetition = &self.phase.repetition;
                if let Some(ended) = repetition.ends()
                    && !(granted && ended == Ended::Budget && repetition.has_open_cells())
                {
                    return Ok(ended);
                }
            }
            granted &= !open || block == self.phase.first_block;
            if open && block > 0 {
                self.settle(executor, stop)?;
            }
            let began = executor.now();
            for (position, (cell, visit)) in order.into_iter().enumerate() {
                if self.phase.has(cell, block, visit) {
                    continue;
                }
                let place = VisitPosition {
                    cell,
                    block,
                    visit,
                    position: position as u32,
                    warmup: block == self.phase.first_block,
                };
                self.trial(place, executor, stop)?;
            }
            if open {
                self.phase
                    .repetition
                    .block_took(executor.now().saturating_sub(began));
            }
        }
        unreachable!("the blocks end by the number of trials at the latest")
    }

    /// Lets the device rest before a block.
    fn settle(&mut self, executor: &mut dyn Executor, stop: &AtomicBool) -> Result<()> {
        executor.pause(self.plan.experiment().design.settle, stop);
        match stop.load(Ordering::Relaxed) {
            true => Err(Error::interrupted()),
            false => Ok(()),
        }
    }

    fn trial(
        &mut self,
        place: VisitPosition,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        self.follow()?;
        let mut spec = self.plan.cells[place.cell].spec.clone();
        spec.trial.seed = trial_seed(self.seed, place.cell, place.block, place.visit);
        for (number, group) in (1..).zip(&mut spec.groups) {
            group.spec.trial.seed = group_seed(spec.trial.seed, number);
        }
        let shorter = self.phase.time(place.cell, place.block);
        spec.trial.limit.time = shorter.or(spec.trial.limit.time);
        let is_profiled = self.phase.is_pilot(place.block)
            && can_be_shorter(&spec, self.plan.experiment().response);
        if is_profiled {
            spec.trial.series_ns = FINE_NS;
        }
        let name = self.plan.describe(&self.plan.cells[place.cell]);
        self.observer.trial_starts(&name);
        let (started_utc, began) = (now_utc(), executor.now());
        let mut outcome = match executor.run(&spec, stop) {
            Err(error)
                if spec.tool.is_peer()
                    && !matches!(error.kind(), Kind::Interrupted | Kind::Refused) =>
            {
                return self.give_up(place.cell, &error, false);
            }
            outcome => outcome?,
        };
        if outcome.ended == TrialEnded::Interrupted {
            return Err(Error::interrupted());
        }
        let wall = executor.now().saturating_sub(began);
        if is_profiled {
            let profile = Profile::of(&spec, &outcome, wall);
            self.profiles.entry(place.cell).or_default().extend(profile);
            outcome.series = outcome.series.coarsened(INTERVAL_NS);
        }
        let RankReport {
            parts,
            clients,
            together,
        } = executor.by_ranks();
        let mut sample = sample::sample(
            &spec,
            place,
            &outcome,
            &executor.origin(&spec),
            started_utc,
            wall,
        );
        sample.together = together;
        let groups = sample::of_groups(&spec, &sample, &outcome);
        let clients = sample::of_clients(&spec.trial, &sample, clients);
        let histograms = sample::histograms_by_group(&outcome);
        let (file, series) = (&mut self.file, &outcome.series);
        let kept = match parts.is_empty() {
            true => file.add_sample_of_groups(&sample, &groups, &histograms, series),
            false => file.add_sample_in_parts(&sample, (&parts, &clients), &histograms, series),
        };
        self.phase.repetition.spend(wall);
        self.costs.add(place.cell, place.warmup, wall);
        self.trials += 1;
        if let Some(failure) = &outcome.failure {
            let error = Error::failed(sample::describe(failure));
            if spec.tool.is_peer() {
                let hung = matches!(failure, Failure::Program(program)
                    if matches!(program.end, ProgramEnd::Time(_)));
                return kept.and_then(|_| self.give_up(place.cell, &error, hung));
            }
            let error = error.within(name).hint(sample::remedy(failure));
            // The failed request comes first: what has failed it may have hit the run file too.
            return Err(match kept {
                Ok(_) => error,
                Err(trouble) => error.also(trouble.message()),
            });
        }
        kept?;
        self.tool_failures.worked(spec.tool);
        self.phase.add(place.cell, place.block, place.visit);
        if !sample.warmup {
            self.measured(place.cell, &sample, &groups);
        }
        let is_search = self.plan.experiment().seek.is_some();
        let progress = match is_search {
            true => self.progress_of_search(),
            false => self.progress(),
        };
        if is_search {
            let times = sample::histograms(&outcome).into_iter();
            let times = times.map(|(of, histogram)| (of, counted(histogram)));
            self.seen = Some((sample, times.collect()));
        }
        self.observer.trial_done(progress);
        Ok(())
    }

    /// Tells the user, and keeps it in the file.
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

    /// Keeps what was seen before the first trial, and tells what bears on this experiment.
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

    /// Says so when the budget cannot pay for the fewest trials, from the trials' own time bounds, or when these have none.
    pub(super) fn warn_about_time(&mut self) -> Result<()> {
        let messages = [
            self.plan.shortfall(),
            iolab_peers::beyond_budget(&self.plan),
        ];
        for message in messages.iter().flatten() {
            self.event(EventKind::Warning, message)?;
        }
        Ok(())
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

impl precondition::StepReporter for Session<'_> {
    fn step(&mut self, name: &str) {
        self.observer.trial_starts(name);
    }

    fn done(&mut self, message: &str) -> Result<()> {
        self.event(EventKind::Note, message)
    }
}
