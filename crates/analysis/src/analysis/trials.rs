//! The trials of a run: their targets, their order, their cells and levels, and the analyses made from them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::concurrency::{self, Ceilings};
use super::{Analysis, CellAnalysis, Context, doubt_kind, groups, stages};
use crate::disturbance::throttled_ns;
use crate::io_limit;
use crate::trial_values::{distinct, median_of};
use iolab_plan::blocks;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::KEYS;
use iolab_record::{
    Asked, Cell, DriveLog, EventKind, RunRecord, Sample, ServedBy, ShownLatency, TargetKind,
};
use iolab_workload::names::TargetName;
use iolab_workload::trial::Rate;

/// The trials of a run, by cell, without its warm-ups.
#[derive(Default)]
pub(super) struct Trials<'a> {
    whole: BTreeMap<i64, Vec<&'a Sample>>,
    /// By cell and number of the group.
    of_groups: BTreeMap<(i64, u32), Vec<&'a Sample>>,
    pub(super) warm_ups: BTreeMap<i64, usize>,
}

impl<'a> Trials<'a> {
    pub(super) fn of(record: &'a RunRecord) -> Self {
        let mut all = Self::default();
        // Failed warm-ups count as failures of their cell.
        let is_warm_up = |sample: &Sample| sample.warmup && sample.ok;
        for sample in &record.samples {
            match is_warm_up(sample) {
                true => *all.warm_ups.entry(sample.cell).or_default() += 1,
                false => all.whole.entry(sample.cell).or_default().push(sample),
            }
        }
        for sample in record.group_samples.iter().filter(|s| !is_warm_up(s)) {
            let group = (sample.cell, sample.group);
            all.of_groups.entry(group).or_default().push(sample);
        }
        all
    }

