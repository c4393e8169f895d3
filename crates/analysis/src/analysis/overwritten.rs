//! How often a cell's region was written before.

use std::collections::BTreeMap;

use iolab_record::environment::KEYS;
use iolab_record::{Cell, PreparationKind, PreparationStep, RunRecord, Sample};
use iolab_stats::SteadyLimits;

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
