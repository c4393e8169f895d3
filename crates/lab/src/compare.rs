//! Two series of trials against each other, cell by cell: how much, how sure, and whether it matters.

mod matching;

use std::fmt;

use iolab_stats::{
    Equivalence, Interval, MannWhitney, Ratio, Summary, TTest, a12, holm, mann_kendall,
    mann_whitney, ratio_of_means, ratio_of_medians, student, summary, tost_log, tost_log_dependent,
    trials_for_difference, trials_for_equivalence, trimmed_test_dependent,
    trimmed_within_dependent, welch, welch_dependent,
};

pub use matching::{Difference, Source};

use iolab_engine::Result;

use crate::analysis::Response;

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Level of the tests.
pub const ALPHA: f64 = 0.05;
/// Chance of a verdict that the number of further trials is computed for.
pub const POWER: f64 = 0.8;
/// More trials than this are no advice.
const TRIALS_ADVISED_MAX: usize = 1000;

/// Which of two values is the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The greater: throughput, IOPS.
    Higher,
    /// The smaller: times.
    Lower,
    /// Nobody said.
    Unstated,
}

impl From<Response> for Better {
    fn from(response: Response) -> Self {
        if response.is_time() {
            Better::Lower
        } else {
            Better::Higher
        }
    }
}

/// A test for a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Welch's t test: means, variances may differ.
    Welch,
    /// Student's t test: means, equal variances.
    Student,
    /// The Mann-Whitney U test: ranks.
    MannWhitney,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Test::Welch => "Welch",
            Test::Student => "Student",
            Test::MannWhitney => "Mann-Whitney",
        })
    }
}

/// What is asked of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The smallest change that matters, a share: with 0.05 ratios from 1/1.05 to 1.05 are equal for all purposes.
    pub margin: f64,
    /// The tests whose p values are wanted; the first one decides.
    pub tests: Vec<Test>,
    /// Which value is the better, where the values do not say it themselves.
    pub better: Better,
    /// Numbers of trials for which the p values are wanted too, the first ones of each side.
    pub repeats: Vec<usize>,
}

impl Terms {
    /// The test that decides.
    pub fn deciding(&self) -> Test {
        self.tests.first().copied().unwrap_or(Test::Welch)
    }
}

/// One cell of both sides: the values of their measured trials, in the order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pair {
    /// The levels that both sides share, in the order of [`Comparison::factors`].
    pub levels: Vec<String>,
    /// Values of the base.
    pub base: Vec<f64>,
    /// Values of the new side.
    pub new: Vec<f64>,
    /// Where the bytes of the two came from, where that is known.
    pub served: Option<(String, String)>,
    /// Where both sides were measured in the same blocks: the logarithm of new over base in each block, in order.
    pub within_blocks: Option<Vec<f64>>,
}

/// What can be said of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The new side is better by more than the margin.
    Faster,
    /// The new side is worse by more than the margin.
    Slower,
    /// The new side's values are higher, and nobody said whether that is good.
    Higher,
    /// The new side's values are lower, and nobody said whether that is good.
    Lower,
    /// The ratio is within the margin.
    Equivalent,
    /// A difference or equivalence would be shown, were the trials independent of each other.
    Drifting,
    /// None of these is shown by the trials there are.
    CannotTell,
}

impl Verdict {
    /// Whether it leaves the question open.
    pub fn is_open(self) -> bool {
        matches!(self, Verdict::CannotTell | Verdict::Drifting)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Higher => "higher",
            Verdict::Lower => "lower",
            Verdict::Equivalent => "equivalent",
            Verdict::Drifting => "cannot tell (drift)",
            Verdict::CannotTell => "cannot tell",
        })
    }
}

/// How many trials a verdict would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Further {
    /// So many more on each side.
    Trials(usize),
    /// More than anybody would want to make.
    TooMany,
}

/// One side of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Its values in numbers; `None` without trials.
    pub summary: Option<Summary>,
    /// p of the Mann-Kendall test for a drift over its trials.
    pub drift_p: Option<f64>,
}

/// The p values of the first trials of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// Trials of each side.
    pub n: usize,
    /// Welch's t test; `None` where a side has fewer trials.
    pub welch_p: Option<f64>,
    /// Student's t test.
    pub student_p: Option<f64>,
    /// Mann-Whitney U test.
    pub mann_whitney_p: Option<f64>,
}

impl Repeats {
    /// The p value of one test.
    pub fn p(&self, test: Test) -> Option<f64> {
        match test {
            Test::Welch => self.welch_p,
            Test::Student => self.student_p,
            Test::MannWhitney => self.mann_whitney_p,
        }
    }
}

