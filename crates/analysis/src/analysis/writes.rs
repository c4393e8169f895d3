//! Writes of trials: how often a region was written, what caches keep, and whether it reads back.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use iolab_plan::experiment::Experiment;
use iolab_record::environment::KEYS;
use iolab_record::{Cell, EndedBy, FaultKind, PreparationKind, PreparationStep, RunRecord, Sample};
use iolab_stats::SteadyLimits;

/// The sum over all trials of a cell whose data was read back, including failed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
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
    #[serde(serialize_with = "by_kind")]
    #[schemars(with = "BTreeMap<String, u64>")]
    pub faults: [u64; FaultKind::ALL.len()],
}

/// The faults that were found, by the names of their kinds.
fn by_kind<S: Serializer>(faults: &[u64; FaultKind::ALL.len()], to: S) -> Result<S::Ok, S::Error> {
    let found = FaultKind::ALL.into_iter().zip(faults);
    to.collect_map(
        found
            .filter(|(_, blocks)| **blocks > 0)
            .map(|(kind, blocks)| (kind.name(), blocks)),
    )
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
                faults: FaultKind::ALL.map(|kind| one.of(kind).blocks),
            })
        });
        verified.reduce(|sum, one| sum.plus(&one))
    }

    /// The sum of two results.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let faults = FaultKind::ALL.map(|kind| {
            let place = kind as usize;
            self.faults[place].saturating_add(other.faults[place])
        });
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
            .into_iter()
            .map(move |kind| (kind, numbers[kind as usize]))
            .filter(|(_, blocks)| *blocks > 0)
    }
}

/// Share of the budget from which the time is reported.
const SHARE: f64 = 0.1;

/// Time that a run spent on writing out what trials had left in caches without a sync. Present only if it
/// exceeds a tenth of the budget and of the trials themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOut {
    /// Between the trials, ns.
    pub took_ns: u64,
    /// Time of the trials themselves, ns.
    pub trials_ns: u64,
    /// Whether the budget ended the repetition of a cell.
    pub cut_short: bool,
    /// Whether the number of trials ended the run, so that no budget accounts for the time.
    pub is_unpaid: bool,
}

impl WriteOut {
    /// Write-out time of a run with this definition.
    pub(super) fn of(record: &RunRecord, experiment: &Experiment) -> Option<Self> {
        let total = |ns: &dyn Fn(&Sample) -> u64| {
            record.samples.iter().map(ns).fold(0, u64::saturating_add)
        };
        let took_ns = total(&|sample| sample.region.owed_sync_ns.unwrap_or(0));
        let trials_ns = total(&|sample| sample.elapsed_ns);
        let is_unpaid = experiment.design.is_counted();
        let budget = match is_unpaid {
            true => 0.0,
            false => experiment.design.budget.as_nanos() as f64,
        };
        // The trials that each cell gets anyway may take longer than the budget.
        let paid = budget.max(trials_ns as f64);
        let most = paid * SHARE;
        let mut cells = record.cells.iter();
        (took_ns as f64 > most).then(|| Self {
            took_ns,
            trials_ns,
            cut_short: cells.any(|cell| cell.ended_by == Some(EndedBy::Budget)),
            is_unpaid,
        })
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
    let targets: BTreeMap<i64, Vec<usize>> = record
        .cells
        .iter()
        .map(|cell| (cell.id, record.targets_of(cell)))
        .collect();
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
