//! Two cells: the ratio of their responses, its uncertainty, and what in the evidence could reverse it.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

use crate::analysis::{CellAnalysis, TRIALS_MIN};
use crate::doubt::{Direction, Doubt, DoubtKind, RatioBound, SideDoubts};
use crate::trial_values::two_groups;
use iolab_stats::{
    MedianEnds, effective_sample_size, has_wide_gap, mean, mean_interval, median,
    median_difference, median_interval, median_interval_interpolated, two_levels,
};

/// Differences within this margin do not matter: one side is at most 5 % higher than the other.
pub const MARGIN: f64 = 0.05;
/// Share of runs in which one kind of claim may be false.
const ALPHA: f64 = 0.05;
/// The interval of a few values extends beyond the lowest and the highest by this share of their range.
const BEYOND_FEW: f64 = 0.3;

/// Identifies a cell among several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CellId {
    /// The place of its run, from 0; of a document in `claimed_runs`.
    pub run: usize,
    /// Id of the cell in its run.
    pub cell: i64,
}

/// The conclusion about one response relative to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The other cell's response is higher.
    Higher,
    /// The other cell's response is lower.
    Lower,
    /// The difference is at most the margin.
    Equivalent,
    /// No difference was found: the interval holds 1, and more than the margin.
    NotFound,
    /// Too few trials for an interval, or evidence that could reverse the claim.
    CannotTell,
}

/// A ratio with the simultaneous interval that decides about it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Ratio of the other cell's response to the base: the median over the shared blocks, or the ratio of the
    /// medians.
    pub ratio: f64,
    /// Lower and upper end of the interval; `None` with too few trials.
    pub interval: Option<(f64, f64)>,
    /// Number of shared blocks in which the cells were compared; `None` where there are too few, or for cells of two runs.
    pub blocks: Option<usize>,
    /// The interval widened for trials that depend on earlier ones: on the logarithmic scale by the factor that the smaller
    /// number of independent trials implies.
    pub dependent_interval: Option<(f64, f64)>,
    /// Effective number of independent trials over their number, of the side with the stronger dependence.
    pub independence: f64,
    /// The least and the greatest ratio of one group with another, if the ratios of the blocks, or the trials of
    /// a side, form two groups.
    pub groups: Option<(f64, f64)>,
    /// Direction of a bound, if one side did not hold its rate, or owes time: it is worse in longer trials.
    pub bound: Option<RatioBound>,
    /// The factor of the ratio that owed time explains; 1 where none is owed.
    pub owed: f64,
}

/// The confidence of each comparison at which all of them together hold in 95 % (Bonferroni).
pub(crate) fn confidence(comparisons: usize) -> f64 {
    1.0 - ALPHA / comparisons.max(1) as f64
}

/// Values of the trials of a cell, in the order of time, with the block of each.
pub type Trials<'a> = (&'a [f64], &'a [u32]);

/// The ratio of one cell's values to another's, from shared blocks where there are enough.
pub(super) fn of_trials(base: Trials<'_>, other: Trials<'_>, confidence: f64) -> Option<Estimate> {
    let logs: Vec<f64> = log_ratios(base, other).into_values().collect();
    of_blocks(&logs, confidence).or_else(|| of_medians(base.0, other.0, confidence, interval))
}

/// The ratio of the responses of two cells of one run, from shared blocks where there are enough.
pub(crate) fn within_run(
    base: &CellAnalysis,
    other: &CellAnalysis,
    confidence: f64,
) -> Option<Estimate> {
    of_trials(base.trials(), other.trials(), confidence)
}

/// The ratio of the responses of two cells of different runs.
pub(super) fn across_runs(
    base: &CellAnalysis,
    other: &CellAnalysis,
    confidence: f64,
) -> Option<Estimate> {
    of_medians(&base.values, &other.values, confidence, interval)
}

/// The ratio from its logarithm in each block, in the order of the blocks; `None` below six blocks.
pub(crate) fn of_blocks(logs: &[f64], confidence: f64) -> Option<Estimate> {
    if logs.len() < TRIALS_MIN {
        return None;
    }
    let groups = two_groups(logs).map(|groups| (groups.low_median, groups.high_median));
    Some(Estimate {
        blocks: Some(logs.len()),
        ..Median::of(median(logs)?, logs, interval(logs, confidence), groups).into()
    })
}

/// The ratio of the medians of two samples, each in the order of time, new over base, with the interval of
/// [`median_difference`] between the logarithms: of interpolated intervals, or of exact ones where a sample has a wide
/// gap.
///
/// It assumes independent values of continuous distributions of any shape. The example `ratio_intervals` simulates its
/// coverage and power; docs/METHODS.md has the result. There is an interval where both samples have an exact one. `None`
/// where a side is empty or a value is not positive.
pub fn ratio_of_samples(base: &[f64], other: &[f64], confidence: f64) -> Option<Estimate> {
    of_medians(base, other, confidence, exact)
}

