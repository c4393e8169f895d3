//! Compares two series of trials, cell by cell: the ratio, its uncertainty, and whether it matters.
//!
//! The interval next to the ratio decides, as for claims (`claim/effect.rs`); see `judge.rs`. Tests of means and ranks are shown
//! but do not decide.

mod difference;
mod judge;
mod levels;
pub mod matching;

use std::collections::BTreeMap;
use std::fmt;

use iolab_stats::holm;
use schemars::JsonSchema;
use serde::Serialize;

use crate::claim::Estimate;
use crate::doubt::{Doubt, SideDoubts};
use iolab_workload::{Result, json, named};

pub use difference::{Difference, DiffersIn, SideValue};
pub use judge::CellVerdict;
pub use levels::{PEER_MARGIN, with_peers};
pub use matching::RunSide;

use iolab_plan::experiment::trials_to_compare;
use iolab_record::{RunRecord, ServedBy, TargetKind};

use crate::analysis::{Response, SteadyAnalysis, TRIALS_MIN};

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Level of the tests.
pub const ALPHA: f64 = 0.05;
/// Probability of a verdict, for which the number of further trials is computed.
pub const POWER: f64 = 0.8;

/// Direction in which a value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The higher: throughput, IOPS.
    Higher,
    /// The lower: times.
    Lower,
    /// Unknown.
    #[default]
    Unstated,
}

impl Better {
    /// The verdict for a change in this direction.
    pub(crate) fn verdict(self, is_higher: bool) -> CellVerdict {
        match (self, is_higher) {
            (Better::Higher, true) | (Better::Lower, false) => CellVerdict::Faster,
            (Better::Higher, false) | (Better::Lower, true) => CellVerdict::Slower,
            (Better::Unstated, true) => CellVerdict::Higher,
            (Better::Unstated, false) => CellVerdict::Lower,
        }
    }
}

impl From<Response> for Better {
    fn from(response: Response) -> Self {
        match response.is_time() {
            true => Self::Lower,
            false => Self::Higher,
        }
    }
}

named! {
    /// A test for a difference.
    pub enum HypothesisTest: "test" {
        /// Welch's t test: means, variances may differ.
        Welch = "Welch",
        /// Student's t test: means, equal variances.
        Student = "Student",
        /// The Mann-Whitney U test: ranks.
        MannWhitney = "Mann-Whitney",
    }
}

/// The parameters of a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Criteria {
    /// The smallest change that matters, a share: with 0.05, ratios from 1/1.05 to 1.05 are equivalent.
    pub margin: f64,
    /// The tests to report; p values of the first one are also adjusted.
    pub tests: Vec<HypothesisTest>,
    /// Direction in which values are better, if the response does not say.
    pub better: Better,
    /// Whether to judge two runs by the scatter of the trials within them. Runs of an unchanged machine differ by more.
    pub within_run: bool,
    /// For a gate, which reports changes of any size: the fewest runs of the base that a cell is judged by. Otherwise
    /// changes that exceed the margin are reported, or equivalence.
    #[serde(skip)]
    pub gate: Option<usize>,
}

/// The unit of replication of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplicationUnit {
    /// Numbers, assumed to be independent.
    #[default]
    Numbers,
    /// Ratios within the blocks that both sides share in one run.
    Blocks,
    /// One run on each side: differences cannot be shown.
    OneRunEach,
    /// Two runs of models: only seeds differ between runs, as between trials.
    ComputedRuns,
    /// The trials within two runs, on request.
    TrialsWithinRuns,
    /// Both sides have the same samples: copies of a run, or a model that ran twice with one seed.
    SameSamples,
    /// The medians of several runs.
    Runs,
}

/// One cell of both sides before it is judged: the values of the measured trials, in the order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Pair {
    /// The levels that both sides share, in the order of [`Comparison::factors`].
    pub(crate) levels: Vec<String>,
    /// Values of the base.
    pub(crate) base: Vec<f64>,
    /// Values of the new side.
    pub(crate) new: Vec<f64>,
    /// Origin of the bytes of the base and of the new side; `None` where unknown.
    pub(crate) served: [Option<ServedBy>; 2],
    /// For sides measured in the same blocks: the logarithm of new over base in each block.
    pub(crate) within_blocks: Option<BTreeMap<u32, f64>>,
    /// Evidence against the comparison.
    pub(crate) against: SideDoubts,
}

/// Number of further trials for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Further {
    /// This many on each side.
    Trials(usize),
    /// Too many to recommend.
    TooMany,
}

/// One side of a cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Side {
    /// Values of the trials, or medians of the runs, in the order of time, in the unit of the response.
    pub values: Vec<f64>,
    /// Their median; of runs the geometric mean; `null` without values.
    pub centre: Option<f64>,
    /// The 95 % interval of the median; `null` with too few values, and of runs.
    pub interval: Option<(f64, f64)>,
    /// p of the Mann-Kendall test for a drift over the trials.
    pub drift_p: Option<f64>,
    /// Origin of the bytes: of most trials where several runs were measured.
    pub served_by: Option<ServedBy>,
}

