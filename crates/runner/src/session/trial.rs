//! One trial of a run: carried out, made a sample, stored, and judged by how it ended.
//!
//! Submission of requests if a cell leaves it open (`batch = auto`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::executor::Executor;
use super::super::record::Last;
use super::super::sample::{self, VisitPosition};
use super::super::{fit, now_utc};
use super::{Session, StopFlags, check, snapshot};
use iolab_analysis::snapshot::LastTrial;
use iolab_plan::batch_probes::{self, PROBE, ROUNDS, STRATEGIES};
use iolab_plan::blocks::{group_seed, trial_seed};
use iolab_plan::cells::PlannedCell;
use iolab_record::{EndedBy, EventKind, Sample};
use iolab_runfile::{SampleParts, TrialCourse};
use iolab_workload::outcome::{Ended, Failure, Outcome, ProgramEnd};
use iolab_workload::settings::{CellSpec, Tool};
use iolab_workload::trial::{Batch, SyncPolicy, TrialLimit, TrialSpec};
use iolab_workload::units::counted;
use iolab_workload::{Error, Kind, Result};

/// A trial that came to an end.
struct Made {
    place: VisitPosition,
    cell: CellSpec,
    outcome: Outcome,
    started_utc: String,
    wall: Duration,
}

impl Session<'_> {
    /// Performs a trial and returns whether it succeeded. A failed trial of another tool does not fail the run.
    pub(super) fn trial(
        &mut self,
        place: VisitPosition,
        executor: &mut dyn Executor,
        stop: &StopFlags,
    ) -> Result<bool> {
        self.follow()?;
        self.record.last = None;
        let cell = place.cell;
        let filled = executor.filled(&self.record.plan.cells()[cell].spec);
        if !self.record.pays_writes(cell, filled) {
            self.record.closed.insert(cell);
            self.file.set_ended_by(cell as i64, Some(EndedBy::Writes))?;
            return Ok(false);
        }
        let Some(made) = self.make(place, executor, stop)? else {
            return Ok(false);
        };
        let ((whole, groups), kept) = self.store(&made, executor);
        let planned = &self.record.plan.cells()[place.cell];
        let cell = fit::record(place.cell, planned);
        self.last_trial = Some(LastTrial::of(&cell, &whole, self.around));
        self.record.add(place, made.wall, &whole, &groups);
        self.trials += 1;
        if let Some(failure) = &made.outcome.failure {
            return self.fail(&made, failure, kept).map(|()| false);
        }
        kept?;
        self.record.last = Some(Last {
            sample: whole,
            outcome: made.outcome,
        });
        Ok(true)
    }

    /// Carries a trial out; `None` if another tool could not begin with it, which is then given up.
    fn make(
        &mut self,
        place: VisitPosition,
        executor: &mut dyn Executor,
        stop: &StopFlags,
    ) -> Result<Option<Made>> {
        let cell = self.cell_of(place);
        self.tell_next(place);
        let began = executor.now();
        if !cell.idle.is_zero() {
            executor.pause(cell.idle, &stop.after_trial);
            check(&stop.after_trial)?;
        }
        let started_utc = now_utc();
        // The path changes if the file was moved.
        executor.keeps_in(self.file.path(), self.consent);
        let outcome = match executor.run(&cell, &stop.now) {
            Err(error) if is_of_peer(&cell, &error) => {
                self.give_up(place.cell, &error, false)?;
                return Ok(None);
            }
            outcome => outcome?,
        };
        if outcome.ended == Ended::Interrupted {
            return Err(Error::interrupted());
        }
        Ok(Some(Made {
            place,
            cell,
            outcome,
            started_utc,
            wall: executor.now().saturating_sub(began),
        }))
    }

    /// Tells the user which cell is measured next.
    fn tell_next(&mut self, place: VisitPosition) {
        let next = (place.cell, place.warmup);
        let snapshot = || snapshot(&self.record, next, self.last_trial);
        self.observer.trial_starts(&snapshot);
    }

    /// The cell of a trial, with the seeds of its place.
    fn cell_of(&self, VisitPosition { cell, block, .. }: VisitPosition) -> CellSpec {
        let mut spec = self.record.plan.cells()[cell].spec.clone();
        spec.trial.seed = trial_seed(self.record.seed, cell, block);
        for (number, group) in (1..).zip(&mut spec.groups) {
            group.spec.trial.seed = group_seed(spec.trial.seed, number);
        }
        spec
    }

    /// The cell of a place in words.
    fn name_of(&self, place: &VisitPosition) -> String {
        let plan = &self.record.plan;
        plan.describe(&plan.cells()[place.cell])
    }

    /// Makes and stores the sample of a trial and the samples of its groups. Also returns whether storing failed.
    fn store(
        &mut self,
        made: &Made,
        executor: &mut dyn Executor,
    ) -> ((Sample, Vec<Sample>), Result<()>) {
        let Made { cell, outcome, .. } = made;
        let ranks = executor.by_ranks();
        let mut whole = sample::sample(
            cell,
            made.place,
            outcome,
            sample::origin_of_clients(&ranks.clients).unwrap_or(executor.origin(cell)),
            ranks.region_bytes.unwrap_or_else(|| cell.bytes_used()),
            made.started_utc.clone(),
            made.wall,
        );
        whole.together = ranks.together;
        whole.drives = executor.drives();
        sample::tell_mixed_media(&mut whole, &ranks.clients);
        let groups = sample::of_groups(cell, &whole, outcome);
        let clients = sample::of_clients(&cell.trial, &whole, ranks.clients);
        let histograms = sample::histograms_by_group(outcome);
        let latency = sample::over_time(outcome);
        let course = TrialCourse {
            series: &outcome.series,
            latency: &latency,
        };
        // Ranks have no groups.
        let stored = SampleParts {
            groups: if ranks.parts.is_empty() { &groups } else { &[] },
            parts: &ranks.parts,
            clients: &clients,
        };
        let kept = (self.file).add_sample_of(&whole, stored, &histograms, course);
        ((whole, groups), kept.map(drop))
    }

    /// Handles a failed trial: it ends the run, unless another tool carried it out.
    fn fail(&mut self, made: &Made, failure: &Failure, kept: Result<()>) -> Result<()> {
        let error = Error::failed(sample::describe(failure));
        if made.cell.tool.is_peer() {
            kept?;
            return self.give_up(made.place.cell, &error, has_hung(failure));
        }
        // If nothing varies, a cell has no name but "every trial", and this one has failed.
        let error = match self.record.plan.factor_names().is_empty() {
            true => error,
            false => error.within(self.name_of(&made.place)),
        };
        let error = error.hint(sample::remedy(failure));
        // The failed request comes first: its cause may have hit the run file too.
        Err(match kept {
            Ok(()) => error,
            Err(trouble) => error.also(trouble.message()),
        })
    }
}

