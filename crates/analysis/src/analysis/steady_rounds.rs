//! Rounds that a run repeats until the last of them are steady, and the test of a standard that it follows.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{CellAnalysis, stages};
use iolab_plan::experiment::{Experiment, Standard};
use iolab_plan::precondition::{Round, SteadyRounds};
use iolab_plan::standard::{Deviation, Medium, TargetFacts, Written};
use iolab_record::environment::KEYS;
use iolab_record::{
    Cell, EndedBy, EventKind, PreparationKind, PreparationStep, RunRecord, Sample, ShownLatency,
    TargetKind,
};
use iolab_stats::{Steadiness, SteadyLimits, mean, steady_state};
use iolab_workload::settings::CellSpec;

/// Rounds of a run on the way to a steady state.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyAnalysis {
    /// The requested rounds: their kind, window and limits.
    pub asked: SteadyRounds,
    /// Number of completed rounds. A round of cells is complete if every cell that gets trials has one in it.
    pub rounds: usize,
    /// Number of judged rounds: those since the targets were last prepared.
    pub judged: usize,
    /// Result of the rounds.
    pub end: RoundsEnd,
    /// Reason why the rounds of cells ended; `None` for rounds of writes, whose number is fixed.
    pub ended_by: Option<EndedBy>,
    /// How often the reachable range of a writing cell was written before the last window, by the preparation
    /// and the rounds since; the least over the cells. `None` if no cell writes, and for rounds of writes.
    pub overwritten: Option<f64>,
    /// Series that are tracked over the rounds.
    pub tracked: Vec<Tracked>,
}

/// Result of rounds that were to become steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsEnd {
    /// The last window is steady in all tracked series.
    Steady,
    /// The last window is not steady, and no rounds remain.
    NotSteady,
    /// No rounds remain, and they are too few for a window.
    TooFew,
    /// No rounds remain, and a tracked series lacks values.
    LacksValues,
    /// The run did not end by its rounds, so that no window was chosen.
    Unended,
}

/// A quantity over the rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracked {
    /// Subject of the series.
    pub of: TrackedOf,
    /// Value of the tracked quantity in each round, in the order of time: the response of a cell, or requests
    /// per second.
    pub values: Vec<f64>,
    /// Steadiness of the last window; `None` if there are too few rounds.
    pub steadiness: Option<Steadiness>,
}

impl Tracked {
    /// Ascending order of unsteadiness: series that are not judged, those within the limits, those outside; each
    /// by range.
    pub fn by_unsteadiness(&self, other: &Self) -> Ordering {
        let [own, other] = [self, other].map(|one| {
            let found = one.steadiness;
            found.map_or((false, 0.0), |found| (!found.reached, found.range))
        });
        own.0.cmp(&other.0).then(own.1.total_cmp(&other.1))
    }

    /// Values in the last window; all values if there are fewer rounds.
    pub fn last_window(&self, asked: &SteadyRounds) -> &[f64] {
        let first = self.values.len().saturating_sub(asked.window as usize);
        &self.values[first..]
    }

    /// The mean of the last window; `None` without a value above zero.
    pub fn window_mean(&self, asked: &SteadyRounds) -> Option<f64> {
        mean(self.last_window(asked)).filter(|mean| *mean > 0.0)
    }
}

/// Subject of a tracked series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackedOf {
    /// The response of the cell of this id.
    Cell(i64),
    /// Writes to this target, as the plan names it; `None` for the only one.
    Target(Option<String>),
}

/// The limits of a window of rounds.
pub fn limits(asked: &SteadyRounds) -> SteadyLimits {
    SteadyLimits {
        window: asked.window as usize,
        range: asked.range,
        slope: asked.slope,
    }
}

impl SteadyAnalysis {
    /// Whether the last window is steady in all tracked series.
    pub fn is_reached(&self) -> bool {
        self.end == RoundsEnd::Steady
    }

    /// Whether a last window was judged, and was not steady.
    pub fn is_missed(&self) -> bool {
        self.end == RoundsEnd::NotSteady
    }

    /// Whether a round is a trial of each cell, so that the last window holds the measured trials.
    pub fn is_of_cells(&self) -> bool {
        self.asked.round == Round::Cells
    }

