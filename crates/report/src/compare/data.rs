//! A comparison as data: the object of `--format json`, whose cells are the rows of CSV. docs/OUTPUT.md names the parts.

use std::collections::BTreeMap;

use iolab_analysis::claim::Estimate;
use iolab_analysis::compare::{self, CellComparison, Comparison, Difference, Further, Side};
use iolab_analysis::doubt::{self, SideDoubt};
use iolab_stats::{RankMethod, Summary, TTest};
use iolab_workload::escape_control::escape_control;
use serde::Serialize;

use crate::doubt::{of_side, remedy};

/// Two sides, compared.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Compared<'a> {
    base: String,
    new: String,
    summary: String,
    conclusion: &'static str,
    response: Option<String>,
    unit: Option<&'static str>,
    margin: f64,
    /// How many intervals hold together in 95 %.
    intervals: usize,
    /// The tests whose p values were asked for.
    tests: Vec<String>,
    differences: Vec<Differing<'a>>,
    only_base: &'a [String],
    only_new: &'a [String],
    overall: Option<Overall>,
    remarks: Vec<String>,
    cells: Vec<Cell<'a>>,
}

/// In what the sides differ besides.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Differing<'a> {
    what: &'a str,
    base: &'a str,
    new: &'a str,
}

/// All cells together.
#[derive(Debug, Clone, Serialize)]
struct Overall {
    #[serde(flatten)]
    ratio: Ratio,
    blocks: Option<usize>,
    /// Whether they are shown to be equivalent.
    equivalent: bool,
}

/// New over base, with the ends of the interval that decides.
#[derive(Debug, Clone, Serialize)]
struct Ratio {
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
}

/// A cell with its values.
#[derive(Debug, Clone, Serialize)]
struct Cell<'a> {
    #[serde(flatten)]
    row: Row,
    base_values: &'a [f64],
    new_values: &'a [f64],
    doubts: Vec<Against>,
}

/// What could turn the verdict round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Against {
    doubt: &'static str,
    /// `base`, `new`, or nothing where it is both together.
    side: Option<&'static str>,
    text: String,
    remedy: Option<String>,
}

/// A cell with every figure.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// `level_FACTOR`: the level of each factor.
    #[serde(flatten)]
    levels: BTreeMap<String, String>,
    base_n: usize,
    base_median: Option<f64>,
    base_median_low: Option<f64>,
    base_median_high: Option<f64>,
    base_q1: Option<f64>,
    base_q3: Option<f64>,
    base_mean: Option<f64>,
    base_sd: Option<f64>,
    base_drift_p: Option<f64>,
    new_n: usize,
    new_median: Option<f64>,
    new_median_low: Option<f64>,
    new_median_high: Option<f64>,
    new_q1: Option<f64>,
    new_q3: Option<f64>,
    new_mean: Option<f64>,
    new_sd: Option<f64>,
    new_drift_p: Option<f64>,
    /// What the ratio is of: `blocks` or `medians`.
    ratio_of: Option<&'static str>,
    #[serde(flatten)]
    ratio: Ratio,
    verdict: String,
    further_trials: Option<usize>,
    ratio_of_means: Option<f64>,
    ratio_of_means_low: Option<f64>,
    ratio_of_means_high: Option<f64>,
    welch_t: Option<f64>,
    welch_df: Option<f64>,
    welch_p: Option<f64>,
    welch_difference: Option<f64>,
    welch_difference_low: Option<f64>,
    welch_difference_high: Option<f64>,
    student_t: Option<f64>,
    student_df: Option<f64>,
    student_p: Option<f64>,
    student_difference: Option<f64>,
    student_difference_low: Option<f64>,
    student_difference_high: Option<f64>,
    mann_whitney_u: Option<f64>,
    mann_whitney_p: Option<f64>,
    mann_whitney_method: Option<&'static str>,
    p_adjusted: Option<f64>,
    a12: Option<f64>,
    tost_p: Option<f64>,
    ratio_of_geometric_means: Option<f64>,
    ratio_of_geometric_means_low: Option<f64>,
    ratio_of_geometric_means_high: Option<f64>,
    /// `TEST_p_first_N`: p of each test of the first trials of both sides.
    #[serde(flatten)]
    first: BTreeMap<String, Option<f64>>,
    base_served_by: Option<String>,
    new_served_by: Option<String>,
}

impl<'a> Compared<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let cells = comparison.cells.iter().zip(&comparison.pairs);
        let response = comparison.response;
        Self {
            base: comparison.base.whole(),
            new: comparison.new.whole(),
            summary: super::conclusion(comparison),
            conclusion: comparison.conclusion().name(),
            response: response.map(|response| response.to_string()),
            unit: response.map(|response| response.unit()),
            margin: comparison.terms.margin,
            intervals: comparison.intervals,
            tests: comparison
                .terms
                .tests
                .iter()
                .map(ToString::to_string)
                .collect(),
            differences: comparison.differences.iter().map(Differing::of).collect(),
            only_base: &comparison.only_base,
            only_new: &comparison.only_new,
            overall: comparison.overall.as_ref().map(Overall::of),
            remarks: super::remarks(comparison),
            cells: cells
                .map(|(cell, pair)| Cell {
                    row: Row::of(comparison, cell),
                    base_values: &pair.base,
                    new_values: &pair.new,
                    doubts: cell.doubts.iter().map(Against::of).collect(),
                })
                .collect(),
        }
    }
}

impl<'a> Differing<'a> {
    pub(crate) fn of(found: &'a Difference) -> Self {
        Self {
            what: &found.what,
            base: &found.base,
            new: &found.new,
        }
    }
}