/// p values of a test for a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TestResult {
    /// The test.
    pub test: HypothesisTest,
    /// p of all values of both sides.
    pub p: Option<f64>,
}

/// One cell, compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellComparison {
    /// The levels that both sides share, in the order of the factors; none for all cells together.
    pub levels: Vec<String>,
    /// The base.
    pub base: Side,
    /// The new side.
    pub new: Side,
    /// New over base, with the interval that decides; `null` unless all values are positive.
    pub estimate: Option<Estimate>,
    /// The verdict: `cannot tell` with the reason in brackets.
    #[serde(serialize_with = "json::name")]
    #[schemars(with = "String")]
    pub verdict: CellVerdict,
    /// Doubts that could reverse the verdict of the interval.
    pub doubts: Vec<Doubt>,
    /// Number of further trials for a verdict, where there is none.
    pub further: Option<Further>,
    /// The tests that were asked for.
    pub tests: Vec<TestResult>,
    /// p of the first test, or of the change from run to run, adjusted over all cells.
    pub p_adjusted: Option<f64>,
    /// Standard deviation of the logarithms from run to run.
    pub run_sd: Option<f64>,
    /// The change, as a share, that would have been found with a chance of 90 % in this cell alone; of all cells together, in all of them.
    pub detectable: Option<f64>,
}

impl CellComparison {
    /// The unadjusted p value of one of the tests that were asked for.
    pub fn p(&self, test: HypothesisTest) -> Option<f64> {
        self.tests.iter().find(|result| result.test == test)?.p
    }

