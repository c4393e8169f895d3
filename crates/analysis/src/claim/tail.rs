//! Slow requests: the ratio of the 99th percentile of latency to the median.

use iolab_stats::{mean, mean_interval};

use super::effect::{CellId, confidence};
use crate::analysis::{Analysis, CellAnalysis, Flag, TRIALS_MIN};

/// A tail is long where the interval of p99 over p50 lies above this ratio.
const LONG: f64 = 3.0;

/// The longest tail of a run that is shown to be long.
#[derive(Debug, Clone, PartialEq)]
pub struct LongTail {
    /// The cell.
    pub cell: CellId,
    /// Factor and level of the cell, where other cells differ in them.
    pub at: Vec<(String, String)>,
    /// p99 over p50, geometric mean over the trials.
    pub ratio: f64,
    /// Its interval, simultaneous over the cells.
    pub interval: (f64, f64),
    /// p50 and p99, ns; each the median over the trials.
    pub quantiles: (f64, f64),
    /// Cells whose tail is shown to be long.
    pub cells: usize,
    /// Measured cells that are not judged: disturbed, with several operations, behind their rate, with too few trials, or with too few requests in
    /// each for a 99th percentile.
    pub unjudged: usize,
}

/// Whether the tail of a cell is its own: slow requests of a disturbed cell may have another cause, and behind a rate response times grow
/// with the length of the trial.
fn is_judged(cell: &CellAnalysis) -> bool {
    let is_its_own = !cell.is_disturbed() && !cell.flags.contains(&Flag::RateNotHeld);
    cell.tail_ratios.len() >= TRIALS_MIN && cell.mix.is_none() && is_its_own
}

/// Whether a cell was measured and is not judged.
fn is_unjudged(cell: &&CellAnalysis) -> bool {
    cell.latency.is_some() && !(cell.tail.is_some() && is_judged(cell))
}

/// The longest tail; `None` where none is shown to be long.
pub(super) fn long_tail(analysis: &Analysis, run: usize) -> Option<LongTail> {
    let measured = || analysis.cells.iter().filter(|cell| cell.tail.is_some());
    let count = measured().count();
    // The mean of the logarithms, about which the interval lies.
    let long = |cell: &CellAnalysis| {
        let logs: Vec<f64> = cell.tail_ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = mean_interval(&logs, confidence(count))?;
        let (low, high) = (interval.low.exp(), interval.high.exp());
        let ratio = mean(&logs)?.exp();
        (low > LONG * (1.0 + f64::EPSILON.sqrt())).then_some((ratio, (low, high)))
    };
    let judged = measured().filter(|cell| is_judged(cell));
    let all: Vec<_> = judged
        .filter_map(|cell| Some((cell, long(cell)?)))
        .collect();
    let (cell, (ratio, interval)) = all.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let latency = cell.latency?;
    let varying = analysis.factors.iter().zip(&cell.cell.levels);
    Some(LongTail {
        cell: CellId {
            run,
            cell: cell.cell.id,
        },
        at: varying
            .map(|(factor, level)| (factor.clone(), level.clone()))
            .collect(),
        ratio: *ratio,
        interval: *interval,
        quantiles: (latency.p50_ns, latency.p99_ns),
        cells: all.len(),
        unjudged: analysis.cells.iter().filter(is_unjudged).count(),
    })
}
