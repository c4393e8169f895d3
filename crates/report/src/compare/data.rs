//! A comparison as data: the object of `--format json`, whose cells are the rows of CSV. `iolab schema compare` describes it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iolab_analysis::claim;
use iolab_analysis::compare::{
    CellComparison, Comparison, Difference, Further, Overall, Side, SideValue,
};
use iolab_analysis::doubt::SideDoubt;
use iolab_figure::result_names;
use iolab_stats::{RankMethod, Summary, TTest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;

use super::{served_in_words, whole};
use crate::disturber;
use crate::document_header::{IOLAB_VERSION, Levels, SCHEMA};
use crate::ratio_data::Ratio;

/// What `iolab compare --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Compared<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The base.
    base: String,
    /// The new side.
    new: String,
    /// The answer in one line.
    summary: String,
    /// `settled` (exit code 0), `slower` (4), `cannot tell` (5).
    conclusion: &'static str,
    /// Quantity that both measured; `null` for bare numbers.
    response: Option<String>,
    /// Its unit; `null` for bare numbers.
    unit: Option<&'static str>,
    /// The smallest change that matters, a share.
    margin: f64,
    /// How many intervals hold together in 95 %.
    intervals: usize,
    /// The tests whose p values were asked for.
    tests: Vec<String>,
    /// Settings, target and machine in which the sides differ beside what is compared.
    differences: Vec<Differing<'a>>,
    /// Cells that the new side lacks, in words.
    only_base: &'a [String],
    /// Cells that the base lacks, in words.
    only_new: &'a [String],
    /// Cells, in words, that are not compared, because neither side makes requests there that are asked about.
    without_requests: &'a [String],
    /// All cells together, where both sides went through the same blocks; `null` otherwise.
    overall: Option<OverallData<'a>>,
    /// Conclusions, in sentences.
    remarks: Vec<String>,
    /// The cells that both have.
    cells: Vec<Cell<'a>>,
}

/// A setting or a fact in which the sides differ beside what is compared.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Differing<'a> {
    /// What differs: a key of the environment, the column of a setting, or a disturbance.
    what: Cow<'a, str>,
    /// What the base has.
    base: Cow<'a, str>,
    /// What the new side has.
    new: Cow<'a, str>,
}

/// All cells together.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Overall")]
struct OverallData<'a> {
    #[serde(flatten)]
    ratio: Ratio,
    /// Blocks that both sides share; `null` where they share too few.
    blocks: Option<usize>,
    /// What is claimed of the new side against the base.
    relation: claim::Difference,
    /// Whether they are shown to be equivalent.
    equivalent: bool,
    /// Doubts of any cell that could reverse it; then `relation` is `cannot_tell`.
    doubts: &'a [SideDoubt],
}

/// A cell with its values.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Cell<'a> {
    #[serde(flatten)]
    row: ComparisonRow,
    /// Values of the trials of the base in the order of time, in `unit`.
    base_values: &'a [f64],
    /// Values of the trials of the new side in the order of time, in `unit`.
    new_values: &'a [f64],
    /// What in the evidence could turn the verdict round.
    doubts: &'a [SideDoubt],
}

