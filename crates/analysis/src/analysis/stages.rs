//! Time of a cell's requests by layer, from the trials that were traced; and what its writes wrote.

use std::collections::BTreeMap;

use iolab_record::environment::KEYS;
use iolab_record::{Cell, FaultKind, PreparationKind, PreparationStep, RunRecord, Sample};
use iolab_stats::{SteadyLimits, mean, median};
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, Stage, StageSummary, SyncCounts, TraceSummary,
};

/// Time of a cell's requests by stage.
#[derive(Debug, Clone, PartialEq)]
pub struct CellStages {
    /// Trials that were traced.
    pub traced: usize,
    /// Traced trials whose stages are known.
    pub known: usize,
    /// Fewest joined requests, and syncs after writes, of a trial with known stages.
    pub least: [u64; Timed::ALL.len()],
    /// Counts of syncs, over all trials with known stages.
    pub syncs: SyncCounts,
    /// Layers or devices that carried the requests out.
    pub carried_by: CarriedBy,
    /// Visibility of the journal in the trace; `None` without traced syncs.
    pub journal: Option<Journal>,
    /// Greatest share of requests of a trial that miss events.
    pub unjoined_share: f64,
    /// The last note that explains missing stages.
    pub note: Option<String>,
    /// Median over the trials of the mean time of a request, and of a sync, all its stages together, ns.
    pub mean_ns: [Option<f64>; Timed::ALL.len()],
    /// Each stage; `None` for one that no trial knows.
    pub stages: PerStage<Option<StageNumbers>>,
}

/// Requests or syncs, as the subject of a split by layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Requests, without the syncs that follow them.
    Requests,
    /// Syncs that follow writes.
    Syncs,
}

impl Timed {
    /// Both kinds of timed operations.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Syncs];

    /// Stages of its time, in the order in which it passes them if there is one.
    pub fn parts(self) -> &'static [Stage] {
        match self {
            Self::Requests => &Stage::PASSED,
            Self::Syncs => &Stage::SYNC,
        }
    }
}

/// A stage over the trials of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageNumbers {
    /// Median over the trials of the mean, ns.
    pub mean_ns: f64,
    /// Median over the trials of the median, ns.
    pub p50_ns: f64,
    /// Median over the trials of the 99th percentile, ns.
    pub p99_ns: f64,
    /// Share of the mean time of a request, or of a sync, by trial.
    pub shares: Vec<f64>,
    /// Share of the mean time of the slowest 1 % of the requests or syncs, by trial.
    pub tail_shares: Vec<f64>,
}

impl StageNumbers {
    /// Median over the trials of the stage's share of the mean time.
    pub fn share(&self) -> Option<f64> {
        median(&self.shares)
    }

    /// Mean over the trials of the stage's share of the mean time. Unlike medians, these shares add up to 1 over
    /// all stages.
    pub fn mean_share(&self) -> Option<f64> {
        mean(&self.shares)
    }

    /// Mean over the trials of the stage's share of the slowest requests.
    pub fn mean_tail_share(&self) -> Option<f64> {
        mean(&self.tail_shares)
    }

    /// Median over the trials of the stage's share of the slowest requests.
    pub fn tail_share(&self) -> Option<f64> {
        median(&self.tail_shares)
    }
}