/// One cell, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CellComparison {
    /// The levels that both sides share.
    pub levels: Vec<String>,
    /// The base.
    pub base: Side,
    /// The new side.
    pub new: Side,
    /// Where the bytes of the two came from, where that is known.
    pub served: Option<(String, String)>,
    /// Whether both sides were measured in the same blocks. Then the ratios within the blocks decide.
    pub shares_blocks: bool,
    /// New over base within the blocks that both sides share: its geometric mean, a fifth of the blocks trimmed away at
    /// each end.
    pub ratio_within_blocks: Option<Ratio>,
    /// New over base, medians; `None` unless all values are positive.
    pub ratio_of_medians: Option<Ratio>,
    /// New over base, means.
    pub ratio_of_means: Option<Ratio>,
    /// Welch's t test.
    pub welch: Option<TTest>,
    /// Student's t test.
    pub student: Option<TTest>,
    /// Mann-Whitney U test.
    pub mann_whitney: Option<MannWhitney>,
    /// Vargha and Delaney's A12: chance that a value of the new side is greater than one of the base.
    pub a12: Option<f64>,
    /// Two one-sided tests of the ratio against the margin.
    pub equivalence: Option<Equivalence>,
    /// p of a difference that allows for trials that depend on each other: within blocks where both sides share them,
    /// else Welch's with each side counted as the number of independent trials it is worth.
    pub dependent_p: Option<f64>,
    /// p of the tests against the margin, allowing for dependence in the same way.
    pub tost_dependent_p: Option<f64>,
    /// p of the test that decides, adjusted over all cells by Holm's method.
    pub p_adjusted: Option<f64>,
    /// `dependent_p` adjusted likewise.
    pub dependent_p_adjusted: Option<f64>,
    /// What can be said.
    pub verdict: Verdict,
    /// How many trials would settle it, where nothing can be said.
    pub further: Option<Further>,
    /// p values of the first trials.
    pub repeats: Vec<Repeats>,
}

impl CellComparison {
    /// The p value of one test, not adjusted.
    pub fn p(&self, test: Test) -> Option<f64> {
        match test {
            Test::Welch => self.welch.map(|t| t.p),
            Test::Student => self.student.map(|t| t.p),
            Test::MannWhitney => self.mann_whitney.map(|t| t.p),
        }
    }

    /// The ratio that decides: within blocks where both sides share them, else of the medians.
    pub fn ratio(&self) -> Option<Ratio> {
        if self.shares_blocks {
            self.ratio_within_blocks
        } else {
            self.ratio_of_medians
        }
    }

    /// Whether one side's bytes came from elsewhere than the other's.
    pub fn is_served_differently(&self) -> bool {
        self.served.as_ref().is_some_and(|(base, new)| base != new)
    }
}

/// Two sides, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Name of the base.
    pub base: String,
    /// Name of the new side.
    pub new: String,
    /// What both measured; `None` for bare numbers.
    pub response: Option<Response>,
    /// The factors that tell the cells apart.
    pub factors: Vec<String>,
    /// Cells of the base that the new side lacks, in words.
    pub only_base: Vec<String>,
    /// Cells of the new side that the base lacks, in words.
    pub only_new: Vec<String>,
    /// In what the sides differ besides.
    pub differences: Vec<Difference>,
    /// What was asked.
    pub terms: Terms,
    /// The values, in the order of the base's cells.
    pub pairs: Vec<Pair>,
    /// What they say, in the same order.
    pub cells: Vec<CellComparison>,
}

impl Comparison {
    /// Compares two runs, or two levels of a factor of one, cell by cell.
    ///
    /// # Errors
    /// Of kind usage: different responses, no cell in common, or an experiment in a run file that cannot be read.
    pub fn of_runs(
        names: [String; 2],
        base: Source<'_>,
        new: Source<'_>,
        terms: Terms,
    ) -> Result<Self> {
        let matched = matching::match_cells(base, new)?;
        let terms = Terms {
            better: matched.response.into(),
            ..terms
        };
        let [base, new] = names;
        Ok(Self {
            base,
            new,
            response: Some(matched.response),
            factors: matched.factors,
            only_base: matched.only_base,
            only_new: matched.only_new,
            differences: matched.differences,
            cells: compare(&matched.pairs, &terms),
            pairs: matched.pairs,
            terms,
        })
    }

    /// Compares two series of bare numbers.
    pub fn of_numbers(names: [String; 2], base: Vec<f64>, new: Vec<f64>, terms: Terms) -> Self {
        let pairs = vec![Pair {
            base,
            new,
            ..Pair::default()
        }];
        let [base, new] = names;
        Self {
            base,
            new,
            response: None,
            factors: Vec::new(),
            only_base: Vec::new(),
            only_new: Vec::new(),
            differences: Vec::new(),
            cells: compare(&pairs, &terms),
            pairs,
            terms,
        }
    }