    /// The least steady series, with the widest range; `None` if no window is complete.
    pub fn worst(&self) -> Option<&Tracked> {
        let judged = self.tracked.iter().filter(|one| one.steadiness.is_some());
        judged.max_by(|a, b| a.by_unsteadiness(b))
    }

    /// Analysis of a run's rounds, by the latency that whole trials show.
    pub(super) fn of(
        record: &RunRecord,
        experiment: &Experiment,
        timed: ShownLatency,
    ) -> Option<Self> {
        let asked = experiment.design.precondition.steady?;
        match asked.round {
            Round::Cells => Some(Self::of_cells(record, experiment, timed, asked)),
            Round::Writes(_) => Self::of_writes(record, asked),
        }
    }

    /// Rounds of trials. As the run itself does, judges cells that get trials, in the complete rounds of the
    /// last session that prepared the targets. A window never spans two preparations.
    fn of_cells(
        record: &RunRecord,
        experiment: &Experiment,
        timed: ShownLatency,
        asked: SteadyRounds,
    ) -> Self {
        let limits = limits(&asked);
        let open = open_cells(record);
        let done = || record.samples.iter().filter(|sample| sample.ok);
        let prepared = prepared_at(record);
        let is_earlier = |sample: &&Sample| sample.started_utc.as_str() < prepared;
        let earlier = done().filter(is_earlier).map(|sample| sample.block + 1);
        let judged_from = earlier.max().unwrap_or(0);
        let mut by_round: BTreeMap<u32, BTreeSet<i64>> = BTreeMap::new();
        for sample in done().filter(|sample| open.contains(&sample.cell)) {
            let own = by_round.entry(sample.block).or_default();
            own.insert(sample.cell);
        }
        by_round.retain(|_, cells| cells.len() == open.len());
        let rounds: Vec<u32> = by_round.into_keys().collect();
        let judged = rounds.iter().filter(|round| **round >= judged_from).count();
        let ids = experiment.tracked(record.cells.iter().map(|cell| &cell.spec));
        let ids = ids.into_iter().map(|place| record.cells[place].id);
        let of_cell = |id: i64| {
            let own = || done().filter(|sample| sample.cell == id);
            let value = |sample: &Sample| sample.value(experiment.response, timed);
            let judged = own().filter(|sample| sample.block >= judged_from);
            let judged: Option<Vec<f64>> = judged.map(value).collect();
            Tracked {
                of: TrackedOf::Cell(id),
                values: own().filter_map(value).collect(),
                steadiness: judged.and_then(|values| steady_state(&values, limits)),
            }
        };
        let tracked: Vec<Tracked> = ids.filter(|id| open.contains(id)).map(of_cell).collect();
        let ended = record.cells.iter().filter(|cell| open.contains(&cell.id));
        let mut ended_by = ended.map(|cell| cell.ended_by);
        let by_user = |end: Option<EndedBy>| matches!(end, None | Some(EndedBy::User));
        let first = ended_by.clone().next().flatten();
        let end = match () {
            () if first.is_none() || ended_by.clone().any(by_user) => RoundsEnd::Unended,
            () if ended_by.all(|end| end == Some(EndedBy::Steady)) => RoundsEnd::Steady,
            () => end_without_steady_state(judged, &tracked, limits),
        };
        let window = rounds.get(rounds.len().saturating_sub(limits.window));
        Self {
            asked,
            overwritten: window.and_then(|first| least_overwritten(record, &open, *first)),
            rounds: rounds.len(),
            judged,
            end,
            ended_by: first,
            tracked,
        }
    }

