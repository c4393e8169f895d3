//! Values of the trials of a cell, taken together.

use iolab_record::Sample;
use iolab_stats::{Summary, median, summary};

/// The values of the trials that have one.
pub(crate) fn values(trials: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    trials.iter().filter_map(|s| value(s)).collect()
}

pub(crate) fn summarise(
    trials: &[&Sample],
    value: impl Fn(&Sample) -> Option<f64>,
) -> Option<Summary> {
    summary(&values(trials, value))
}

pub(crate) fn median_of(trials: &[&Sample], value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(&values(trials, value))
}

/// A total of a trial divided by its requests; `None` without requests.
pub(crate) fn per_request(total: f64, sample: &Sample) -> Option<f64> {
    (sample.requests() > 0).then(|| total / sample.requests() as f64)
}