/// A function that gives the interval of a median of logarithms; `None` with too few values.
type IntervalOf = fn(&[f64], f64) -> Option<(f64, f64)>;

fn of_medians(
    base: &[f64],
    other: &[f64],
    confidence: f64,
    interval: IntervalOf,
) -> Option<Estimate> {
    let (base_logs, other_logs) = (logarithms(base)?, logarithms(other)?);
    // Too few values for an exact interval can all lie in one of several groups.
    let is_split = |logs: &[f64]| has_wide_gap(logs) || exact(logs, confidence).is_none();
    let is_split = is_split(&base_logs) || is_split(&other_logs);
    // Takes the logarithm of the median shown: with an even number of values, the median of the logarithms differs.
    let of = |values: &[f64], logs: &[f64]| {
        let centre = median(values)?.ln();
        // What a table says of these values, and groups so unlike that only their logarithms have a gap.
        let groups = two_groups(values).map(|one| (one.low_median.ln(), one.high_median.ln()));
        let by_logs = || two_levels(logs).map(|one| (one.low_median, one.high_median));
        let groups = groups.or_else(by_logs);
        let narrow = || median_interval_interpolated(logs, confidence);
        let narrow = (!is_split).then(narrow).flatten();
        let narrow = narrow.map(|interval| (interval.low, interval.high));
        let interval = narrow.or_else(|| interval(logs, confidence));
        Some(Median::of(centre, logs, interval, groups))
    };
    let (base, other) = (of(base, &base_logs)?, of(other, &other_logs)?);
    let between = |own: fn(&Median) -> Option<(f64, f64)>| {
        let (base_ends, other_ends) = own(&base).zip(own(&other))?;
        let [base, other] = [base.ends(base_ends), other.ends(other_ends)];
        Some(median_difference(&base, &other, is_split))
    };
    let has_groups = base.groups.is_some() || other.groups.is_some();
    let groups = has_groups.then(|| {
        let of = |side: &Median| side.groups.unwrap_or((side.centre, side.centre));
        let ((base_low, base_high), (low, high)) = (of(&base), of(&other));
        (low - base_high, high - base_low)
    });
    let estimate = Estimate::from(Median {
        centre: other.centre - base.centre,
        interval: between(|median| median.interval),
        dependent: between(|median| median.dependent),
        independence: base.independence.min(other.independence),
        groups,
    });
    (estimate.ratio > 0.0 && estimate.ratio.is_finite()).then_some(estimate)
}

/// The median of logarithms, with its intervals.
#[derive(Debug, Clone, Copy)]
struct Median {
    centre: f64,
    interval: Option<(f64, f64)>,
    /// The interval widened for values that depend on earlier ones.
    dependent: Option<(f64, f64)>,
    independence: f64,
    /// The medians of two groups, where they form these.
    groups: Option<(f64, f64)>,
}

impl Median {
    fn of(
        centre: f64,
        logs: &[f64],
        interval: Option<(f64, f64)>,
        groups: Option<(f64, f64)>,
    ) -> Self {
        let independence = independence(logs);
        let wider = |end: f64| centre + (end - centre) / independence.sqrt();
        Self {
            centre,
            interval,
            dependent: interval.map(|(low, high)| (wider(low), wider(high))),
            independence,
            groups,
        }
    }

    fn ends(&self, (low, high): (f64, f64)) -> MedianEnds {
        MedianEnds {
            median: self.centre,
            low,
            high,
        }
    }
}

impl Estimate {
    /// A ratio with its interval, without evidence of blocks.
    pub fn of(ratio: f64, interval: Option<(f64, f64)>) -> Self {
        Self {
            ratio,
            interval,
            blocks: None,
            dependent_interval: None,
            independence: 1.0,
            groups: None,
            bound: None,
            owed: 1.0,
        }
    }

    /// The estimate as the bound that this evidence makes it.
    pub(crate) fn bounded(self, against: &SideDoubts, more_is_better: bool) -> Self {
        Self {
            bound: against.bound(more_is_better),
            owed: against.owed(),
            ..self
        }
    }

    /// Whether neither side is shown to be higher, however close the two are.
    pub(super) fn is_of_tie(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| (low..=high).contains(&1.0))
    }

    /// Conclusion from its interval alone, without doubts.
    pub(crate) fn shows(&self, margin: f64) -> Difference {
        self.interval
            .map_or(Difference::CannotTell, |interval| shown(interval, margin))
    }
}