    /// Rounds of writes before the first trial, by their requests per second on each target in the last session; `None` before
    /// the first round.
    fn of_writes(record: &RunRecord, asked: SteadyRounds) -> Option<Self> {
        let limits = limits(&asked);
        let mut rounds: BTreeMap<Option<&str>, Vec<f64>> = BTreeMap::new();
        let steps = record.preparation.iter();
        for step in steps.filter(|step| step.kind == PreparationKind::Round && step.ok) {
            let own = rounds.entry(step.target.as_deref()).or_default();
            // A resumed run counts its rounds anew.
            if step.number <= 1 {
                own.clear();
            }
            own.push(step.iops());
        }
        let tracked = rounds.into_iter().map(|(target, values)| Tracked {
            of: TrackedOf::Target(target.map(str::to_owned)),
            steadiness: steady_state(&values, limits),
            values,
        });
        let tracked: Vec<Tracked> = tracked.collect();
        let rounds = tracked.iter().map(|one| one.values.len()).max()?;
        let reached = |one: &Tracked| one.steadiness.is_some_and(|steady| steady.reached);
        Some(Self {
            asked,
            rounds,
            judged: rounds,
            end: match tracked.iter().all(reached) {
                true => RoundsEnd::Steady,
                false => end_without_steady_state(rounds, &tracked, limits),
            },
            ended_by: None,
            overwritten: None,
            tracked,
        })
    }
}

fn end_without_steady_state(judged: usize, tracked: &[Tracked], limits: SteadyLimits) -> RoundsEnd {
    match () {
        () if judged < limits.window => RoundsEnd::TooFew,
        () if tracked.iter().any(|one| one.steadiness.is_none()) => RoundsEnd::LacksValues,
        () => RoundsEnd::NotSteady,
    }
}

/// The cells that get trials; a round is one trial of each.
fn open_cells(record: &RunRecord) -> BTreeSet<i64> {
    let events = record.events.iter();
    let gaps = events.filter(|event| event.kind == EventKind::Gap);
    let closed: BTreeSet<i64> = gaps.filter_map(|event| event.cell).collect();
    let cells = record.cells.iter().map(|cell| cell.id);
    cells.filter(|id| !closed.contains(id)).collect()
}

/// Time at which the last session began, which prepared the targets anew. Times of a run file have one format,
/// so that their text sorts by time.
fn prepared_at(record: &RunRecord) -> &str {
    let resumed = record.events.iter().rev();
    let mut resumed = resumed.filter(|event| event.kind == EventKind::Resume);
    resumed.next().map_or("", |event| event.at_utc.as_str())
}

/// Writes to the targets since these were last prepared: steps of that preparation, and trials.
fn since_prepared(
    record: &RunRecord,
) -> (
    impl Iterator<Item = &PreparationStep> + Clone,
    impl Iterator<Item = &Sample> + Clone,
) {
    let prepared = prepared_at(record);
    let steps = stages::writing(record);
    let steps = steps.filter(move |step| step.at_utc.as_str() >= prepared);
    let trials = record.samples.iter();
    let trials = trials.filter(move |sample| sample.started_utc.as_str() >= prepared);
    (steps, trials)
}

/// How often the reachable range of each of these writing cells was written before the round `first`, since its
/// target was prepared and by the preparation; the least over the cells.
fn least_overwritten(record: &RunRecord, open: &BTreeSet<i64>, first: u32) -> Option<f64> {
    let (steps, trials) = since_prepared(record);
    let target = record.cells.iter();
    let target = target.map(|cell| (cell.id, record.target_of(cell)));
    let target: BTreeMap<i64, Option<usize>> = target.collect();
    let of_cell = |cell: &Cell| {
        let own = cell.spec.target.as_ref().map(|name| name.as_str());
        let is_own = |target: Option<&str>| target.is_none() || own.is_none() || target == own;
        let steps = steps.clone().filter(|step| is_own(step.target.as_deref()));
        let trials = trials.clone().filter(|sample| {
            sample.block < first && target.get(&sample.cell) == target.get(&cell.id)
        });
        let prepared: u64 = steps.map(|step| step.bytes).sum();
        let written: u64 = trials.map(|sample| sample.operations.write.bytes).sum();
        stages::times(cell, prepared.saturating_add(written) as f64)
    };
    let cells = record.cells.iter().filter(|cell| open.contains(&cell.id));
    cells.filter_map(of_cell).min_by(f64::total_cmp)
}

/// The test of a standard that a run follows.
#[derive(Debug, Clone, PartialEq)]
pub struct StandardFollowed {
    /// The test.
    pub test: Standard,
    /// Deviations of the run from the standard.
    pub deviations: Vec<Deviation>,
}