/// Whether an error is of another tool, and not the user's interrupt or a refusal.
fn is_of_peer(cell: &CellSpec, error: &Error) -> bool {
    cell.tool.is_peer() && !matches!(error.kind(), Kind::Interrupted | Kind::Refused)
}

/// Whether a tool had to be ended.
fn has_hung(failure: &Failure) -> bool {
    matches!(failure, Failure::Program(program) if matches!(program.end, ProgramEnd::Time(_)))
}

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
            spec.trial.seed = trial_seed(self.record.seed, id, u32::MAX);
            let began = executor.now();
            let choice = choose(executor, &spec, stop)?;
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

    /// The numbers of the cells for which `is_such` holds.
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

/// A probe that lasts this many times as long as it should, mostly with the requests of its beginning, only waits for these
/// requests. All strategies do the same then, and a thousand threads would be set up for each of the others. After a stall
/// there are many more requests.
const OUTLASTED: u32 = 3;

/// A round whose shortest probe lasts this many times as long as it should is the only one: large requests would spend the
/// time of trials on probes.
const SLOW: u32 = 2;

/// The strategy with the highest median IOPS, and the numbers in words; the first one if a probe shows no difference between them;
/// `None` when the probes were cut off.
pub(super) fn choose(
    executor: &mut dyn Executor,
    cell: &CellSpec,
    stop: &AtomicBool,
) -> Result<Option<(Batch, String)>> {
    let mut rates = [const { Vec::new() }; STRATEGIES.len()];
    let mut rounds = 0;
    let mut shortest = Duration::MAX;
    while rounds < ROUNDS && (rounds == 0 || shortest <= PROBE * SLOW) {
        rounds += 1;
        for (batch, rates) in STRATEGIES.iter().zip(&mut rates) {
            let mut probe = cell.clone();
            probe.trial.batch = *batch;
            probe.trial.verify = false;
            probe.trial.limit = TrialLimit {
                time: Some(PROBE),
                ..TrialLimit::default()
            };
            let outcome = executor.run(&probe, stop)?;
            if !outcome.ended.is_whole() {
                return Ok(None);
            }
            if is_outlasted(&outcome, &probe.trial) {
                let message = format!(
                    "batch={} not chosen by probes: the requests in flight outlast a probe of {} ms more than {OUTLASTED} times",
                    Batch::One,
                    PROBE.as_millis()
                );
                return Ok(Some((Batch::One, message)));
            }
            shortest = shortest.min(Duration::from_nanos(outcome.elapsed_ns));
            rates.push(outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64);
        }
    }
    let medians = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rounds / 2]
    });
    let best = (0..STRATEGIES.len())
        .rev()
        .max_by(|a, b| medians[*a].total_cmp(&medians[*b]))
        .unwrap_or(0);
    let numbers: Vec<String> = STRATEGIES
        .iter()
        .zip(medians)
        .map(|(batch, iops)| format!("{batch} {iops:.0}"))
        .collect();
    let message = format!(
        "batch={} chosen by {} of {} ms{}IOPS: {}",
        STRATEGIES[best],
        counted(rounds as u64, "probe"),
        PROBE.as_millis(),
        match rounds {
            1 => ", ",
            _ => " each, median ",
        },
        numbers.join(", ")
    );
    Ok(Some((STRATEGIES[best], message)))
}

/// Whether a probe mostly waited for its first requests. However slow the disk is, a few of these complete within the time,
/// and others follow them.
fn is_outlasted(outcome: &Outcome, trial: &TrialSpec) -> bool {
    Duration::from_nanos(outcome.elapsed_ns) > PROBE * OUTLASTED
        && outcome.requests() < trial.in_flight().saturating_mul(2)
}
