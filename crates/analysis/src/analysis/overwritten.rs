//! How much of what a cell writes to was written before.

use std::collections::BTreeMap;

use iolab_record::{Cell, RunRecord, Sample};
use iolab_stats::SteadyLimits;

/// Bytes that the run had written to the target of each sample's cell before it, by sample id.
pub(super) fn written_before(record: &RunRecord) -> BTreeMap<i64, f64> {
    let target: BTreeMap<i64, Option<usize>> = record
        .cells
        .iter()
        .map(|cell| (cell.id, record.target_of(cell)))
        .collect();
    let mut written: BTreeMap<Option<usize>, f64> = BTreeMap::new();
    let samples = record.samples.iter();
    samples
        .map(|sample| {
            let target = target.get(&sample.cell).copied().flatten();
            let sum = written.entry(target).or_default();
            let before = *sum;
            *sum += sample.operations.write.bytes as f64;
            (sample.id, before)
        })
        .collect()
}

/// How often the region of a cell was written before the window of rounds that ends with its last trial.
pub(super) fn before_window(
    written: &BTreeMap<i64, f64>,
    cell: &Cell,
    trials: &[&Sample],
) -> Option<f64> {
    let trial = cell.trial();
    let measured = trials.iter().rev().filter(|sample| sample.is_measured());
    let window = measured.take(SteadyLimits::SNIA.window).last()?;
    let before = written.get(&window.id)?;
    (trial.writes() && trial.region > 0).then(|| before / trial.region as f64)
}