    pub(super) fn of_cell(&self, cell: i64) -> &[&'a Sample] {
        self.whole.get(&cell).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_group(&self, cell: i64, group: u32) -> &[&'a Sample] {
        let own = self.of_groups.get(&(cell, group));
        own.map_or(&[], Vec::as_slice)
    }
}

/// Results of each cell that was visited, and of its groups.
pub(super) fn summaries(
    record: &RunRecord,
    context: &Context<'_>,
    trials: &Trials<'_>,
    timed: &dyn Fn(u32) -> ShownLatency,
) -> Vec<CellAnalysis> {
    let gaps = record.events.iter();
    let gaps = gaps.filter(|event| event.kind == EventKind::Gap);
    let gaps = gaps.filter_map(|event| Some((event.cell?, event.message.as_str())));
    let gaps: BTreeMap<i64, &str> = gaps.collect();
    let group = record.experiment.response_group.as_deref();
    let called = in_levels(record);
    let visited = record.cells.iter();
    let visited = visited.filter(|cell| !is_unvisited(record, cell));
    let analysed = visited.map(|cell| {
        let (samples, gap) = (trials.of_cell(cell.id), gaps.get(&cell.id).copied());
        let whole = context.cell(&called(cell), samples, gap, context.timed);
        let own = |number| trials.of_group(cell.id, number);
        let mut analysed = context.with_groups(whole, group, timed, own);
        analysed.warm_ups = trials.warm_ups.get(&cell.id).copied().unwrap_or(0);
        analysed
    });
    analysed.collect()
}

/// Compares the cells with each other and with their ceilings, and raises their flags.
pub(super) fn judge(
    record: &RunRecord,
    context: &Context<'_>,
    trials: &Trials<'_>,
    cells: &mut [CellAnalysis],
) {
    concurrency::judge(cells, &record.experiment.factors);
    concurrency::judge_rate(cells, &record.experiment.factors);
    let targets = 0..=record.further_targets.len();
    let ceilings = targets.map(|number| Ceilings::of(&record.environment, number));
    let ceilings: Vec<Ceilings> = ceilings.collect();
    let parts = groups::PartsByRank::of(record);
    let written = stages::written_before(record);
    let group = record.experiment.response_group.as_deref();
    for cell in cells {
        // Several targets together have no common ceiling.
        let target = record.target_of(&cell.cell);
        cell.efficiency = target.and_then(|number| ceilings[number].efficiency(cell));
        let id = cell.cell.id;
        let own = trials.of_cell(id);
        cell.io_limit = io_limit::reached_limit(record, &cell.cell, own);
        cell.flags = doubt_kind::flags(context, cell, own);
        cell.ranks = parts.of_cell(context, &cell.cell, own);
        if target.is_none_or(|number| stages::matters(record, number)) {
            cell.overwritten = stages::before_window(&written, &cell.cell, own);
        }
        groups::flag(context, cell, group, own, |number| {
            trials.of_group(id, number)
        });
    }
}

/// Whether a search for a rate skipped this starting rate, so that the cell does not count as missing.
fn is_unvisited(record: &RunRecord, cell: &Cell) -> bool {
    let asked = record.experiment.asked.as_ref();
    asked.is_some_and(|question| question.of == Asked::Limit)
        && !record.samples.is_empty()
        && record.samples.iter().all(|sample| sample.cell != cell.id)
}

/// Marks the cells that read, and only read, from storage while its volatile cache may still hold writes of other cells.
/// Writes that are written out between trials do not count.
pub(super) fn mark_reads_after_writes(record: &RunRecord, cells: &mut [CellAnalysis]) {
    // Requests to memory or a file server do not involve the disk's cache.
    let elsewhere = [ServedBy::NotStorage, ServedBy::PageCache, ServedBy::Network];
    let reaches_storage = |cell: &&mut CellAnalysis| {
        let served = cell.served.as_ref();
        served.is_some_and(|served| !served.trials.iter().all(|(one, _)| elsewhere.contains(one)))
    };
    let may_hold = |target: Option<&TargetName>| {
        let number = record.target_number(target);
        let cache = record.environment.get_of(number, &KEYS.device_write_cache);
        cache.is_none_or(|state| state.trim() != "write through")
    };
    let leaves = |cell: &CellAnalysis| blocks::leaves_writes(&cell.cell.spec);
    if !cells.iter().any(leaves) {
        return;
    }
    let takes_part =
        |cell: &&mut CellAnalysis| leaves(cell) || cell.cell.spec.writing_trials().is_empty();
    let used = cells.iter_mut().filter(takes_part).filter(reaches_storage);
    // Each until it has left writes, or found some.
    let mut open: BTreeMap<i64, &mut CellAnalysis> =
        used.map(|cell| (cell.cell.id, cell)).collect();
    let mut left: BTreeSet<Option<TargetName>> = BTreeSet::new();
    // A failed trial lacks this sync because it ended early, not because its run file has none.
    let own = record.samples.iter();
    for sample in own.filter(|sample| sample.ok && sample.region.owed_sync_ns.is_none()) {
        let Some(cell) = open.get_mut(&sample.cell) else {
            continue;
        };
        let mut targets = cell.cell.spec.targets().into_iter();
        let leaves = leaves(cell);
        if leaves {
            let held = targets.by_ref().filter(|target| may_hold(*target));
            left.extend(held.map(|target| target.cloned()));
        } else if cell.cell.spec.writing_trials().is_empty() {
            cell.reads_after_writes = targets.any(|target| left.contains(&target.cloned()));
        }
        if leaves || cell.reads_after_writes {
            open.remove(&sample.cell);
        }
    }
}

/// The order in which the trials of a run follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOrder {
    /// Blocks of one trial of each cell, in random order, the first block as a warm-up.
    BlocksAfterWarmUp,
    /// Blocks of one trial of each cell, in random order, without a warm-up.
    Blocks,
    /// Rounds of one trial of each cell, in the order of the definition, until the last of them are steady.
    Rounds,
    /// One trial of each cell, from its first request on.
    OnlyTrials,
}

impl TrialOrder {
    /// Order of the trials of an experiment.
    pub(super) fn of(experiment: &Experiment) -> Self {
        let design = &experiment.design;
        if design.precondition.rounds_of_cells().is_some() {
            Self::Rounds
        } else if !design.seeks_precision() {
            Self::OnlyTrials
        } else if design.warm_ups() > 0 {
            Self::BlocksAfterWarmUp
        } else {
            Self::Blocks
        }
    }
}