impl StandardFollowed {
    /// The test that an experiment follows, with its known deviations; `None` if it follows none.
    pub fn of(experiment: &Experiment, cells: &[&CellSpec], target: TargetFacts) -> Option<Self> {
        experiment.standard.map(|test| Self {
            test,
            deviations: test.deviations(experiment, cells, target),
        })
    }

    /// The test that a run followed, with deviations that its rounds show.
    pub(super) fn of_run(
        record: &RunRecord,
        experiment: &Experiment,
        steady: Option<&SteadyAnalysis>,
        cells_analysed: &[CellAnalysis],
    ) -> Option<Self> {
        let cells: Vec<&CellSpec> = record.cells.iter().map(|cell| &cell.spec).collect();
        let ended_steady = steady.is_some_and(SteadyAnalysis::is_reached);
        let mut found = Self::of(experiment, &cells, facts(record, ended_steady))?;
        let mut around = cells_analysed.iter().map(|cell| &cell.disturbance);
        if around.any(|around| around.left_in_storage_cache().is_some()) {
            found.deviations.push(Deviation::WrittenOut);
        }
        Some(found)
    }

    /// Whether its limits and tracked series are the standard's. Otherwise steady rounds are not its steady state.
    pub fn keeps_limits(&self) -> bool {
        let decides = |one: &Deviation| matches!(one, Deviation::Limits | Deviation::Tracked);
        !self.deviations.iter().any(decides)
    }

    /// Whether the test is smaller than the standard's: shorter, or on less of the device.
    pub fn is_scaled(&self) -> bool {
        self.deviations.iter().any(|deviation| deviation.scales())
    }
}

/// Facts about the target of a run file.
fn facts(record: &RunRecord, ended_steady: bool) -> TargetFacts {
    let medium = match record.run.target_kind {
        TargetKind::Model => Medium::Model,
        TargetKind::BlockDevice => Medium::Device,
        _ => Medium::File,
    };
    let write_cache = record.environment.get(&KEYS.device_write_cache);
    let steps = |kind: PreparationKind| {
        let steps = record.preparation.iter();
        steps.filter(move |step| step.kind == kind)
    };
    let passes = steps(PreparationKind::Sequential);
    // The last preparation of each target counts: a resumed run prepares its targets again.
    let all_took = |kind: PreparationKind| {
        let last: BTreeMap<_, bool> = steps(kind).map(|step| (&step.target, step.ok)).collect();
        (!last.is_empty()).then(|| last.into_values().all(|ok| ok))
    };
    // The whole device counts, whatever part of it the run was given.
    let of_disk = record.environment.get(&KEYS.device_bytes);
    let of_disk = of_disk.filter(|_| medium == Medium::Device);
    let bytes = of_disk.or(Some(record.run.target_bytes));
    let bytes = bytes.filter(|bytes| *bytes > 0);
    TargetFacts {
        medium: Some(medium),
        bytes,
        write_cache: write_cache.map(|state| state.trim() == "write back"),
        purged: all_took(PreparationKind::Purge),
        trimmed: all_took(PreparationKind::Trim),
        pass_bs: passes.filter_map(|step| step.bs).min(),
        written: bytes.map(|bytes| written(record, bytes, ended_steady)),
    }
}

/// Amount that the run wrote since its targets were last prepared, for a target of `target_bytes`.
fn written(record: &RunRecord, target_bytes: u64, ended_steady: bool) -> Written {
    let (steps, trials) = since_prepared(record);
    let of_steps: f64 = steps.map(|step| step.bytes as f64).sum();
    let of_trials = trials.clone();
    let of_trials = of_trials.map(|sample| sample.operations.write.bytes as f64);
    let of_trials: f64 = of_trials.sum();
    let elapsed = trials.map(|sample| sample.elapsed_ns);
    Written {
        fills: (of_steps + of_trials) / target_bytes as f64,
        time: Duration::from_nanos(elapsed.fold(0, u64::saturating_add)),
        ended_steady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_rounds_have_limits_of_the_standard() {
        assert_eq!(limits(&SteadyRounds::default()), SteadyLimits::SNIA);
    }
}
