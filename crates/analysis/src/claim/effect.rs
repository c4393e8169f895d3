//! Two cells: how many times as great one's response is as the other's, how sure that is, and what could turn it round.

use std::collections::BTreeMap;

use iolab_record::ServedBy;
use iolab_stats::{mean_interval, median, median_interval};
use iolab_workload::response::Response;

use crate::analysis::{CellAnalysis, Flag, TRIALS_MIN};
use crate::imbalance::Disturber;

/// The greatest difference that is none to speak of: 5 %, in either direction.
pub const MARGIN: f64 = 0.05;
/// Share of runs in which a kind of claim may be false.
pub(super) const ALPHA: f64 = 0.05;
/// How far beyond the least and the greatest of a few values their interval reaches, as a share of their range.
const BEYOND_FEW: f64 = 0.2;
/// A worker that is preempted waits for about one time slice of the others (`base_slice_ns` of the kernel's scheduler).
const SLICE_S: f64 = 3e-3;

/// A cell of one of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId {
    /// The place of the run.
    pub run: usize,
    /// The cell's id in it.
    pub cell: i64,
}

/// How one response relates to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It is higher.
    Higher,
    /// It is lower.
    Lower,
    /// It differs by at most [`MARGIN`].
    Equivalent,
    /// No difference was found: the interval holds 1, and more than the margin.
    NotFound,
    /// Too few trials for an interval, or the evidence holds something that could turn the claim round.
    CannotTell,
}

/// A ratio, and the simultaneous interval that it was judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The other cell's response over that of the base: the median over the blocks that both share, or the ratio of the medians.
    pub ratio: f64,
    /// Least and greatest ratio of its interval; `None` with too few trials.
    pub interval: Option<(f64, f64)>,
    /// Blocks that both cells share, in which they were compared; `None` where they share too few, or belong to two runs.
    pub blocks: Option<usize>,
}

/// What could turn a comparison round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// Others took so much of the device or the CPUs during the trials of the side that looks worse.
    Disturbed {
        /// What.
        by: Disturber,
        /// The value over all its trials, as [`Disturber::value`] has it.
        value: f64,
    },
    /// Its workers were preempted so often per second.
    Preempted {
        /// Times per second.
        per_second: f64,
    },
    /// The machine slept during a trial.
    Suspended,
    /// A side was not served by what it asks for.
    ServedBy(ServedBy),
    /// A side fell behind the rate that was asked for, so that its times grow with the length of a trial.
    RateNotHeld,
    /// Another run compares the same settings of the same target, and shows something that excludes this.
    Contradicted {
        /// The place of that run.
        run: usize,
    },
}

/// Two cells that differ in what is asked about, and in nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The base.
    pub base: CellId,
    /// The cell that is compared with it.
    pub other: CellId,
    /// The levels in which they differ: of the base, of the other.
    pub levels: (String, String),
    /// Factor and level of what both share and other pairs do not.
    pub held: Vec<(String, String)>,
    /// The median response of each.
    pub medians: (f64, f64),
    /// How many times as great the other's response is.
    pub estimate: Estimate,
    /// What is claimed.
    pub difference: Difference,
    /// What kept it from being claimed.
    pub doubts: Vec<Doubt>,
}

/// The confidence of each of so many comparisons at which all of them hold in 95 % (Bonferroni).
pub(crate) fn confidence(comparisons: usize) -> f64 {
    1.0 - ALPHA / comparisons.max(1) as f64
}

/// The ratio of the responses of two cells of one run: from the blocks that both share, where these suffice.
pub(crate) fn within_run(
    base: &CellAnalysis,
    other: &CellAnalysis,
    confidence: f64,
) -> Option<Estimate> {
    let logs = log_ratios(base, other);
    if logs.len() < TRIALS_MIN {
        return across_runs(base, other, confidence);
    }
    let (low, high) = interval(&logs, confidence)?;
    Some(Estimate {
        ratio: median(&logs)?.exp(),
        interval: Some((low.exp(), high.exp())),
        blocks: Some(logs.len()),
    })
}

/// The interval of the median of some logarithms: exact where there are enough of them for the confidence.
fn interval(logs: &[f64], confidence: f64) -> Option<(f64, f64)> {
    match median_interval(logs, confidence) {
        Some(interval) => Some((interval.low, interval.high)),
        None if logs.len() >= TRIALS_MIN => few(logs, confidence),
        None => None,
    }
}

/// The interval of values that are too few for order statistics at this confidence: the t interval, widened to a fifth of their range beyond
/// all of them, so that no odd value decides.
fn few(logs: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let test = mean_interval(logs, confidence)?;
    let (least, greatest) = ends(logs);
    let beyond = BEYOND_FEW * (greatest - least);
    Some((
        test.low.min(least - beyond),
        test.high.max(greatest + beyond),
    ))
}

/// The same for two cells that share no blocks: from the ends of the intervals of both medians.
pub(super) fn across_runs(
    base: &CellAnalysis,
    other: &CellAnalysis,
    confidence: f64,
) -> Option<Estimate> {
    let logs = |cell: &CellAnalysis| -> Vec<f64> {
        let all = cell.values.iter().map(|value| value.ln());
        all.filter(|log| log.is_finite()).collect()
    };
    let (base, other) = (logs(base), logs(other));
    let ratio = median(&other)? - median(&base)?;
    let interval = interval(&base, confidence).zip(interval(&other, confidence));
    Some(Estimate {
        ratio: ratio.exp(),
        interval: interval.map(|((base_low, base_high), (low, high))| {
            ((low - base_high).exp(), (high - base_low).exp())
        }),
        blocks: None,
    })
}

