//! Computes the verdict on each cell from the trials of both sides.

use std::collections::BTreeMap;
use std::fmt;

use super::{
    Better, CONFIDENCE, CellComparison, Criteria, Further, HypothesisTest, POWER, Pair,
    ReplicationUnit, Side, TestResult,
};
use crate::analysis::TRIALS_MIN;
use crate::claim::effect::{
    against_suggested, confidence, independence, judge, of_blocks, ratio_of_samples,
};
use crate::claim::{Difference, Estimate};
use crate::doubt::{Doubt, DoubtKind};
use iolab_record::ServedBy;
use iolab_stats::{
    holm, mann_kendall, mann_whitney, median, median_interval, sd, student, trials_for_apart,
    trials_for_within, welch,
};

/// Most trials that are recommended.
const TRIALS_ADVISED_MAX: usize = 1000;

impl Pair {
    /// The logarithms of new over base in shared blocks, in order.
    fn logs(&self) -> Option<Vec<f64>> {
        Some(self.within_blocks.as_ref()?.values().copied().collect())
    }
}

/// Compares all pairs, in their order.
pub(super) fn compare(
    pairs: &[Pair],
    terms: &Criteria,
    unit: ReplicationUnit,
) -> Vec<CellComparison> {
    let with_more = confidence(comparable(pairs));
    let confidence = confidence(intervals(pairs));
    let cells = pairs.iter().map(|pair| {
        let mut cell = measure(pair, terms, confidence);
        let (shown, doubts) = shown(&cell, pair, terms, confidence);
        cell.verdict = allowed(shown, &doubts, unit);
        // No doubt turns the same samples around.
        let are_same = cell.verdict == CellVerdict::Identical;
        cell.doubts = if are_same { Vec::new() } else { doubts };
        // More trials help neither against differences between runs nor against a doubt, which has its own
        // verdict.
        let why = cell.verdict.why_open();
        let lacks_trials = matches!(why, Some(DoubtKind::FewTrials | DoubtKind::WideInterval));
        if lacks_trials && unit != ReplicationUnit::OneRunEach {
            cell.further = further(&cell, pair, terms, with_more);
        }
        cell
    });
    let mut cells: Vec<CellComparison> = cells.collect();
    let first = terms.tests.first().copied();
    adjust(&mut cells, first.unwrap_or(HypothesisTest::Welch));
    cells
}

/// Number of pairs with enough trials for an interval.
pub(super) fn intervals(pairs: &[Pair]) -> usize {
    let has = |pair: &&Pair| {
        let blocks = pair.within_blocks.as_ref().map_or(0, BTreeMap::len);
        blocks.max(pair.base.len().min(pair.new.len())) >= TRIALS_MIN
    };
    pairs.iter().filter(has).count()
}

/// Number of pairs that have an interval once there are enough trials: those with values on both sides.
pub(super) fn comparable(pairs: &[Pair]) -> usize {
    let has = |pair: &&Pair| !pair.base.is_empty() && !pair.new.is_empty();
    pairs.iter().filter(has).count()
}

/// The verdict on a cell, given doubts and the unit of replication.
fn allowed(shown: CellVerdict, doubts: &[Doubt], unit: ReplicationUnit) -> CellVerdict {
    match (shown, unit) {
        (_, ReplicationUnit::SameSamples) => CellVerdict::Identical,
        (CellVerdict::CannotTell(_), _) => CellVerdict::doubted(doubts).unwrap_or(shown),
        (CellVerdict::Equivalent, _) => shown,
        (_, ReplicationUnit::OneRunEach) => CellVerdict::CannotTell(DoubtKind::OneRunEach),
        _ => shown,
    }
}

