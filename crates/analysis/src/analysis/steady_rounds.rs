//! Rounds that a run repeats until the last of them are steady, and the test of a standard that it follows.

use std::collections::{BTreeMap, BTreeSet};

use iolab_plan::experiment::Experiment;
use iolab_plan::experiment::Standard;
use iolab_plan::precondition::{Round, SteadyRounds};
use iolab_plan::standard::{Deviation, Medium, TargetFacts};
use iolab_record::environment::KEYS;
use iolab_record::{PreparationKind, RunRecord, Sample, ShownLatency, TargetKind};
use iolab_stats::{Steadiness, SteadyLimits, steady_state};
use iolab_workload::settings::CellSpec;

/// Rounds of a run on the way to a steady state.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyAnalysis {
    /// What the rounds are.
    pub of: RoundsOf,
    /// What was asked.
    pub asked: SteadyRounds,
    /// Rounds that were made.
    pub rounds: usize,
    /// What is tracked over them.
    pub tracked: Vec<Tracked>,
    /// The test of a standard, with its deviations.
    pub standard: Option<StandardFollowed>,
}

/// What the rounds of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsOf {
    /// Trials of all cells: those of the last window are the measured ones.
    Cells,
    /// Random writes before the first trial.
    Writes,
}

/// A quantity over the rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracked {
    /// Whose it is.
    pub of: TrackedOf,
    /// Its value in each round, in the order of time: the response of a cell, or requests per second.
    pub values: Vec<f64>,
    /// How steady the last window is; `None` where there are too few rounds.
    pub steadiness: Option<Steadiness>,
}

/// Whose quantity is tracked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackedOf {
    /// The response of the cell of this id.
    Cell(i64),
    /// Writes to this target, as the plan names it; `None` for the only one.
    Target(Option<String>),
}

/// The test of a standard that a run follows.
#[derive(Debug, Clone, PartialEq)]
pub struct StandardFollowed {
    /// The test.
    pub test: Standard,
    /// Where the run deviates from it.
    pub deviations: Vec<Deviation>,
}

impl StandardFollowed {
    /// Whether the test is smaller than the standard's: shorter, or on less of the device.
    pub fn is_scaled(&self) -> bool {
        self.deviations.iter().any(|deviation| deviation.scales())
    }
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
    /// Whether the last window is steady in all that is tracked.
    pub fn is_reached(&self) -> bool {
        let reached = |one: &Tracked| one.steadiness.is_some_and(|steady| steady.reached);
        !self.tracked.is_empty() && self.tracked.iter().all(reached)
    }

    /// The least steady of what is tracked: the widest range; `None` where no window is complete.
    pub fn worst(&self) -> Option<(&Tracked, Steadiness)> {
        let judged = self.tracked.iter();
        let judged = judged.filter_map(|one| Some((one, one.steadiness?)));
        judged.max_by(|(_, a), (_, b)| {
            let key = |steady: &Steadiness| (!steady.reached, steady.range);
            key(a).0.cmp(&key(b).0).then(a.range.total_cmp(&b.range))
        })
    }

    /// Of a run, whose whole trials show this latency.
    pub(super) fn of(
        record: &RunRecord,
        experiment: &Experiment,
        timed: ShownLatency,
    ) -> Option<Self> {
        let asked = experiment.design.precondition.steady?;
        let (of, values) = match asked.round {
            Round::Cells => (RoundsOf::Cells, of_cells(record, experiment, timed)),
            Round::Writes(_) => (RoundsOf::Writes, of_writes(record)),
        };
        let limits = limits(&asked);
        let tracked: Vec<Tracked> = values
            .into_iter()
            .map(|(of, values)| Tracked {
                steadiness: steady_state(&values, limits),
                of,
                values,
            })
            .collect();
        let values = tracked.iter().map(|one| one.values.len());
        let rounds = match of {
            // A cell may lack values.
            RoundsOf::Cells => blocks(record),
            RoundsOf::Writes => values.max()?,
        };
        let standard = experiment.standard.map(|test| {
            let cells: Vec<&CellSpec> = record.cells.iter().map(|cell| &cell.spec).collect();
            StandardFollowed {
                test,
                deviations: test.deviations(experiment, &cells, facts(record)),
            }
        });
        Some(Self {
            of,
            asked,
            rounds,
            tracked,
            standard,
        })
    }
}

/// Rounds with a trial of any cell.
fn blocks(record: &RunRecord) -> usize {
    let done = record.samples.iter().filter(|sample| sample.ok);
    done.map(|sample| sample.block)
        .collect::<BTreeSet<u32>>()
        .len()
}

/// The response of each tracked cell over all rounds, also those that are excluded as the way to the steady state.
fn of_cells(
    record: &RunRecord,
    experiment: &Experiment,
    timed: ShownLatency,
) -> Vec<(TrackedOf, Vec<f64>)> {
    let tracked = experiment.tracked(record.cells.iter().map(|cell| &cell.spec));
    let value = |sample: &Sample| sample.value(experiment.response, timed);
    let ids = tracked.into_iter().map(|place| record.cells[place].id);
    let mut rounds: BTreeMap<i64, Vec<f64>> = ids.map(|id| (id, Vec::new())).collect();
    for sample in record.samples.iter().filter(|sample| sample.ok) {
        if let Some(own) = rounds.get_mut(&sample.cell) {
            own.extend(value(sample));
        }
    }
    let rounds = rounds.into_iter();
    rounds
        .map(|(id, values)| (TrackedOf::Cell(id), values))
        .collect()
}

/// The requests per second of each round of writes, on each target, in the last session.
fn of_writes(record: &RunRecord) -> Vec<(TrackedOf, Vec<f64>)> {
    let mut rounds: BTreeMap<Option<&str>, Vec<f64>> = BTreeMap::new();
    let steps = record.preparation.iter();
    for step in steps.filter(|step| step.kind == PreparationKind::Round && step.ok) {
        let own = rounds.entry(step.target.as_deref()).or_default();
        // A resumed run begins anew.
        if step.number <= 1 {
            own.clear();
        }
        own.push(step.iops());
    }
    let rounds = rounds.into_iter();
    rounds
        .map(|(target, values)| (TrackedOf::Target(target.map(str::to_owned)), values))
        .collect()
}

/// What a run file tells of its target.
fn facts(record: &RunRecord) -> TargetFacts {
    let medium = match record.run.target_kind {
        TargetKind::Model => Medium::Model,
        TargetKind::BlockDevice => Medium::Device,
        TargetKind::Scratch | TargetKind::File | TargetKind::CharDevice | TargetKind::Imported => {
            Medium::File
        }
    };
    let write_cache = record.environment.get(&KEYS.device_write_cache);
    let passes = record.preparation.iter();
    let passes = passes.filter(|step| step.kind == PreparationKind::Sequential);
    let trims = record.preparation.iter();
    let mut trims = trims.filter(|step| step.kind == PreparationKind::Trim);
    TargetFacts {
        medium: Some(medium),
        bytes: Some(record.run.target_bytes).filter(|bytes| *bytes > 0),
        write_cache: write_cache.map(|state| state.trim() == "write back"),
        trimmed: trims.next_back().map(|step| step.ok),
        pass_bs: passes.filter_map(|step| step.bs).min(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_are_not_changed_have_the_limits_of_the_standard() {
        assert_eq!(limits(&SteadyRounds::default()), SteadyLimits::SNIA);
    }
}