impl Against {
    pub(crate) fn of(found: &SideDoubt) -> Self {
        Self {
            doubt: found.reason.name(),
            side: found.side.map(|side| match side {
                doubt::ComparedSide::Base => "base",
                doubt::ComparedSide::New => "new",
            }),
            text: of_side(&found.reason),
            remedy: remedy(&found.reason),
        }
    }
}

impl Overall {
    fn of(overall: &compare::Overall) -> Self {
        Self {
            ratio: Ratio::of(Some(&overall.estimate)),
            blocks: overall.estimate.blocks,
            equivalent: overall.difference == iolab_analysis::claim::Difference::Equivalent,
        }
    }
}

impl Ratio {
    fn of(estimate: Option<&Estimate>) -> Self {
        let interval = estimate.and_then(|estimate| estimate.interval);
        Self {
            ratio: estimate.map(|estimate| estimate.ratio),
            ratio_low: interval.map(|(low, _)| low),
            ratio_high: interval.map(|(_, high)| high),
        }
    }
}

impl Row {
    pub(super) fn of(comparison: &Comparison, cell: &CellComparison) -> Self {
        let levels = comparison.factors.iter().zip(&cell.levels);
        let of =
            |side: &Side, get: fn(&Summary) -> Option<f64>| side.summary.as_ref().and_then(get);
        let (base, new) = (
            |get: fn(&Summary) -> Option<f64>| of(&cell.base, get),
            |get: fn(&Summary) -> Option<f64>| of(&cell.new, get),
        );
        let n = |side: &Side| side.summary.map_or(0, |summary| summary.n);
        let (welch, student) = (cell.welch.as_ref(), cell.student.as_ref());
        let low = |test: Option<&TTest>| test.map(|test| test.interval.low);
        let high = |test: Option<&TTest>| test.map(|test| test.interval.high);
        let means = cell.ratio_of_means;
        let ranks = cell.mann_whitney;
        let geometric = cell.equivalence;
        let first = cell.repeats.iter().flat_map(|repeats| {
            [
                ("welch", repeats.welch_p),
                ("student", repeats.student_p),
                ("mann_whitney", repeats.mann_whitney_p),
            ]
            .map(|(test, p)| (format!("{test}_p_first_{}", repeats.n), p))
        });
        let served = cell.served.as_ref();
        Self {
            levels: levels
                .map(|(factor, level)| {
                    let name = format!("level_{}", escape_control(factor));
                    (name, escape_control(level).into_owned())
                })
                .collect(),
            base_n: n(&cell.base),
            base_median: base(|s| Some(s.median)),
            base_median_low: base(|s| s.median_interval.map(|i| i.low)),
            base_median_high: base(|s| s.median_interval.map(|i| i.high)),
            base_q1: base(|s| Some(s.q1)),
            base_q3: base(|s| Some(s.q3)),
            base_mean: base(|s| s.mean),
            base_sd: base(|s| s.sd),
            base_drift_p: cell.base.drift_p,
            new_n: n(&cell.new),
            new_median: new(|s| Some(s.median)),
            new_median_low: new(|s| s.median_interval.map(|i| i.low)),
            new_median_high: new(|s| s.median_interval.map(|i| i.high)),
            new_q1: new(|s| Some(s.q1)),
            new_q3: new(|s| Some(s.q3)),
            new_mean: new(|s| s.mean),
            new_sd: new(|s| s.sd),
            new_drift_p: cell.new.drift_p,
            ratio_of: cell.estimate.map(|estimate| match estimate.blocks {
                Some(_) => "blocks",
                None => "medians",
            }),
            ratio: Ratio::of(cell.estimate.as_ref()),
            verdict: cell.verdict.to_string(),
            further_trials: cell.further.and_then(|further| match further {
                Further::Trials(n) => Some(n),
                Further::TooMany => None,
            }),
            ratio_of_means: means.map(|means| means.ratio),
            ratio_of_means_low: means.and_then(|means| Some(means.interval?.low)),
            ratio_of_means_high: means.and_then(|means| Some(means.interval?.high)),
            welch_t: welch.and_then(|test| test.t),
            welch_df: welch.map(|test| test.df),
            welch_p: welch.map(|test| test.p),
            welch_difference: welch.map(|test| test.difference),
            welch_difference_low: low(welch),
            welch_difference_high: high(welch),
            student_t: student.and_then(|test| test.t),
            student_df: student.map(|test| test.df),
            student_p: student.map(|test| test.p),
            student_difference: student.map(|test| test.difference),
            student_difference_low: low(student),
            student_difference_high: high(student),
            mann_whitney_u: ranks.map(|ranks| ranks.u),
            mann_whitney_p: ranks.map(|ranks| ranks.p),
            mann_whitney_method: ranks.map(|ranks| match ranks.method {
                RankMethod::Exact => "exact",
                RankMethod::Asymptotic => "asymptotic",
            }),
            p_adjusted: cell.p_adjusted,
            a12: cell.a12,
            tost_p: geometric.map(|tests| tests.p),
            ratio_of_geometric_means: geometric.map(|tests| tests.ratio),
            ratio_of_geometric_means_low: geometric.map(|tests| tests.interval.low),
            ratio_of_geometric_means_high: geometric.map(|tests| tests.interval.high),
            first: first.collect(),
            base_served_by: served.map(|(base, _)| base.clone()),
            new_served_by: served.map(|(_, new)| new.clone()),
        }
    }
}