fn measure(pair: &Pair, terms: &Criteria, confidence: f64) -> CellComparison {
    let (base, new) = (pair.base.as_slice(), pair.new.as_slice());
    let estimate = pair.logs().and_then(|logs| of_blocks(&logs, confidence));
    let estimate = estimate.or_else(|| ratio_of_samples(base, new, confidence));
    let [base_served, new_served] = pair.served;
    let tests = terms.tests.iter().map(|test| TestResult {
        test: *test,
        p: test.p(base, new),
    });
    CellComparison {
        levels: pair.levels.clone(),
        base: side(base, base_served),
        new: side(new, new_served),
        estimate: estimate
            .map(|estimate| estimate.bounded(&pair.against, terms.better != Better::Lower)),
        verdict: CellVerdict::CannotTell(lacking(base, new)),
        doubts: Vec::new(),
        further: None,
        tests: tests.collect(),
        p_adjusted: None,
        run_sd: None,
        detectable: None,
    }
}

fn side(values: &[f64], served_by: Option<ServedBy>) -> Side {
    let interval = median_interval(values, CONFIDENCE);
    Side {
        values: values.to_vec(),
        centre: median(values),
        interval: interval.map(|interval| (interval.low, interval.high)),
        drift_p: mann_kendall(values).map(|trend| trend.p),
        served_by,
    }
}

impl HypothesisTest {
    /// The p value of the values of both sides.
    pub fn p(self, base: &[f64], new: &[f64]) -> Option<f64> {
        match self {
            Self::Welch => welch(base, new),
            Self::Student => student(base, new),
            Self::MannWhitney => mann_whitney(base, new),
        }
    }
}

/// Adds Holm's correction over the cells with a p value.
fn adjust(cells: &mut [CellComparison], test: HypothesisTest) {
    let known: Vec<f64> = cells.iter().filter_map(|cell| cell.p(test)).collect();
    let mut adjusted = holm(&known).unwrap_or_default().into_iter();
    for cell in cells {
        cell.p_adjusted = cell.p(test).and_then(|_| adjusted.next());
    }
}

/// The conclusion from the interval. A difference is shown if the interval excludes 1 and the ratio is outside
/// the margin. So the verdict agrees with the ratio next to it, and a real change too small to matter is not an
/// alarm. Equivalence is shown if the interval is within the margin.
fn shown(
    cell: &CellComparison,
    pair: &Pair,
    terms: &Criteria,
    confidence: f64,
) -> (CellVerdict, Vec<Doubt>) {
    let more_is_better = terms.better != Better::Lower;
    let open = |why| CellVerdict::CannotTell(why);
    let Some(estimate) = &cell.estimate else {
        let verdict = match apart(pair, confidence) {
            Ok(is_higher) => terms.better.verdict(is_higher),
            Err(why) => open(why),
        };
        return (verdict, Vec::new());
    };
    let is_told = match estimate.shows(terms.margin) {
        Difference::Equivalent => true,
        Difference::Higher | Difference::Lower => !is_inside(estimate.ratio, terms.margin),
        _ => false,
    };
    if !is_told {
        let suggested = against_suggested(estimate, terms.margin, &pair.against, more_is_better);
        let foreign = pair.against.foreign().into_iter();
        let further = foreign.filter(|doubt| !suggested.contains(doubt));
        let why = match estimate.interval {
            Some(_) => DoubtKind::WideInterval,
            None => DoubtKind::FewTrials,
        };
        return (open(why), further.chain(suggested.clone()).collect());
    }
    let (difference, doubts) = judge(estimate, terms.margin, &pair.against, more_is_better);
    let verdict = match difference {
        Difference::Higher => terms.better.verdict(true),
        Difference::Lower => terms.better.verdict(false),
        Difference::Equivalent => CellVerdict::Equivalent,
        _ => CellVerdict::doubted(&doubts).unwrap_or(open(DoubtKind::WideInterval)),
    };
    (verdict, doubts)
}

/// Whether the new values are higher, for values without a ratio; decided if the intervals of the medians do not
/// overlap.
fn apart(pair: &Pair, confidence: f64) -> Result<bool, DoubtKind> {
    let intervals = [&pair.base, &pair.new].map(|side| median_interval(side, confidence));
    let [Some(base), Some(new)] = intervals else {
        return Err(lacking(&pair.base, &pair.new));
    };
    match base.overlaps(&new) {
        true => Err(DoubtKind::NoRatio),
        false => Ok(new.low > base.high),
    }
}