impl CellStages {
    /// Stages over these trials; `None` if none was traced.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let traced = trials.iter().filter_map(|sample| sample.traced.as_deref());
        let traced: Vec<&TraceSummary> = traced.collect();
        let (known, missing): (Vec<&TraceSummary>, Vec<&TraceSummary>) = traced
            .iter()
            .partition(|trial| trial.stages.device.is_some());
        let missing = missing.iter().rfind(|trial| !trial.note.is_empty());
        let least = |timed: Timed| {
            let counts = known.iter().map(|trial| match timed {
                Timed::Requests => trial.counts.joined,
                Timed::Syncs => trial.counts.syncs.syncs,
            });
            counts.min().unwrap_or(0)
        };
        let shares = traced.iter().map(|trial| trial.counts.unjoined_share());
        (!traced.is_empty()).then(|| Self {
            traced: traced.len(),
            known: known.len(),
            least: Timed::ALL.map(least),
            syncs: known.iter().fold(SyncCounts::default(), |sum, trial| {
                sum.plus(trial.counts.syncs)
            }),
            carried_by: traced[0].carried_by,
            journal: known.iter().filter_map(|trial| trial.journal).max(),
            unjoined_share: shares.fold(0.0, f64::max),
            note: missing.map(|trial| trial.note.clone()),
            mean_ns: [&Stage::WHOLE[..], &Stage::SYNC[..]].map(|parts| whole_ns(&known, parts)),
            stages: PerStage::from_fn(|stage| numbers(&known, stage)),
        })
    }

    /// Median over the trials of their mean time over all stages, ns. The medians of the stages do not add up to
    /// it.
    pub fn mean_ns(&self, timed: Timed) -> Option<f64> {
        self.mean_ns[timed as usize]
    }

    /// Fewest requests, or syncs, of a trial whose stages are known.
    pub fn least(&self, timed: Timed) -> u64 {
        self.least[timed as usize]
    }

    /// Median over the trials of the share of a request's mean time that the host takes: all stages but the
    /// device.
    pub fn host_share(&self) -> Option<f64> {
        // Layers belong to this machine, and their time is known only together with the disks' time.
        if self.carried_by == CarriedBy::Layers {
            return None;
        }
        let device = self.stages.device.as_ref()?;
        let host: Vec<f64> = device.shares.iter().map(|share| 1.0 - share).collect();
        median(&host)
    }
}

/// Median over the trials of the sum of these stages' means; `None` where no trial has any.
fn whole_ns(trials: &[&TraceSummary], stages: &[Stage]) -> Option<f64> {
    let sum = |trial: &&TraceSummary| {
        let own = stages.iter().filter_map(|stage| trial.stages[*stage]);
        own.map(|stage| stage.mean_ns).reduce(|sum, one| sum + one)
    };
    let sums: Vec<f64> = trials.iter().filter_map(sum).collect();
    median(&sums)
}

fn numbers(trials: &[&TraceSummary], stage: Stage) -> Option<StageNumbers> {
    let own = trials.iter();
    let own = own.filter_map(|trial| Some((*trial, trial.stages[stage]?)));
    let own: Vec<(&TraceSummary, StageSummary)> = own.collect();
    let of = |value: fn(&StageSummary) -> f64| {
        median(&own.iter().map(|(_, one)| value(one)).collect::<Vec<f64>>())
    };
    let shares = |value: fn(&StageSummary) -> f64| {
        let shares = own.iter().filter_map(|(trial, one)| {
            let whole = stage.whole().iter();
            let whole = whole.filter_map(|stage| Some(value(trial.stages[*stage].as_ref()?)));
            let whole: f64 = whole.sum();
            (whole > 0.0).then(|| value(one) / whole)
        });
        shares.collect()
    };
    Some(StageNumbers {
        mean_ns: of(|stage| stage.mean_ns)?,
        p50_ns: of(|stage| stage.p50_ns as f64)?,
        p99_ns: of(|stage| stage.p99_ns as f64)?,
        shares: shares(|stage| stage.mean_ns),
        tail_shares: shares(|stage| stage.tail_mean_ns),
    })
}

/// The sum over all trials of a cell whose data was read back, including failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellVerified {
    /// Number of trials whose data was read back, or a part of it.
    pub trials: u64,
    /// Verified trials that read back all data that every group wrote, and did not end early.
    pub whole: u64,
    /// Number of trials with wrong data.
    pub failed: u64,
    /// Number of blocks read back.
    pub blocks: u64,
    /// Number of bytes of the verified blocks.
    pub bytes: u64,
    /// Bytes that may have come from the page cache instead of storage, as far as known.
    pub cached_bytes: u64,
    /// Number of trials with an unknown number of such bytes.
    pub cache_unknown: u64,
    /// Number of faulty blocks, in the order of [`FaultKind::ALL`].
    pub faults: [u64; FaultKind::ALL.len()],
}

impl CellVerified {
    /// The sum over some trials of a cell; `None` where nothing was read back.
    pub(super) fn of(cell: &Cell, trials: &[&Sample]) -> Option<Self> {
        let groups = cell.spec.groups.iter().filter(|group| !group.is_idle());
        let mut writers = groups.filter(|group| group.trial().writes());
        let of_all_groups = writers.all(|group| group.trial().verify);
        let verified = trials.iter().filter_map(|sample| {
            let one = sample.verified?;
            // A trial that failed for another reason may have ended before all was read back.
            let is_whole = of_all_groups && (sample.ok || one.faulty_blocks() > 0);
            Some(Self {
                trials: 1,
                whole: u64::from(is_whole),
                failed: u64::from(one.faulty_blocks() > 0),
                blocks: one.blocks,
                bytes: one.bytes,
                cached_bytes: one.cached_bytes.unwrap_or(0).min(one.bytes),
                cache_unknown: u64::from(one.cached_bytes.is_none()),
                faults: one.faults.map(|faults| faults.blocks),
            })
        });
        verified.reduce(|sum, one| sum.plus(&one))
    }