    /// How many cells have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cells
            .iter()
            .filter(|cell| cell.verdict == verdict)
            .count()
    }

    /// The conclusion over all cells.
    pub fn conclusion(&self) -> Conclusion {
        if self.count(Verdict::Slower) > 0 {
            Conclusion::Regression
        } else if self.cells.iter().any(|cell| cell.verdict.is_open()) {
            Conclusion::CannotTell
        } else {
            Conclusion::Settled
        }
    }

    /// Cells whose trials drift on a side, the drifts of all cells and sides being one family.
    pub fn drifting(&self) -> usize {
        let sides = self
            .cells
            .iter()
            .flat_map(|c| [c.base.drift_p, c.new.drift_p]);
        let p: Vec<f64> = sides.map(|p| p.unwrap_or(1.0)).collect();
        let adjusted = holm(&p).unwrap_or_default();
        let drifts = |pair: &&[f64]| pair.iter().any(|p| *p < ALPHA);
        adjusted.chunks(2).filter(drifts).count()
    }
}

/// Compares all pairs, in their order.
fn compare(pairs: &[Pair], terms: &Terms) -> Vec<CellComparison> {
    let mut cells = judge(pairs, terms);
    let family = cells.iter().filter(|c| c.p_adjusted.is_some()).count();
    for (cell, pair) in cells.iter_mut().zip(pairs) {
        if cell.verdict == Verdict::CannotTell {
            cell.further = further(cell, pair, terms, family);
        }
    }
    cells
}

/// Everything but the number of further trials.
fn judge(pairs: &[Pair], terms: &Terms) -> Vec<CellComparison> {
    let mut cells: Vec<CellComparison> = pairs.iter().map(|pair| measure(pair, terms)).collect();
    adjust(&mut cells, terms.deciding());
    for cell in &mut cells {
        cell.verdict = verdict(cell, terms);
    }
    cells
}

fn measure(
    Pair {
        levels,
        base,
        new,
        served,
        within_blocks,
    }: &Pair,
    terms: &Terms,
) -> CellComparison {
    let blocks = within_blocks
        .as_ref()
        .and_then(|ratios| trimmed_test_dependent(ratios, CONFIDENCE));
    let (dependent_p, tost_dependent_p) = match within_blocks {
        Some(ratios) => (
            blocks.map(|t| t.p),
            trimmed_within_dependent(ratios, terms.margin.ln_1p()),
        ),
        None => (
            welch_dependent(base, new, CONFIDENCE).map(|t| t.p),
            tost_log_dependent(base, new, terms.margin, ALPHA).map(|e| e.p),
        ),
    };
    CellComparison {
        levels: levels.clone(),
        base: side(base),
        new: side(new),
        served: served.clone(),
        ratio_within_blocks: blocks.map(|test| Ratio {
            ratio: test.difference.exp(),
            interval: Some(Interval {
                low: test.interval.low.exp(),
                high: test.interval.high.exp(),
                ..test.interval
            }),
        }),
        ratio_of_medians: ratio_of_medians(base, new, CONFIDENCE),
        ratio_of_means: ratio_of_means(base, new, CONFIDENCE),
        welch: welch(base, new, CONFIDENCE),
        student: student(base, new, CONFIDENCE),
        mann_whitney: mann_whitney(base, new),
        a12: a12(base, new),
        equivalence: tost_log(base, new, terms.margin, ALPHA),
        p_adjusted: None,
        dependent_p,
        tost_dependent_p,
        dependent_p_adjusted: None,
        shares_blocks: within_blocks.is_some(),
        verdict: Verdict::CannotTell,
        further: None,
        repeats: terms
            .repeats
            .iter()
            .map(|n| repeats(base, new, *n))
            .collect(),
    }
}

fn side(values: &[f64]) -> Side {
    Side {
        summary: summary(values),
        drift_p: mann_kendall(values).map(|trend| trend.p),
    }
}

fn repeats(base: &[f64], new: &[f64], n: usize) -> Repeats {
    let first = base.get(..n).zip(new.get(..n));
    Repeats {
        n,
        welch_p: first
            .and_then(|(a, b)| welch(a, b, CONFIDENCE))
            .map(|t| t.p),
        student_p: first
            .and_then(|(a, b)| student(a, b, CONFIDENCE))
            .map(|t| t.p),
        mann_whitney_p: first.and_then(|(a, b)| mann_whitney(a, b)).map(|t| t.p),
    }
}