    /// Whether the bytes of the sides have different origins.
    pub fn is_served_differently(&self) -> bool {
        self.base.served_by != self.new.served_by
    }
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct RunName {
    /// The path as the user wrote it.
    pub file: String,
    /// The run: 16 hexadecimal digits, the same in every copy of its file.
    #[serde(rename = "run")]
    pub id: String,
    /// Start: RFC 3339, UTC.
    #[serde(rename = "run_started_utc")]
    pub started_utc: String,
    /// Host of the run; `null` where unknown.
    pub host: Option<String>,
}

impl RunName {
    /// The identity of a file's run.
    pub fn of(file: &str, record: &RunRecord) -> Self {
        Self {
            file: file.to_owned(),
            id: record.id(),
            started_utc: record.run.started_utc.clone(),
            host: record.host(),
        }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SideName {
    /// Short name for sentences: a file, a level.
    pub name: String,
    /// Experiment, target and time of the measurement; empty if unknown.
    pub of: String,
    /// The runs, in the order of time; none where a run is not the unit of replication.
    pub runs: Vec<RunName>,
    /// The targets of the runs, each once: the spread from run to run is that between these.
    pub targets: Vec<String>,
}

impl From<String> for SideName {
    fn from(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

/// The short name.
impl fmt::Display for SideName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// Two sides, compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Comparison {
    /// The base.
    pub base: SideName,
    /// The new side.
    pub new: SideName,
    /// The response of both; `null` for numbers.
    pub response: Option<Response>,
    /// The factors that distinguish the cells.
    pub factors: Vec<String>,
    /// Labels of cells that the new side lacks.
    pub only_base: Vec<String>,
    /// Labels of cells that the base lacks.
    pub only_new: Vec<String>,
    /// Labels of cells that are not compared, because neither side makes requests there that the response is of.
    pub without_requests: Vec<String>,
    /// Other differences of the sides.
    pub differences: Vec<Difference>,
    /// Run files in which the definition cannot be read.
    pub undefined: Vec<String>,
    /// Names of sides whose rounds did not become steady.
    pub unsteady: Vec<String>,
    /// The unit of replication.
    pub unit: ReplicationUnit,
    /// The parameters.
    pub terms: Criteria,
    /// The cells that both sides have, in the order of the base.
    pub cells: Vec<CellComparison>,
    /// Number of cells with simultaneous intervals, to which runs add one of all cells together.
    pub intervals: usize,
    /// Whether steady rounds decide the number of trials, by their window.
    pub is_of_rounds: bool,
    /// All cells combined, where there are several: from shared blocks, or from undisturbed cells of runs.
    pub overall: Option<CellComparison>,
}

impl Comparison {
    /// Compares two runs, or two levels of a factor of one, cell by cell.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): different responses, no cell in common, or an experiment in a run file that
    /// cannot be read.
    pub fn of_runs(
        names: [SideName; 2],
        base: RunSide<'_>,
        new: RunSide<'_>,
        terms: Criteria,
    ) -> Result<Self> {
        let matched = matching::match_sides(&[base], &[new])?;
        let is_one_run = std::ptr::eq(base.run, new.run);
        // Models run in virtual time.
        let computed = |side: &RunSide<'_>| side.run.record().run.target_kind == TargetKind::Model;
        let unit = if is_one_run {
            ReplicationUnit::Blocks
        } else if base.run.record().has_same_samples(new.run.record()) {
            ReplicationUnit::SameSamples
        } else if [base, new].iter().all(computed) {
            ReplicationUnit::ComputedRuns
        } else if terms.within_run {
            ReplicationUnit::TrialsWithinRuns
        } else {
            ReplicationUnit::OneRunEach
        };
        let pairs = matched.pairs(is_one_run);
        let blocks = pairs.iter().filter_map(|pair| pair.within_blocks.as_ref());
        let blocks: Vec<_> = blocks.collect();
        let together = Pair {
            within_blocks: Some(matching::merge_blocks(&blocks)),
            against: SideDoubts::of_any(pairs.iter().map(|pair| pair.against.clone())),
            ..Pair::default()
        };
        let terms = Criteria {
            better: matched.response.into(),
            ..terms
        };
        let overall = judge::compare(&[together], &terms, unit).pop();
        let overall = overall.filter(|_| pairs.len() > 1);
        let rounds = |side: &RunSide<'_>, are: fn(&SteadyAnalysis) -> bool| {
            side.run.analysis().steady.as_ref().is_some_and(are)
        };
        let named = |is_named: &dyn Fn(&RunSide<'_>) -> bool| {
            let sides = names.iter().zip([base, new]);
            let sides = sides.filter(|(_, side)| is_named(side));
            sides.map(|(name, _)| name.name.clone()).collect()
        };
        let sides = [base, new];
        // Levels of one run are not separate files.
        let lacks = |side: &RunSide<'_>| !is_one_run && !side.run.analysis().has_definition;
        Ok(Self {
            is_of_rounds: sides
                .iter()
                .any(|side| rounds(side, SteadyAnalysis::is_of_cells)),
            undefined: named(&lacks),
            unsteady: named(&|side| rounds(side, SteadyAnalysis::is_missed)),
            intervals: judge::intervals(&pairs),
            cells: judge::compare(&pairs, &terms, unit),
            unit,
            overall: overall.filter(|all| all.estimate.is_some()),
            base: names[0].clone(),
            new: names[1].clone(),
            terms,
            ..matched.compared
        })
    }

    /// Compares two series of numbers.
    pub fn of_numbers(
        names: [SideName; 2],
        base: Vec<f64>,
        new: Vec<f64>,
        terms: Criteria,
    ) -> Self {
        let pairs = [Pair {
            base,
            new,
            ..Pair::default()
        }];
        let [base, new] = names;
        Self {
            base,
            new,
            cells: judge::compare(&pairs, &terms, ReplicationUnit::Numbers),
            intervals: judge::intervals(&pairs),
            terms,
            ..Self::default()
        }
    }

    /// Whether ratios within blocks are shown.
    pub fn shares_blocks(&self) -> bool {
        let estimates = self.cells.iter().filter_map(|cell| cell.estimate);
        estimates.into_iter().any(|one| one.blocks.is_some())
    }

    /// Number of cells that have a simultaneous interval once they have enough trials.
    pub fn comparable(&self) -> usize {
        let has =
            |cell: &&CellComparison| !cell.base.values.is_empty() && !cell.new.values.is_empty();
        self.cells.iter().filter(has).count()
    }

    /// Number of trials on each side that each of these cells needs for it.
    pub fn trials_min(&self) -> usize {
        match self.shares_blocks() {
            true => TRIALS_MIN,
            false => trials_to_compare(self.comparable()) as usize,
        }
    }

    /// Number of cells with this verdict.
    pub fn count(&self, verdict: CellVerdict) -> usize {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.verdict == verdict).count()
    }

    /// The conclusion over all cells.
    pub fn conclusion(&self) -> Conclusion {
        let mut all = self.cells.iter().chain(&self.overall);
        if all.any(|cell| cell.verdict == CellVerdict::Slower) {
            Conclusion::Regression
        } else if self.cells.iter().any(|cell| cell.verdict.is_open()) {
            Conclusion::CannotTell
        } else {
            Conclusion::Settled
        }
    }

    /// Number of cells with drift on a side, where the tests of all cells and sides are one family.
    pub fn drifting(&self) -> usize {
        let cells = self.cells.iter();
        let sides = cells.flat_map(|c| [c.base.drift_p, c.new.drift_p]);
        let p: Vec<f64> = sides.map(|p| p.unwrap_or(1.0)).collect();
        let adjusted = holm(&p).unwrap_or_default();
        let drifts = |pair: &&[f64]| pair.iter().any(|p| *p < ALPHA);
        adjusted.chunks(2).filter(drifts).count()
    }
}

named! {
    /// The conclusion for scripts.
    pub enum Conclusion: "conclusion" {
        /// No cell is slower, and all have a verdict.
        Settled = "settled",
        /// A cell is slower.
        Regression = "slower",
        /// No cell is slower, but some have no verdict.
        CannotTell = "cannot tell",
    }
}

#[cfg(test)]
mod tests;