    /// The sum of two results.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let faults =
            std::array::from_fn(|kind| self.faults[kind].saturating_add(other.faults[kind]));
        Self {
            trials: self.trials + other.trials,
            whole: self.whole + other.whole,
            failed: self.failed + other.failed,
            blocks: self.blocks.saturating_add(other.blocks),
            bytes: self.bytes.saturating_add(other.bytes),
            cached_bytes: self.cached_bytes.saturating_add(other.cached_bytes),
            cache_unknown: self.cache_unknown + other.cache_unknown,
            faults,
        }
    }

    /// The kinds of faults found, with their numbers of blocks.
    pub fn kinds(&self) -> impl Iterator<Item = (FaultKind, u64)> {
        let numbers = self.faults;
        FaultKind::ALL
            .iter()
            .map(move |kind| (*kind, numbers[*kind as usize]))
            .filter(|(_, blocks)| *blocks > 0)
    }
}

/// Whether writes to a target may slow down once its region was overwritten: not on platters without a write cache.
pub(super) fn matters(record: &RunRecord, target: usize) -> bool {
    let environment = &record.environment;
    let is_rotational = environment.get_of(target, &KEYS.device_rotational) == Some(true);
    let cache = environment.get_of(target, &KEYS.device_write_cache);
    !(is_rotational && cache.is_some_and(|state| state.trim() == "write through"))
}

/// The steps of a preparation that write.
pub(super) fn writing(record: &RunRecord) -> impl Iterator<Item = &PreparationStep> + Clone {
    let steps = record.preparation.iter();
    steps.filter(|step| match step.kind {
        PreparationKind::Purge | PreparationKind::Trim => false,
        PreparationKind::Sequential | PreparationKind::Random | PreparationKind::Round => true,
    })
}

/// Number of times that `bytes` overwrite the region that the requests of a cell can reach; `None` if the cell
/// does not write.
pub(super) fn times(cell: &Cell, bytes: f64) -> Option<f64> {
    let reached = cell.trial().overwritten_bytes();
    (reached > 0).then(|| bytes / reached as f64)
}

/// Bytes that the run had written to the target of each sample's cell before it, by its preparation and by trials, by sample id.
pub(super) fn written_before(record: &RunRecord) -> BTreeMap<i64, f64> {
    let targets = record.cells.iter();
    let targets = targets.map(|cell| (cell.id, record.targets_of(cell)));
    let targets: BTreeMap<i64, Vec<usize>> = targets.collect();
    let number = |name: &str| record.targets().position(|target| target == name);
    let mut steps = writing(record).peekable();
    // By target: targets that are written together share the bytes of their trials, and are prepared one by one.
    let mut prepared: BTreeMap<usize, f64> = BTreeMap::new();
    let mut written: BTreeMap<&[usize], f64> = BTreeMap::new();
    let samples = record.samples.iter();
    samples
        .map(|sample| {
            // Times of a run file have one format, so that their text sorts by time.
            while let Some(step) = steps.next_if(|step| step.at_utc <= sample.started_utc) {
                let number = step.target.as_deref().and_then(number).unwrap_or(0);
                *prepared.entry(number).or_default() += step.bytes as f64;
            }
            let targets = targets.get(&sample.cell).map_or(&[][..], Vec::as_slice);
            let by_steps: f64 = targets.iter().filter_map(|one| prepared.get(one)).sum();
            let by_trials = written.entry(targets).or_default();
            let before = by_steps + *by_trials;
            *by_trials += sample.operations.write.bytes as f64;
            (sample.id, before)
        })
        .collect()
}

/// Number of times that the region of a cell was written before the window of rounds that ends with its last
/// trial.
pub(super) fn before_window(
    written: &BTreeMap<i64, f64>,
    cell: &Cell,
    trials: &[&Sample],
) -> Option<f64> {
    let measured = trials.iter().rev().filter(|sample| sample.is_measured());
    let window = measured.take(SteadyLimits::SNIA.window).last()?;
    times(cell, *written.get(&window.id)?)
}
