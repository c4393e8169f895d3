//! Slow requests: the ratio of the 99th percentile of latency to the median.

use std::time::Duration;

use iolab_plan::suspect::QUANTILE_REQUESTS;
use iolab_stats::mean_interval;
use iolab_workload::response::Response;

use super::Claim;
use super::effect::confidence;
use super::kind;
use super::phenomenon::{Phenomenon, PhenomenonKind, Tail};
use super::point::{Point, Quantity, Standing};
use super::series::id;
use crate::analysis::{Analysis, CellAnalysis, DoubtKind, TRIALS_MIN};

/// Ratio of p99 to p50 above which a tail is long, by its interval.
const LONG: f64 = 3.0;

/// Reason why slow requests cannot be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailObstacle {
    /// Requests are made at a rate, and wait for late ones however few are in flight.
    HasRate,
    /// Trials end by a rule of their own, or each fills a new file.
    OwnBounds,
}

/// Reason why slow requests of such a cell cannot be explained; `None` if they can.
fn obstacle(cell: &CellAnalysis) -> Option<TailObstacle> {
    let trial = cell.cell.trial();
    if trial.has_rate() {
        return Some(TailObstacle::HasRate);
    }
    trial.has_own_bounds().then_some(TailObstacle::OwnBounds)
}

/// Reason why a long tail cannot be explained; `None` if it can, and for other claims.
pub(super) fn unexplainable(claim: &Claim, run: &Analysis) -> Option<TailObstacle> {
    let cell = claim
        .cells
        .first()
        .filter(|_| claim.kind == &kind::LONG_TAIL)?;
    obstacle(run.cell(cell.cell)?)
}

/// A tail as a difference between two quantiles of its cell; `None` if the cell is missing, or was not
/// timed.
fn phenomenon(tail: &Claim, run: &Analysis) -> Option<Phenomenon> {
    let (id, ratio) = (*tail.cells.first()?, tail.ratio?);
    let [p50, p99, ..] = tail.points.as_slice() else {
        return None;
    };
    let cell = run.cell(id.cell)?;
    let trial = cell.cell.trial();
    let in_flight = trial.in_flight_of_all() as f64;
    let seconds = |seconds: f64| {
        let time = Duration::try_from_secs_f64(seconds).ok()?;
        // The time is a setting and appears on pages: whole milliseconds.
        Some(Duration::from_millis(time.as_millis() as u64 + 1))
    };
    let iops = cell.median(Response::Iops)?;
    // Even with few requests in flight.
    let enough = seconds(QUANTILE_REQUESTS * in_flight / iops)?;
    let took = seconds(cell.median(Response::Elapsed)? / 1e9)?;
    let size = ratio.interval?.0.ln();
    Some(Phenomenon {
        kind: PhenomenonKind::Quantiles(Tail {
            quantiles: (p50.value, p99.value),
            iops,
            time: took.max(enough),
        }),
        ..Phenomenon::of_cells([id; 2], ratio.ratio, size, None)
    })
}

/// Whether the tail of a cell is its own. Slow requests of a disturbed cell may have another cause, and response
/// times of a missed rate grow with the length of the trial.
fn is_judged(cell: &CellAnalysis) -> bool {
    let is_its_own = !cell.is_disturbed() && !cell.flags.contains(&DoubtKind::RateNotHeld);
    cell.tail_ratios.len() >= TRIALS_MIN && cell.mix.is_none() && is_its_own
}

/// Whether a cell was measured and is not judged.
fn is_unjudged(cell: &&CellAnalysis) -> bool {
    cell.latency.is_some() && !(cell.tail.is_some() && is_judged(cell))
}

/// Whether a cell may have slow requests that its run does not show, because it was not timed or is not judged.
pub fn leaves_tails_open(cell: &CellAnalysis) -> bool {
    cell.latency.is_none() || is_unjudged(&cell)
}

/// The longest tail; `None` if none is shown to be long.
pub(super) fn long_tail(analysis: &Analysis, run: usize) -> Option<Claim> {
    longest(analysis, run, |_| true)
}

/// The longest tail of a run that can be explained.
pub(super) fn explainable(run: &Analysis) -> Option<Phenomenon> {
    phenomenon(&longest(run, 0, |cell| obstacle(cell).is_none())?, run)
}

fn longest(
    analysis: &Analysis,
    run: usize,
    counts: impl Fn(&CellAnalysis) -> bool,
) -> Option<Claim> {
    let measured = || analysis.cells.iter().filter(|cell| cell.tail.is_some());
    let count = measured().count();
    // The mean of the logarithms, about which the interval lies.
    let long = |cell: &CellAnalysis| {
        let logs: Vec<f64> = cell.tail_ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = mean_interval(&logs, confidence(count))?;
        let (low, high) = (interval.low.exp(), interval.high.exp());
        let latency = cell.latency?;
        let ratio = latency.p99_ns / latency.p50_ns;
        let interval = (low.min(ratio), high.max(ratio));
        (interval.0 > LONG * (1.0 + f64::EPSILON.sqrt())).then_some((ratio, interval))
    };
    let judged = measured().filter(|cell| is_judged(cell) && counts(cell));
    let all: Vec<_> = judged
        .filter_map(|cell| Some((cell, long(cell)?)))
        .collect();
    let (cell, (ratio, interval)) = all.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let latency = cell.latency?;
    let quantile = |of, ns| Point::main(Quantity::Of(of), ns);
    let quantiles = [
        quantile(Response::Latency, latency.p50_ns),
        quantile(Response::P99, latency.p99_ns),
    ];
    let count = |standing, cells: usize| (cells > 0).then(|| Point::count(standing, "cell", cells));
    let unjudged = analysis.cells.iter().filter(is_unjudged).count();
    let counts = [
        count(Standing::Alike, all.len() - 1),
        count(Standing::NotJudged, unjudged),
    ];
    let points = quantiles.into_iter().chain(counts.into_iter().flatten());
    let claim = Claim::new(&kind::LONG_TAIL, vec![id(run, cell)]);
    Some(
        claim
            .with_ratio(*ratio, Some(*interval))
            .with_points(points),
    )
}