/// Reason why values have no interval.
fn lacking(base: &[f64], new: &[f64]) -> DoubtKind {
    match base.is_empty() || new.is_empty() {
        true => DoubtKind::NoValue,
        false => DoubtKind::FewTrials,
    }
}

fn is_inside(ratio: f64, margin: f64) -> bool {
    ratio.ln().abs() <= margin.ln_1p()
}

/// The standard deviations that determine the interval: of the ratios within blocks, or of the logarithms of
/// each side. Inflated for values that depend on earlier ones, so that the same number of independent values
/// would have the same uncertainty.
fn spreads(estimate: &Estimate, pair: &Pair) -> Option<Vec<f64>> {
    let of = |logs: &[f64]| Some(sd(logs)? / independence(logs).sqrt());
    let logs = |values: &[f64]| values.iter().map(|x| x.ln()).collect::<Vec<f64>>();
    match (pair.logs(), estimate.blocks) {
        (Some(ratios), Some(_)) => Some(vec![of(&ratios)?]),
        _ => Some(vec![of(&logs(&pair.base))?, of(&logs(&pair.new))?]),
    }
}

/// Number of trials for the verdict that the estimate suggests: equivalence for a ratio within the margin,
/// otherwise a difference. Assumes the confidence for the final number of intervals.
fn further(
    cell: &CellComparison,
    pair: &Pair,
    terms: &Criteria,
    confidence: f64,
) -> Option<Further> {
    let estimate = cell.estimate?;
    let there = estimate.blocks;
    let there = there.unwrap_or(pair.base.len().min(pair.new.len()));
    let sd = spreads(&estimate, pair)?;
    let shift = estimate.ratio.ln();
    let wanted = match is_inside(estimate.ratio, terms.margin) {
        true => trials_for_within(terms.margin.ln_1p(), shift, &sd, confidence, POWER),
        false => trials_for_apart(shift, &sd, confidence, POWER),
    };
    Some(match wanted {
        // At least one more, since the present trials did not suffice.
        Some(n) if n <= TRIALS_ADVISED_MAX => Further::Trials(n.saturating_sub(there).max(1)),
        _ => Further::TooMany,
    })
}

/// The verdict on a cell, in the order in which verdicts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellVerdict {
    /// The new side is worse by more than the margin.
    Slower,
    /// The new side is better by more than the margin.
    Faster,
    /// The new values are lower; whether that is better is unknown.
    Lower,
    /// The new values are higher; whether that is better is unknown.
    Higher,
    /// The ratio is within the margin.
    Equivalent,
    /// A gate found no regression: the new run is within the prediction of the earlier ones.
    NoChange,
    /// Both sides have the same samples.
    Identical,
    /// No verdict, for this reason.
    CannotTell(DoubtKind),
}

impl CellVerdict {
    /// The verdict that replaces one that these doubts could reverse; `None` without doubts.
    pub(crate) fn doubted(doubts: &[Doubt]) -> Option<Self> {
        let weightiest = doubts.iter().map(|doubt| doubt.what).min()?;
        Some(Self::CannotTell(weightiest))
    }

    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        self.why_open().is_some()
    }

    /// Reason for an open verdict; `None` for other verdicts.
    pub fn why_open(self) -> Option<DoubtKind> {
        match self {
            Self::CannotTell(why) => Some(why),
            _ => None,
        }
    }
}

/// The verdict in a few words: `cannot tell (disturbed)`.
impl fmt::Display for CellVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Equivalent => "equivalent",
            Self::NoChange => "no change shown",
            Self::Identical => "identical",
            Self::CannotTell(why) => {
                f.write_str("cannot tell (")?;
                why.fmt(f)?;
                ")"
            }
        };
        f.write_str(words)
    }
}