/// Sorts sizes and rates that a run has added, whose cells come last, into the grid. Other factors keep the order of their
/// levels.
pub(super) fn order_by_size(cells: &mut [CellAnalysis], factors: &[String]) {
    let all: Vec<Vec<String>> = cells.iter().map(|cell| cell.cell.levels.clone()).collect();
    let levels = |factor| all.iter().filter_map(move |own| own.get(factor).cloned());
    let ranks = (0..factors.len()).map(|factor| distinct(levels(factor)));
    let ranks: Vec<Vec<String>> = ranks.collect();
    cells.sort_by_cached_key(|cell| {
        let trial = cell.cell.trial();
        let levels = factors.iter().zip(&ranks).zip(&cell.cell.levels);
        let places = levels.map(|((factor, seen), level)| match factor.as_str() {
            "bs" => trial.bs,
            "rate" => trial.rate().and_then(Rate::requests).unwrap_or(0),
            _ => seen.iter().position(|other| other == level).unwrap_or(0) as u64,
        });
        places.collect::<Vec<u64>>()
    });
}

impl Analysis {
    /// The cell of this id; `None` if the analysis has none, for instance for a rate that a search skipped.
    pub fn cell(&self, id: i64) -> Option<&CellAnalysis> {
        self.cells.iter().find(|cell| cell.cell.id == id)
    }

    /// The levels of the cell of this id, in the order of [`Analysis::factors`]; empty without such a cell.
    pub fn levels_of(&self, id: i64) -> &[String] {
        self.cell(id).map_or(&[], |cell| &cell.cell.levels)
    }

    /// The levels of a factor, by its place in [`Analysis::factors`], in the order of the cells; empty without
    /// such a factor.
    pub fn levels(&self, factor: usize) -> Vec<&str> {
        let mut seen = HashSet::new();
        let cells = self.cells.iter();
        let levels = cells.filter_map(|cell| Some(cell.cell.levels.get(factor)?.as_str()));
        levels.filter(|level| seen.insert(*level)).collect()
    }
}

/// A target of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredTarget {
    /// Absolute path of the target; `model:NAME` for a model.
    pub path: String,
    /// Name that the user gave, else the path.
    pub name: String,
    /// Kind of target, such as a file or a device.
    pub kind: TargetKind,
    /// The device that has its bytes, as the kernel names it.
    pub device: Option<String>,
    /// The whole disk.
    pub disk: Option<String>,
    /// The model name that the disk reports, or the title of a modelled disk.
    pub model: Option<String>,
    /// Size of the disk, or of a modelled target, bytes.
    pub bytes: Option<u64>,
    /// Type of its file system.
    pub file_system: Option<String>,
}

/// All targets of a run, its own first.
pub(super) fn all(record: &RunRecord) -> Vec<MeasuredTarget> {
    let named = record.targets().zip(record.target_names());
    let named = named.zip(record.target_kinds().zip(record.target_bytes()));
    type Named<'a> = ((&'a str, String), (TargetKind, u64));
    let of = |(number, ((path, name), (kind, bytes))): (usize, Named<'_>)| {
        let text = |key| record.environment.get_of(number, key);
        let is_model = kind == TargetKind::Model;
        MeasuredTarget {
            path: path.to_owned(),
            name,
            kind,
            device: text(&KEYS.device),
            disk: text(&KEYS.device_disk),
            model: text(if is_model {
                &KEYS.model_title
            } else {
                &KEYS.device_model
            }),
            bytes: match is_model {
                true => Some(bytes),
                false => record.environment.get_of(number, &KEYS.device_bytes),
            },
            file_system: text(&KEYS.file_system),
        }
    };
    named.enumerate().map(of).collect()
}

