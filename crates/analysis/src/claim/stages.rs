//! Where the time of requests goes, and where the slowest ones come from.

use iolab_stats::{Interval, median_interval};
use iolab_workload::stages::Stage;

use super::effect::{CellId, confidence};
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis, CellStages, StageNumbers};

/// The stages that a request passes one after the other, delivery in its parts.
const PASSED: [Stage; 6] = [
    Stage::Admission,
    Stage::Queue,
    Stage::Device,
    Stage::Completion,
    Stage::CpuWait,
    Stage::Reaping,
];
/// Fewest requests of a trial whose slowest 1 % are looked at.
const REQUESTS_MIN: u64 = crate::analysis::TAIL_REQUESTS_MIN;

/// The stage that takes most of the time of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Largest {
    /// The stage.
    pub stage: Stage,
    /// Its share: the median over the trials.
    pub share: f64,
    /// The interval of that, simultaneous over the cells and over all requests and the slowest ones.
    pub interval: (f64, f64),
}

/// Where the time of a cell's requests goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeByLayer {
    /// The cell; of those that were traced the one with the slowest requests.
    pub cell: CellId,
    /// Trials that it rests on.
    pub trials: usize,
    /// The mean time of a request: the median over the trials of the sum of the stages, ns.
    pub mean_ns: f64,
    /// What takes most of it.
    pub mean: Largest,
    /// What takes most of the time of the slowest 1 % of the requests; `None` where trials have too few.
    pub tail: Option<Largest>,
    /// The share of each stage of the mean, largest first.
    pub shares: Vec<(Stage, f64)>,
}

/// Where the time goes of the traced cell whose 99th percentile is greatest, where its trials suffice for an interval.
pub(super) fn time_by_layer(analysis: &Analysis, run: usize) -> Option<TimeByLayer> {
    let traced = || {
        let cells = analysis.cells.iter();
        cells.filter_map(|cell| Some((cell, cell.stages.as_ref()?)))
    };
    let confidence = confidence(2 * traced().count());
    let p99 = |cell: &CellAnalysis| cell.latency.map_or(0.0, |latency| latency.p99_ns);
    let all = traced().filter_map(|(cell, stages)| {
        let mean = largest(stages, confidence, |numbers| &numbers.shares)?;
        Some((cell, stages, mean))
    });
    let (cell, stages, mean) = all.max_by(|a, b| p99(a.0).total_cmp(&p99(b.0)))?;
    let known = |stage: &Stage| Some((*stage, stages.stages[*stage].as_ref()?.share()?));
    let mut shares: Vec<(Stage, f64)> = PASSED.iter().filter_map(known).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sums = Stage::WHOLE.iter();
    let has_tail = stages.requests_min >= REQUESTS_MIN;
    Some(TimeByLayer {
        cell: id(run, cell),
        trials: stages.known,
        mean_ns: sums
            .filter_map(|stage| Some(stages.stages[*stage].as_ref()?.mean_ns))
            .sum(),
        mean,
        tail: has_tail
            .then(|| largest(stages, confidence, |numbers| &numbers.tail_shares))
            .flatten(),
        shares,
    })
}

/// The stage with the largest share, with the interval of that.
fn largest(
    stages: &CellStages,
    confidence: f64,
    shares: fn(&StageNumbers) -> &Vec<f64>,
) -> Option<Largest> {
    let of = |stage: &Stage| {
        let shares = shares(stages.stages[*stage].as_ref()?);
        let Interval { low, high, .. } = median_interval(shares, confidence)?;
        Some(Largest {
            stage: *stage,
            share: iolab_stats::median(shares)?,
            interval: (low, high),
        })
    };
    let all = PASSED.iter().filter_map(of);
    all.max_by(|a, b| a.share.total_cmp(&b.share))
}