/// A cell with every figure.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct ComparisonRow {
    #[serde(flatten)]
    levels: Levels,
    /// Trials of the base.
    base_n: usize,
    /// Median of the base, in `unit`.
    base_median: Option<f64>,
    /// Low end of its 95 % interval, in `unit`.
    base_median_low: Option<f64>,
    /// High end of its 95 % interval, in `unit`.
    base_median_high: Option<f64>,
    /// First quartile of the base, in `unit`.
    base_q1: Option<f64>,
    /// Third quartile of the base, in `unit`.
    base_q3: Option<f64>,
    /// Mean of the base, in `unit`.
    base_mean: Option<f64>,
    /// Standard deviation of the base, in `unit`.
    base_sd: Option<f64>,
    /// p of the Mann-Kendall test for a drift of the base.
    base_drift_p: Option<f64>,
    /// Trials of the new side.
    new_n: usize,
    /// Median of the new side, in `unit`.
    new_median: Option<f64>,
    /// Low end of its 95 % interval, in `unit`.
    new_median_low: Option<f64>,
    /// High end of its 95 % interval, in `unit`.
    new_median_high: Option<f64>,
    /// First quartile of the new side, in `unit`.
    new_q1: Option<f64>,
    /// Third quartile of the new side, in `unit`.
    new_q3: Option<f64>,
    /// Mean of the new side, in `unit`.
    new_mean: Option<f64>,
    /// Standard deviation of the new side, in `unit`.
    new_sd: Option<f64>,
    /// p of the Mann-Kendall test for a drift of the new side.
    new_drift_p: Option<f64>,
    /// What the ratio is of: `blocks` or `medians`.
    ratio_of: Option<&'static str>,
    #[serde(flatten)]
    ratio: Ratio,
    /// `slower`, `faster`, `higher`, `lower`, `equivalent`, `identical`, or `cannot tell`, with the reason in brackets: `(wide interval)`,
    /// `(few trials)`, `(no value)`, `(no ratio)` (a value is not positive), `(one run each)`, `(other source)`, `(suspended)`, `(disturbed)`, `(earlier writes)`, `(rate not held)`, `(time limit)`, `(coarse clock)`, `(two groups)`, `(drift)`.
    verdict: String,
    /// Trials that each side lacks for a verdict; `null` where there is one, or where no reasonable number suffices.
    further_trials: Option<usize>,
    /// Mean of the new side over that of the base; `null` with `ratio_bound`, like the other ratios of centres.
    ratio_of_means: Option<f64>,
    /// Low end of its 95 % interval.
    ratio_of_means_low: Option<f64>,
    /// High end of its 95 % interval.
    ratio_of_means_high: Option<f64>,
    /// t of Welch's test.
    welch_t: Option<f64>,
    /// Its degrees of freedom.
    welch_df: Option<f64>,
    /// Its p, two-sided.
    welch_p: Option<f64>,
    /// Difference of the means, new minus base, in `unit`.
    welch_difference: Option<f64>,
    /// Low end of its 95 % interval, in `unit`.
    welch_difference_low: Option<f64>,
    /// High end of its 95 % interval, in `unit`.
    welch_difference_high: Option<f64>,
    /// t of Student's test.
    student_t: Option<f64>,
    /// Its degrees of freedom.
    student_df: Option<f64>,
    /// Its p, two-sided.
    student_p: Option<f64>,
    /// Difference of the means, new minus base, in `unit`.
    student_difference: Option<f64>,
    /// Low end of its 95 % interval, in `unit`.
    student_difference_low: Option<f64>,
    /// High end of its 95 % interval, in `unit`.
    student_difference_high: Option<f64>,
    /// U of the Mann-Whitney test, of the new side.
    mann_whitney_u: Option<f64>,
    /// Its p, two-sided.
    mann_whitney_p: Option<f64>,
    /// How p was computed: `exact` or `asymptotic`.
    mann_whitney_method: Option<&'static str>,
    /// p of the first of `tests`, adjusted over the cells by Holm's method.
    p_adjusted: Option<f64>,
    /// Chance that a value of the new side is greater than one of the base.
    a12: Option<f64>,
    /// p of equivalence within the margin.
    tost_p: Option<f64>,
    /// Geometric mean of the new side over that of the base.
    ratio_of_geometric_means: Option<f64>,
    /// Low end of its 90 % interval.
    ratio_of_geometric_means_low: Option<f64>,
    /// High end of its 90 % interval.
    ratio_of_geometric_means_high: Option<f64>,
    #[serde(flatten)]
    first: FirstTrials,
    /// Where the bytes of the base came from.
    base_served_by: Option<String>,
    /// Where the bytes of the new side came from.
    new_served_by: Option<String>,
}

/// `TEST_p_first_N`: p of each test of the first trials of both sides.
#[derive(Debug, Clone, Serialize)]
struct FirstTrials(BTreeMap<String, Option<f64>>);

impl JsonSchema for FirstTrials {
    fn schema_name() -> Cow<'static, str> {
        "FirstTrials".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let p = json!({
            "type": ["number", "null"],
            "description": "p of this test of the first so many trials of both sides",
        });
        json_schema!({
            "type": "object",
            "patternProperties": {
                "^welch_p_first_": p,
                "^student_p_first_": p,
                "^mann_whitney_p_first_": p,
            },
        })
    }
}