/// Replaces targets in the levels of a cell by the names that the user gave.
fn in_levels(record: &RunRecord) -> impl Fn(&Cell) -> Cow<'_, Cell> {
    let factors = &record.experiment.factors;
    let has_names = !record.targets().eq(record.target_names());
    let place = factors.iter().position(|name| name == "target");
    let place = place.filter(|_| has_names);
    move |cell| {
        let mut called = Cow::Borrowed(cell);
        if let Some(place) = place.filter(|place| *place < cell.levels.len()) {
            let name = record.target_called(cell.spec.target.as_ref());
            called.to_mut().levels[place] = name;
        }
        called
    }
}

/// Counts of drives over the measured trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellDrives {
    /// Bytes that hosts wrote to all drives; `None` if a drive does not count them.
    pub host_write_bytes: Option<u64>,
    /// Bytes written to their flash memory; `None` if a drive does not count them.
    pub media_write_bytes: Option<u64>,
    /// Whether one of both counts is missing that a drive has, or went back.
    pub lacks_writes: bool,
    /// Bytes that the trials wrote.
    pub written_bytes: u64,
    /// Time for which a drive throttled itself, of several the longest of each trial, ns.
    pub throttled_ns: u64,
    /// Times that drives throttled themselves.
    pub throttles: u64,
    /// Whether a count of throttling is missing, or went back.
    pub lacks_throttling: bool,
    /// Time of the trials, ns.
    pub elapsed_ns: u64,
}

impl CellDrives {
    /// The counts over these trials; `None` if a trial has none.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let is_known = !trials.is_empty() && trials.iter().all(|trial| !trial.drives.is_empty());
        let all = || trials.iter().flat_map(|trial| &trial.drives);
        let of_all = |of: fn(&DriveLog) -> Option<u64>| {
            let mut counts = all().map(of);
            counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
        };
        let of_trials = |of: &dyn Fn(&Sample) -> u64| {
            let counts = trials.iter().map(|trial| of(trial));
            counts.fold(0, u64::saturating_add)
        };
        is_known.then(|| Self {
            host_write_bytes: of_all(|log| log.host_write_bytes),
            media_write_bytes: of_all(|log| log.media_write_bytes),
            lacks_writes: all().any(DriveLog::lacks_writes),
            written_bytes: of_trials(&|trial| trial.operations.write.bytes),
            throttled_ns: of_trials(&|trial| throttled_ns(trial).unwrap_or(0)),
            throttles: all().map(DriveLog::throttles).fold(0, u64::saturating_add),
            lacks_throttling: all().any(DriveLog::lacks_throttling),
            elapsed_ns: of_trials(&|trial| trial.elapsed_ns),
        })
    }
}

/// The origin of a cell's bytes, over its measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct CellServed {
    /// Number of trials per verdict, in the order of [`ServedBy`]'s variants.
    pub trials: Vec<(ServedBy, usize)>,
    /// Median over the trials of the device's share; `None` where unknown.
    pub device_fraction: Option<f64>,
    /// The most frequent reason.
    pub reason: String,
    /// Whether this is one of several groups, and the origin is known only for all together.
    pub is_shared: bool,
}

impl CellServed {
    /// The verdict of all trials; `None` where they differ.
    pub fn unanimous(&self) -> Option<ServedBy> {
        match self.trials.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    /// Whether any trial had this verdict.
    pub fn any(&self, verdict: ServedBy) -> bool {
        self.trials.iter().any(|(v, _)| *v == verdict)
    }
}

/// The combined verdicts of a cell's trials.
pub(super) fn served(trials: &[&Sample]) -> Option<CellServed> {
    let count = |verdict| {
        let of = |s: &&&Sample| s.verdict.served_by == verdict;
        trials.iter().filter(of).count()
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in trials {
        *reasons.entry(&sample.verdict.reason).or_default() += 1;
    }
    let reason = reasons.iter().max_by_key(|(_, n)| **n)?.0;
    let counts = ServedBy::ALL.iter();
    let counts = counts.map(|verdict| (*verdict, count(*verdict)));
    Some(CellServed {
        trials: counts.filter(|(_, n)| *n > 0).collect(),
        device_fraction: median_of(trials, |s| s.verdict.device_fraction),
        reason: (*reason).to_owned(),
        is_shared: false,
    })
}
