//! The operations of a cell that has several.

use iolab_stats::Summary;

use super::{Latency, TAIL_REQUESTS_MIN, quantiles};
use crate::trial_values::summarise;
use iolab_record::{Cell, Operation, OperationSummary, PerOperation, Sample, ShownLatency};

/// The operations of a mix; `None` for those without requests.
pub type Mix = PerOperation<Option<OperationNumbers>>;

/// Results for one operation over the measured trials; `None` without requests.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationNumbers {
    /// MB/s.
    pub throughput: Option<Summary>,
    /// Requests per second.
    pub iops: Option<Summary>,
    /// Quantiles of its response or service times, ns.
    pub latency: Option<Latency>,
    /// Whether some trial has enough of its requests for a 99th percentile that differs from the maximum.
    pub has_tail: bool,
}

/// The mix in the measured trials of a cell; `None` for a single operation, unless other cells of the run have several.
pub(super) fn mix(cell: &Cell, trials: &[&Sample], timed: ShownLatency) -> Option<Mix> {
    let trial = cell.trial();
    let asked = |operation: &&Operation| trial.requests(**operation);
    let several = timed != ShownLatency::Own || Operation::ALL.iter().filter(asked).count() > 1;
    let several = several && !cell.spec.runs_program();
    let of = |operation| {
        let numbers = || OperationNumbers::of(trials, |sample| &sample.operations[operation]);
        trial.requests(operation).then(numbers)
    };
    several.then(|| Mix::from_fn(of))
}

impl OperationNumbers {
    fn of(trials: &[&Sample], summary: impl Fn(&Sample) -> &OperationSummary) -> Self {
        let per_ns = |amount: u64, sample: &Sample| {
            (amount > 0 && sample.elapsed_ns > 0).then(|| amount as f64 / sample.elapsed_ns as f64)
        };
        Self {
            throughput: summarise(trials, |s| Some(per_ns(summary(s).bytes, s)? * 1e3)),
            iops: summarise(trials, |s| Some(per_ns(summary(s).requests, s)? * 1e9)),
            latency: quantiles(trials, |s| summary(s).waited()),
            has_tail: trials
                .iter()
                .any(|s| summary(s).requests >= TAIL_REQUESTS_MIN),
        }
    }
}