impl From<Median> for Estimate {
    /// The ratio whose logarithm it is.
    fn from(log: Median) -> Self {
        let exp = |(low, high): (f64, f64)| (low.exp(), high.exp());
        Self {
            groups: log.groups.map(exp),
            dependent_interval: log.dependent.map(exp),
            independence: log.independence,
            ..Self::of(log.centre.exp(), log.interval.map(exp))
        }
    }
}

/// The logarithms of all values; `None` where one value has none.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let logs = values.iter().map(|value| value.ln());
    logs.map(|log| log.is_finite().then_some(log)).collect()
}

/// Effective number of independent values over their number.
pub(crate) fn independence(logs: &[f64]) -> f64 {
    // Equal values have no autocorrelation, and no variance that it could increase.
    let worth = effective_sample_size(logs);
    worth.map_or(1.0, |worth| (worth / logs.len() as f64).min(1.0))
}

/// The exact interval of the median; `None` where there are too few values for the confidence.
fn exact(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let interval = median_interval(values, confidence)?;
    Some((interval.low, interval.high))
}

/// The exact interval, or the one for few values. That one assumes that cells of a study scatter alike and that cells of a block
/// have the same conditions, which does not hold for cells of two runs.
fn interval(logs: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let has_enough = logs.len() >= TRIALS_MIN;
    exact(logs, confidence).or_else(|| has_enough.then(|| few(logs, confidence))?)
}

/// The interval of the median of positive values: exact, or the one for few of them; `None` below six.
pub(crate) fn median_within(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let (low, high) = interval(&logarithms(values)?, confidence)?;
    Some((low.exp(), high.exp()))
}

/// The interval of values that are too few for order statistics at this confidence. Each end is the end of a t
/// interval from the values on its own side of the median, widened to 0.3 of the range beyond all values. So no
/// odd value decides. Stalls scatter to one side, and do not show how far the other end may lie.
fn few(logs: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let centre = median(logs)?;
    // The values of one side and their mirror images; the values at the median are their own.
    let mirrored = |is_own: fn(f64, f64) -> bool| {
        let own = logs.iter().copied().filter(|x| is_own(*x, centre));
        let both: Vec<f64> = own.flat_map(|x| [x, 2.0 * centre - x]).collect();
        let rest = logs.len().saturating_sub(both.len());
        [both, vec![centre; rest]].concat()
    };
    let low = mean_interval(&mirrored(|x, centre| x < centre), confidence)?.low;
    let high = mean_interval(&mirrored(|x, centre| x > centre), confidence)?.high;
    let least = logs.iter().copied().reduce(f64::min)?;
    let greatest = logs.iter().copied().reduce(f64::max)?;
    let beyond = BEYOND_FEW * (greatest - least);
    Some((low.min(least - beyond), high.max(greatest + beyond)))
}

/// The logarithm of the ratio in each shared block, by block number.
pub(crate) fn log_ratios(base: Trials<'_>, other: Trials<'_>) -> BTreeMap<u32, f64> {
    let others = log_means(other);
    let own = log_means(base).into_iter();
    own.filter_map(|(block, value)| Some((block, others.get(&block)? - value)))
        .collect()
}