/// The least and the greatest of some values.
fn ends(values: &[f64]) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(none, |(low, high), value| {
        (low.min(*value), high.max(*value))
    })
}

/// The logarithm of the ratio in each block in which both have a value, in the order of the blocks.
fn log_ratios(base: &CellAnalysis, other: &CellAnalysis) -> Vec<f64> {
    let (base, other) = (log_means(base), log_means(other));
    base.iter()
        .filter_map(|(block, value)| Some(other.get(block)? - value))
        .collect()
}

/// The mean logarithm of the values of each block; none where a value has no logarithm.
fn log_means(cell: &CellAnalysis) -> BTreeMap<u32, f64> {
    let mut blocks: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (value, block) in cell.values.iter().zip(&cell.blocks) {
        let (sum, count) = blocks.entry(*block).or_default();
        *sum += value.ln();
        *count += 1.0;
    }
    let means = blocks
        .into_iter()
        .map(|(block, (sum, count))| (block, sum / count));
    means.filter(|(_, mean)| mean.is_finite()).collect()
}

/// What an estimate shows, and what could turn it round. `sides`: the base and the other.
pub(super) fn judge(
    estimate: &Estimate,
    sides: (&CellAnalysis, &CellAnalysis),
    response: Response,
) -> (Difference, Vec<Doubt>) {
    let Some((low, high)) = estimate.interval else {
        return (Difference::CannotTell, Vec::new());
    };
    let shown = if low >= 1.0 - MARGIN && high <= 1.0 / (1.0 - MARGIN) {
        Difference::Equivalent
    } else if low > 1.0 {
        Difference::Higher
    } else if high < 1.0 {
        Difference::Lower
    } else {
        return (Difference::NotFound, Vec::new());
    };
    let doubts = turning(shown, (low, high), sides, response);
    match doubts.is_empty() {
        true => (shown, doubts),
        false => (Difference::CannotTell, doubts),
    }
}

/// What could turn a difference round: a disturbance of the side that looks worse and that explains a difference of this size, and
/// on either side what makes the trials those of something else.
fn turning(
    shown: Difference,
    (low, high): (f64, f64),
    (base, other): (&CellAnalysis, &CellAnalysis),
    response: Response,
) -> Vec<Doubt> {
    let other_is_worse = (shown == Difference::Lower) == response.more_is_better();
    let worse: &[&CellAnalysis] = match shown {
        Difference::Equivalent => &[base, other],
        _ if other_is_worse => &[other],
        _ => &[base],
    };
    // The least difference that the interval allows: more than that need not be explained.
    let size = match shown {
        Difference::Equivalent => 1.0 + MARGIN,
        Difference::Higher => low,
        _ => 1.0 / high,
    };
    let mut doubts: Vec<Doubt> = Vec::new();
    doubts.extend(foreign(base, other));
    let is_behind = |cell: &&CellAnalysis| cell.flags.contains(&Flag::RateNotHeld);
    if response.is_time() && [base, other].iter().any(is_behind) {
        doubts.push(Doubt::RateNotHeld);
    }
    for side in worse {
        let all = disturbances(side).into_iter();
        doubts.extend(all.filter(|doubt| doubt.explains() >= size));
    }
    doubts
}

/// What makes the trials of two cells those of different things: bytes from different sources, of which one is not the one that
/// the cell asks for, and a machine that slept.
fn foreign(base: &CellAnalysis, other: &CellAnalysis) -> Vec<Doubt> {
    let verdict = |cell: &CellAnalysis| {
        let served = cell.served.as_ref();
        served.map(|served| served.unanimous().unwrap_or(ServedBy::Mixed))
    };
    let differ = verdict(base) != verdict(other);
    let sides = || [base, other].into_iter();
    let not_as_asked = sides()
        .filter(|cell| differ && !cell.cell.spec.runs_program() && !cell.is_as_asked())
        .filter_map(verdict)
        .map(Doubt::ServedBy);
    let slept = sides().any(|cell| cell.disturbance.suspended_ns > 0);
    not_as_asked
        .chain(slept.then_some(Doubt::Suspended))
        .collect()
}

/// What others did during the trials of a cell, where it is more than nothing.
fn disturbances(cell: &CellAnalysis) -> Vec<Doubt> {
    let around = &cell.disturbance;
    let disturbed =
        Disturber::taken_by_others(around).map(|(by, value)| Doubt::Disturbed { by, value });
    let preempted = around
        .preempted()
        .map(|per_second| Doubt::Preempted { per_second });
    disturbed.chain(preempted).collect()
}

impl Doubt {
    /// The greatest ratio of an undisturbed response to the measured one that it can explain.
    fn explains(self) -> f64 {
        let of_share = |share: f64| match share < 1.0 {
            true => 1.0 / (1.0 - share.max(0.0)),
            false => f64::INFINITY,
        };
        match self {
            Self::Disturbed { value, .. } => of_share(value),
            Self::Preempted { per_second } => of_share(per_second * SLICE_S),
            Self::Suspended | Self::ServedBy(_) | Self::RateNotHeld | Self::Contradicted { .. } => {
                f64::INFINITY
            }
        }
    }
}
