//! Slow requests: the ratio of the 99th percentile of latency to the median.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

use iolab_plan::suspect::QUANTILE_REQUESTS;
use iolab_stats::mean_interval;

use super::effect::{CellId, confidence};
use super::phenomenon::{Phenomenon, PhenomenonKind, Tail};
use crate::analysis::{Analysis, CellAnalysis, DoubtKind, Response, TRIALS_MIN};
use crate::json;

/// Ratio of p99 to p50 above which a tail is long, by its interval.
const LONG: f64 = 3.0;

/// The longest tail of a run that is shown to be long.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LongTail {
    /// The cell.
    pub cell: CellId,
    /// Factors in which other cells differ, with the levels of this cell.
    #[serde(serialize_with = "json::object")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub at: Vec<(String, String)>,
    /// p50 and p99, ns; each the median over the trials.
    pub quantiles: (f64, f64),
    /// The ratio of these two.
    pub ratio: f64,
    /// Interval of `ratio`, simultaneous over the cells. Covers the geometric mean of the trials' ratios, and
    /// this ratio.
    pub interval: (f64, f64),
    /// Cells whose tail is shown to be long.
    pub cells: usize,
    /// Measured cells that are not judged: disturbed, with several operations, behind their rate, with too few
    /// trials, or with too few requests in each for a 99th percentile.
    pub unjudged: usize,
}

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

impl LongTail {
    /// Reason why it cannot be explained; `None` if it can.
    pub(super) fn obstacle(&self, run: &Analysis) -> Option<TailObstacle> {
        obstacle(run.cell(self.cell.cell)?)
    }

    /// The tail as a difference between two quantiles of its cell; `None` if the cell is missing, or was not
    /// timed.
    fn phenomenon(&self, run: &Analysis) -> Option<Phenomenon> {
        let cell = run.cell(self.cell.cell)?;
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
        Some(Phenomenon {
            base: self.cell,
            other: self.cell,
            seen: self.ratio,
            expected: 1.0,
            size: self.interval.0.ln(),
            unclaimed: None,
            kind: PhenomenonKind::Quantiles(Tail {
                quantiles: self.quantiles,
                iops,
                time: took.max(enough),
            }),
        })
    }
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
pub(super) fn long_tail(analysis: &Analysis, run: usize) -> Option<LongTail> {
    longest(analysis, run, |_| true)
}

/// The longest tail of a run that can be explained.
pub(super) fn explainable(run: &Analysis) -> Option<Phenomenon> {
    longest(run, 0, |cell| obstacle(cell).is_none())?.phenomenon(run)
}

fn longest(
    analysis: &Analysis,
    run: usize,
    counts: impl Fn(&CellAnalysis) -> bool,
) -> Option<LongTail> {
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