/// Holm's correction over the cells that have a p value.
fn adjust(cells: &mut [CellComparison], test: Test) {
    let deciding = |cell: &CellComparison| match cell.shares_blocks {
        true => cell.dependent_p,
        false => cell.p(test),
    };
    let plain: Vec<Option<f64>> = cells.iter().map(deciding).collect();
    let dependent: Vec<Option<f64>> = cells.iter().map(|cell| cell.dependent_p).collect();
    let (plain, dependent) = (adjusted(&plain), adjusted(&dependent));
    for ((cell, plain), dependent) in cells.iter_mut().zip(plain).zip(dependent) {
        cell.p_adjusted = plain;
        cell.dependent_p_adjusted = dependent;
    }
}

fn adjusted(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = p.iter().copied().flatten().collect();
    let mut adjusted = holm(&known).unwrap_or_default().into_iter();
    p.iter().map(|p| p.and_then(|_| adjusted.next())).collect()
}

/// A difference is reported when it is shown and the ratio lies outside the margin; equivalence when it is shown and
/// the ratio lies inside. So no verdict contradicts the ratio that stands beside it, and a change that is real but
/// too small to matter is no alarm. Both must hold too when it is allowed for that trials depend on each other.
fn verdict(cell: &CellComparison, terms: &Terms) -> Verdict {
    let shown = |p: Option<f64>| p.is_some_and(|p| p < ALPHA);
    let differs = shown(cell.p_adjusted);
    let equivalent = match cell.shares_blocks {
        true => shown(cell.tost_dependent_p),
        false => shown(cell.equivalence.map(|e| e.p)),
    };
    let ratio = cell.ratio().map(|r| r.ratio);
    let claim = match (ratio, cell.welch) {
        (Some(ratio), _) if is_inside(ratio, terms.margin) => {
            equivalent.then_some((Verdict::Equivalent, cell.tost_dependent_p))
        }
        (Some(ratio), _) => differs.then_some((
            directed(ratio > 1.0, terms.better),
            cell.dependent_p_adjusted,
        )),
        // Without a ratio, as with values that are not positive, the margin has no meaning.
        (None, Some(test)) => differs.then_some((
            directed(test.difference > 0.0, terms.better),
            cell.dependent_p_adjusted,
        )),
        (None, None) => None,
    };
    match claim {
        Some((verdict, dependent)) if shown(dependent) => verdict,
        Some(_) => Verdict::Drifting,
        None => Verdict::CannotTell,
    }
}

fn is_inside(ratio: f64, margin: f64) -> bool {
    ratio.ln().abs() <= margin.ln_1p()
}

fn directed(higher: bool, better: Better) -> Verdict {
    match (better, higher) {
        (Better::Higher, true) | (Better::Lower, false) => Verdict::Faster,
        (Better::Higher, false) | (Better::Lower, true) => Verdict::Slower,
        (Better::Unstated, true) => Verdict::Higher,
        (Better::Unstated, false) => Verdict::Lower,
    }
}

/// The shift of the logarithms, and their standard deviation on each side: where the sides share blocks, one that would
/// give the ratios within them the spread they have.
fn log_shift(pair: &Pair) -> Option<(f64, f64)> {
    if let Some(ratios) = &pair.within_blocks {
        let ratios = summary(ratios)?;
        return Some((ratios.mean?, ratios.sd? / std::f64::consts::SQRT_2));
    }
    let log = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| x.ln()).collect() };
    let (base, new) = (summary(&log(&pair.base))?, summary(&log(&pair.new))?);
    let sd = ((base.sd?.powi(2) + new.sd?.powi(2)) / 2.0).sqrt();
    Some((new.mean? - base.mean?, sd))
}

/// Trials for the verdict that the estimates point to: equivalence when the ratio lies inside the margin, else a
/// difference at the level of Holm's first step.
fn further(cell: &CellComparison, pair: &Pair, terms: &Terms, family: usize) -> Option<Further> {
    let there = pair.base.len().min(pair.new.len());
    let (shift, sd) = log_shift(pair)?;
    let margin = terms.margin.ln_1p();
    let inside = is_inside(cell.ratio()?.ratio, terms.margin) && shift.abs() < margin;
    let wanted = if inside {
        trials_for_equivalence(margin, shift, sd, ALPHA, POWER)
    } else {
        trials_for_difference(shift / sd, ALPHA / family.max(1) as f64, POWER)
    };
    Some(match wanted {
        // At least one: what there is did not suffice.
        Some(n) if n <= TRIALS_ADVISED_MAX => Further::Trials(n.saturating_sub(there).max(1)),
        _ => Further::TooMany,
    })
}

/// How a comparison ends for a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// No cell is slower, and each has a verdict.
    Settled,
    /// A cell is slower.
    Regression,
    /// No cell is slower, but some have no verdict.
    CannotTell,
}

#[cfg(test)]
mod tests;