/// The logarithm of the response relative to the sum of several other responses, in each block that all share,
/// by block number.
pub(super) fn log_ratios_to_sum(parts: &[Trials<'_>], whole: Trials<'_>) -> BTreeMap<u32, f64> {
    let parts: Vec<BTreeMap<u32, f64>> = parts.iter().map(|part| log_means(*part)).collect();
    let of_block = |(block, whole): (u32, f64)| {
        let each = parts.iter().map(|part| Some(part.get(&block)?.exp()));
        Some((block, whole - each.sum::<Option<f64>>()?.ln()))
    };
    log_means(whole).into_iter().filter_map(of_block).collect()
}

/// The mean logarithm of the values of each block; none where a value has no logarithm, because the other blocks would be a
/// selection.
pub(super) fn log_means((values, of): Trials<'_>) -> BTreeMap<u32, f64> {
    let logs = values.iter().map(|value| value.ln());
    let mut logs: Vec<(u32, f64)> = of.iter().copied().zip(logs).collect();
    logs.sort_by_key(|(block, _)| *block);
    let of_block = |own: &[(u32, f64)]| match own {
        [(block, log)] => log.is_finite().then_some((*block, *log)),
        own => {
            let logs: Vec<f64> = own.iter().map(|(_, log)| *log).collect();
            Some((own[0].0, mean(&logs)?))
        }
    };
    let means = logs.chunk_by(|a, b| a.0 == b.0).map(of_block);
    means.collect::<Option<_>>().unwrap_or_default()
}

/// Conclusion from an interval of a ratio alone.
pub(super) fn shown((low, high): (f64, f64), margin: f64) -> Difference {
    if low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin {
        Difference::Equivalent
    } else if low > 1.0 {
        Difference::Higher
    } else if high < 1.0 {
        Difference::Lower
    } else {
        Difference::NotFound
    }
}

/// Whether a side is shown to be no worse than the base by more than [`MARGIN`], and nothing in the evidence could reverse
/// that: neither trials that depend on each other, nor one of two groups, nor a disturbance.
pub(super) fn is_no_worse(estimate: &Estimate, against: &SideDoubts, more_is_better: bool) -> bool {
    // By which factor the worst ratio lies on the good side of the limit.
    let room = |(low, high): (f64, f64)| match more_is_better {
        true => low * (1.0 + MARGIN),
        false => (1.0 + MARGIN) / high,
    };
    let ratios = [
        estimate.interval, estimate.dependent_interval, estimate.groups,
    ];
    let mut known = ratios.into_iter().flatten();
    let has_room = known.all(|ratios| room(ratios) >= 1.0);
    let turning = |size: f64| against.turning(Direction::of_sides(true), size);
    let interval = estimate.interval.filter(|_| has_room);
    interval.is_some_and(|interval| turning(room(interval)).is_empty())
}

/// The conclusion from an estimate, and the doubts that could reverse it. Ratios from `1 / (1 + margin)` to `1 + margin` are
/// equivalent; `more_is_better` says whether a lower response is the worse one.
pub(crate) fn judge(
    estimate: &Estimate,
    margin: f64,
    against: &SideDoubts,
    more_is_better: bool,
) -> (Difference, Vec<Doubt>) {
    let difference = estimate.shows(margin);
    let (low, high) = estimate.interval.unwrap_or((0.0, f64::INFINITY));
    // The smallest difference that the interval allows; a doubt that cannot explain this much does not count.
    let size = match difference {
        Difference::Higher => low,
        Difference::Lower => 1.0 / high,
        _ => 1.0 + margin,
    };
    let about = (difference, size);
    let mut doubts = match difference {
        // What others took may hide what would have been found.
        Difference::NotFound => against.turning([Direction::Equal; 2], size),
        Difference::CannotTell => Vec::new(),
        _ => reversing(estimate, margin, against, more_is_better, about),
    };
    let is_told = !matches!(difference, Difference::NotFound | Difference::CannotTell);
    let wider = estimate.dependent_interval.filter(|_| is_told);
    if wider.is_some_and(|wider| shown(wider, margin) != difference) {
        doubts.push(Doubt::of(DoubtKind::Dependent, estimate.independence));
    }
    match doubts.is_empty() {
        true => (difference, doubts),
        false => (Difference::CannotTell, doubts),
    }
}

/// The doubts that would be left if further trials showed what the ratio suggests. Trials that depend on each other are none of these:
/// more of them help.
pub(crate) fn against_suggested(
    estimate: &Estimate,
    margin: f64,
    against: &SideDoubts,
    more_is_better: bool,
) -> Vec<Doubt> {
    let ratio = estimate.ratio;
    let suggested = shown((ratio, ratio), margin);
    let size = match suggested {
        Difference::Equivalent => 1.0 + margin,
        _ => ratio.max(1.0 / ratio),
    };
    reversing(estimate, margin, against, more_is_better, (suggested, size))
}

/// The doubts that could reverse a difference of at least this factor, or equivalence, including two groups of
/// trials.
fn reversing(
    estimate: &Estimate,
    margin: f64,
    against: &SideDoubts,
    more_is_better: bool,
    (difference, size): (Difference, f64),
) -> Vec<Doubt> {
    let sides = match difference {
        Difference::Higher => Direction::of_sides(more_is_better),
        Difference::Lower => Direction::of_sides(!more_is_better),
        _ => [Direction::Equal; 2],
    };
    let mut doubts = against.turning(sides, size);
    // What holds between one group and another may not hold between the rest: which of them comes next is not known.
    let other = |ratio: f64| shown((ratio, ratio), margin);
    let turned = |ratio: f64| match difference {
        Difference::Higher => ratio <= 1.0,
        Difference::Lower => ratio >= 1.0,
        _ => other(ratio) != Difference::Equivalent,
    };
    let split = estimate.groups;
    let split = split.filter(|(low, high)| turned(*low) || turned(*high));
    doubts.extend(split.map(|(low, high)| Doubt {
        levels: Some([(low, low), (high, high)]),
        ..DoubtKind::TwoGroups.into()
    }));
    doubts
}

#[cfg(test)]
mod tests;