impl<'a> Compared<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let cells = comparison.cells.iter().zip(&comparison.pairs);
        let response = comparison.response;
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            base: whole(&comparison.base),
            new: whole(&comparison.new),
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
            without_requests: &comparison.without_requests,
            overall: comparison.overall.as_ref().map(OverallData::of),
            remarks: super::remarks(comparison),
            cells: cells
                .map(|(cell, pair)| Cell {
                    row: ComparisonRow::of(comparison, cell),
                    base_values: &pair.base,
                    new_values: &pair.new,
                    doubts: &cell.doubts,
                })
                .collect(),
        }
    }
}

impl<'a> Differing<'a> {
    pub(crate) fn of(found: &'a Difference) -> Self {
        Self {
            what: found.what.key(),
            base: exported(&found.base),
            new: exported(&found.new),
        }
    }
}

/// What a side has, as in exports.
fn exported(value: &SideValue) -> Cow<'_, str> {
    match value {
        SideValue::Known(text) => text.into(),
        SideValue::Set(setting, set) => match serde_json::Value::from(set.clone()) {
            // A column of exports has no rate in bytes.
            serde_json::Value::Null => set.text(setting.kind).into(),
            serde_json::Value::String(text) => text.into(),
            other => other.to_string().into(),
        },
        SideValue::Disturbed(by, value) => disturber::extent(*by, *value).into(),
        SideValue::Unknown => "not known".into(),
        SideValue::Various => "various, by cell".into(),
    }
}

impl<'a> OverallData<'a> {
    fn of(overall: &'a Overall) -> Self {
        let Overall {
            estimate,
            difference,
            doubts,
        } = overall;
        Self {
            ratio: Ratio::of(Some(estimate)),
            blocks: estimate.blocks,
            relation: *difference,
            equivalent: *difference == claim::Difference::Equivalent,
            doubts,
        }
    }
}

impl ComparisonRow {
    pub(super) fn of(comparison: &Comparison, cell: &CellComparison) -> Self {
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
        // The ratio of other centres is no more than a bound either.
        let is_bound = cell
            .estimate
            .is_some_and(|estimate| estimate.bound.is_some());
        let means = cell.ratio_of_means.filter(|_| !is_bound);
        let ranks = cell.mann_whitney;
        let geometric = cell.equivalence;
        let centres = geometric.filter(|_| !is_bound);
        let first = cell.repeats.iter().flat_map(|repeats| {
            [
                ("welch", repeats.welch_p),
                ("student", repeats.student_p),
                ("mann_whitney", repeats.mann_whitney_p),
            ]
            .map(|(test, p)| (format!("{test}_p_first_{}", repeats.n), p))
        });
        let served = served_in_words(cell);
        Self {
            levels: Levels::of(&comparison.factors, &cell.levels),
            base_n: n(&cell.base),
            base_median: base(|s| Some(s.median)),
            base_median_low: base(|s| s.median_interval.map(|i| i.low)),
            base_median_high: base(|s| s.median_interval.map(|i| i.high)),
            base_q1: base(|s| Some(s.quartiles()?.0)),
            base_q3: base(|s| Some(s.quartiles()?.1)),
            base_mean: base(|s| s.mean),
            base_sd: base(|s| s.sd),
            base_drift_p: cell.base.drift_p,
            new_n: n(&cell.new),
            new_median: new(|s| Some(s.median)),
            new_median_low: new(|s| s.median_interval.map(|i| i.low)),
            new_median_high: new(|s| s.median_interval.map(|i| i.high)),
            new_q1: new(|s| Some(s.quartiles()?.0)),
            new_q3: new(|s| Some(s.quartiles()?.1)),
            new_mean: new(|s| s.mean),
            new_sd: new(|s| s.sd),
            new_drift_p: cell.new.drift_p,
            ratio_of: cell.estimate.map(|estimate| match estimate.blocks {
                Some(_) => "blocks",
                None => "medians",
            }),
            ratio: Ratio::of(cell.estimate.as_ref()),
            verdict: result_names::verdict(cell.verdict).into_owned(),
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
            ratio_of_geometric_means: centres.map(|tests| tests.ratio),
            ratio_of_geometric_means_low: centres.map(|tests| tests.interval.low),
            ratio_of_geometric_means_high: centres.map(|tests| tests.interval.high),
            first: FirstTrials(first.collect()),
            base_served_by: served.as_ref().map(|(base, _)| base.clone()),
            new_served_by: served.map(|(_, new)| new),
        }
    }
}
