//! Claims about slow requests: cells whose latency has a long tail.

use super::effect::confidence;
use super::series::id;
use super::{Claim, Point, Quantity, Standing, kind};
use crate::analysis::{Analysis, CellAnalysis, DoubtKind, TRIALS_MIN};
use iolab_stats::mean_interval;
use iolab_workload::response::Response;

/// Ratio of p99 to p50 above which a tail is long, by its interval.
const LONG: f64 = 3.0;

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

/// The longest tail of the cells that count; `None` if none is shown to be long.
pub fn longest_tail(
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
        let of_all = latency[Response::P99]? / latency[Response::Latency]?;
        let ratio = match (low..=high).contains(&of_all) {
            true => of_all,
            false => f64::midpoint(interval.low, interval.high).exp(),
        };
        (low.min(of_all) > LONG * (1.0 + f64::EPSILON.sqrt())).then_some((ratio, (low, high)))
    };
    let judged = measured().filter(|cell| is_judged(cell) && counts(cell));
    let all = judged.filter_map(|cell| Some((cell, long(cell)?)));
    let all: Vec<_> = all.collect();
    let (cell, (ratio, interval)) = all.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let latency = cell.latency?;
    let quantile = |of| Some(Point::main(Quantity::Of(of), latency[of]?));
    let quantiles = [Response::Latency, Response::P99].map(quantile);
    let count = |standing, cells: usize| (cells > 0).then(|| Point::count(standing, "cell", cells));
    let unjudged = analysis.cells.iter().filter(is_unjudged).count();
    let counts = [
        count(Standing::Alike, all.len() - 1),
        count(Standing::NotJudged, unjudged),
    ];
    let points = quantiles.into_iter().chain(counts).flatten();
    let claim = Claim::new(&kind::LONG_TAIL, vec![id(run, cell)]).with_points(points);
    Some(claim.with_ratio(*ratio, Some(*interval)))
}
