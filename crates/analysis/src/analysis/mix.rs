//! Reads and writes of a cell that does both.

use iolab_stats::Summary;

use super::{Latency, quantiles, summarise};
use iolab_record::{Cell, Direction, Sample};

/// The two directions of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// The reads.
    pub reads: DirectionSummary,
    /// The writes.
    pub writes: DirectionSummary,
}

/// One direction, over the measured trials; `None` without requests.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionSummary {
    /// MB/s.
    pub throughput: Option<Summary>,
    /// Requests per second.
    pub iops: Option<Summary>,
    /// Quantiles of its response or service times, ns.
    pub latency: Option<Latency>,
}

impl Mix {
    /// Of the measured trials of a cell; `None` where it only reads or only writes.
    pub(super) fn of(cell: &Cell, trials: &[&Sample]) -> Option<Self> {
        let trial = cell.trial();
        let both = trial.reads() && trial.writes() && !cell.spec.runs_program();
        both.then(|| Self {
            reads: DirectionSummary::of(trials, |sample| &sample.reads),
            writes: DirectionSummary::of(trials, |sample| &sample.writes),
        })
    }
}

impl DirectionSummary {
    fn of(trials: &[&Sample], direction: fn(&Sample) -> &Direction) -> Self {
        let per_ns = |amount: u64, sample: &Sample| {
            (amount > 0 && sample.elapsed_ns > 0).then(|| amount as f64 / sample.elapsed_ns as f64)
        };
        Self {
            throughput: summarise(trials, |s| Some(per_ns(direction(s).bytes, s)? * 1e3)),
            iops: summarise(trials, |s| Some(per_ns(direction(s).requests, s)? * 1e9)),
            latency: quantiles(trials, |s| direction(s).waited()),
        }
    }
}
