//! Slow requests: how far the 99th percentile of latency lies from the median one.

use iolab_stats::mean_interval;

use super::effect::{CellId, confidence};
use crate::analysis::{Analysis, CellAnalysis, Flag, TRIALS_MIN};

/// The 99th percentile over the median above which a tail is long, but for rounding.
const LONG: f64 = 3.0;

/// The longest tail of a run that is shown to be long.
#[derive(Debug, Clone, PartialEq)]
pub struct LongTail {
    /// The cell.
    pub cell: CellId,
    /// Factor and level of the cell, where other cells differ in them.
    pub at: Vec<(String, String)>,
    /// The median over its trials of p99 over p50.
    pub ratio: f64,
    /// The interval of that, simultaneous over the cells.
    pub interval: (f64, f64),
    /// p50 and p99, ns: medians over its trials.
    pub quantiles: (f64, f64),
    /// Cells whose tail is shown to be long.
    pub cells: usize,
}

/// The longest tail, where any is shown to be long.
pub(super) fn long_tail(analysis: &Analysis, run: usize) -> Option<LongTail> {
    let measured = analysis
        .cells
        .iter()
        .filter(|cell| cell.tail.is_some())
        .count();
    let long = |cell: &&CellAnalysis| {
        // Slow requests of a disturbed cell may be the work of others, and times behind a rate grow with the length of a trial.
        let is_its_own = !cell.is_disturbed() && !cell.flags.contains(&Flag::RateNotHeld);
        if cell.tail_ratios.len() < TRIALS_MIN || cell.mix.is_some() || !is_its_own {
            return None;
        }
        let logs: Vec<f64> = cell.tail_ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = mean_interval(&logs, confidence(measured))?;
        let (low, high) = (interval.low.exp(), interval.high.exp());
        (low > LONG * (1.0 + f64::EPSILON.sqrt())).then_some((low, high))
    };
    let all = analysis
        .cells
        .iter()
        .filter_map(|cell| Some((cell, long(&cell)?)));
    let all: Vec<(&CellAnalysis, (f64, f64))> = all.collect();
    let ratio = |cell: &CellAnalysis| cell.tail.map_or(0.0, |tail| tail.median);
    let (cell, interval) = all
        .iter()
        .max_by(|a, b| ratio(a.0).total_cmp(&ratio(b.0)))?;
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
        ratio: ratio(cell),
        interval: *interval,
        quantiles: (latency.p50_ns, latency.p99_ns),
        cells: all.len(),
    })
}
