//! Findings about the order of the trials, which intervals take to be of no importance.

use iolab_stats::{Steadiness, holm};

use super::{Finding, Rule, Says, within};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::series_tests::SeriesTests;
use iolab_plan::cells::label;
use iolab_spec::quantity::{digits, format_percent};

pub(crate) const STEADY_STATE: Rule =
    Rule::result("steady-state", "the last 5 trials of each cell that writes");
pub(crate) const DRIFT: Rule = Rule::doubt(
    "drift",
    "Mann and Kendall's test in each cell, with Holm's correction over the cells",
);
pub(crate) const DEPENDENCE: Rule = Rule::doubt(
    "dependence",
    "Ljung and Box's test in each cell, with Holm's correction over the cells",
);
pub(crate) const TWO_GROUPS: Rule = Rule::doubt(
    "two-groups",
    "the density of each cell's trials, and its valley",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[steady, drift, dependence, two_groups];

/// Level of the tests, over all cells of a run.
const ALPHA: f64 = 0.05;

/// Whether the cells that write were in a steady state by the rule of the SNIA, each trial being a round. A device that
/// is written to may start fast and end slow; reads hardly change it.
pub fn steady(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis.cells.iter();
    let writing = cells.filter(|c| c.cell.program().is_none() && c.cell.trial().read_percent < 100);
    let judged: Vec<(&CellAnalysis, Steadiness)> = writing
        .filter_map(|cell| Some((cell, cell.series_tests.steady?)))
        .collect();
    let (reached, not): (Vec<_>, Vec<_>) =
        judged.into_iter().partition(|(_, steady)| steady.reached);
    let rule = "steady state (SNIA: 5 trials in a row within 20 %, their slope within 10 %)";
    let text = match (reached.len(), not.len()) {
        (0, 0) => return Vec::new(),
        (n, 0) if n == analysis.cells.len() => format!("All cells reached a {rule}."),
        (n, 0) => format!("All {n} cells that write reached a {rule}."),
        (n, missed) => {
            let by_range =
                |a: &&(_, Steadiness), b: &&(_, Steadiness)| a.1.range.total_cmp(&b.1.range);
            let restless = not.iter().max_by(by_range);
            let example = restless.map_or_else(String::new, |(cell, steady)| {
                format!(
                    "; in {} the last 5 lie within {}, with a slope of {}",
                    label(&analysis.factors, &cell.cell.levels),
                    format_percent(steady.range),
                    format_percent(steady.slope)
                )
            });
            format!(
                "A {rule} was reached in {n} of {} cells that write, and NOT reached in {missed}{example}. More trials, --settle or --precondition may reach it.",
                n + missed
            )
        }
    };
    STEADY_STATE.one(text)
}

/// Drift over all trials of a cell below which it is not reported, as a share of the median: less than the times of single
/// requests resolve, and far below any interval.
const DRIFT_LEAST: f64 = 1e-4;

/// Cells whose trials drift with time: Mann and Kendall's test, corrected over the cells.
pub fn drift(analysis: &Analysis) -> Vec<Finding> {
    let drifting = drifting_cells(analysis);
    let slope = |cell: &CellAnalysis| {
        let median = cell.response.map(|r| r.median)?;
        Some(cell.series_tests.trend?.slope_per_trial / median).filter(|slope| slope.is_finite())
    };
    let steepest = drifting
        .iter()
        .filter_map(|cell| Some((*cell, slope(cell)?)))
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let Some((cell, slope)) = steepest else {
        return Vec::new();
    };
    DRIFT.one(format!(
            "In {} the trials drift with time (Mann-Kendall, Holm), most in {} by {} per trial. Intervals there are too narrow.",
            within(drifting.len(), analysis),
            label(&analysis.factors, &cell.cell.levels),
            signed_percent(slope),
        ),
    )
}

/// `+1.2 %`, `-0.030 %`: with digits enough not to read as nothing.
fn signed_percent(share: f64) -> String {
    let percent = share * 100.0;
    let sign = if percent > 0.0 { "+" } else { "" };
    match percent.abs() < 0.1 {
        true => format!("{sign}{} %", digits(percent, 2)),
        false => format!("{sign}{}", format_percent(share)),
    }
}

/// Cells whose trials depend on the ones before without drifting: Ljung and Box's test, corrected over the cells.
pub fn dependence(analysis: &Analysis) -> Vec<Finding> {
    let dependent = dependent_cells(analysis);
    if dependent.is_empty() {
        return Vec::new();
    }
    DEPENDENCE.one(format!(
            "In {} trials depend on earlier ones (Ljung-Box, Holm). Intervals there do not have their nominal confidence.",
            within(dependent.len(), analysis),
        ),
    )
}

/// Cells whose trials look like two groups.
pub fn two_groups(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis.cells.iter();
    let split: Vec<&CellAnalysis> = cells.filter(|c| c.series_tests.modes.is_some()).collect();
    let widest = split
        .iter()
        .filter_map(|cell| Some((*cell, cell.series_tests.modes?)))
        .max_by(|(_, a), (_, b)| a.separation.total_cmp(&b.separation));
    let Some((cell, modes)) = widest else {
        return Vec::new();
    };
    TWO_GROUPS.one(format!(
            "In {} the trials form two groups, most clearly in {}: {} of them around {}, the others around {}. The median describes neither group.",
            within(split.len(), analysis),
            label(&analysis.factors, &cell.cell.levels),
            format_percent(modes.low_share),
            analysis.response.format(modes.low_median),
            analysis.response.format(modes.high_median),
        ),
    )
}

/// The cells that [`drift`] tells of.
pub(crate) fn drifting_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let mut drifting = significant(analysis, |series_tests| {
        series_tests.trend.map(|trend| trend.p)
    });
    drifting.retain(|cell| drift_per_run(cell).is_none_or(|drift| drift >= DRIFT_LEAST));
    drifting
}

/// How far a cell drifts over its trials, as a share of its median.
fn drift_per_run(cell: &CellAnalysis) -> Option<f64> {
    let slope = cell.series_tests.trend?.slope_per_trial / cell.response?.median;
    Some((slope * cell.n as f64).abs()).filter(|drift| drift.is_finite())
}

/// The cells that [`dependence`] tells of.
pub(crate) fn dependent_cells(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let drifting = drifting_cells(analysis);
    let mut dependent = significant(analysis, |series_tests| {
        series_tests.ljung_box.map(|test| test.p)
    });
    dependent.retain(|cell| !drifting.iter().any(|other| other.cell.id == cell.cell.id));
    dependent
}

/// Cells whose p value stays below the level after Holm's correction over all cells.
fn significant(analysis: &Analysis, p: impl Fn(&SeriesTests) -> Option<f64>) -> Vec<&CellAnalysis> {
    let tested: Vec<(&CellAnalysis, f64)> = analysis
        .cells
        .iter()
        .filter_map(|cell| Some((cell, p(&cell.series_tests)?)))
        .collect();
    let p: Vec<f64> = tested.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p).unwrap_or_default();
    let cells = tested.into_iter().zip(adjusted);
    cells
        .filter(|(_, adjusted)| *adjusted < ALPHA)
        .map(|((cell, _), _)| cell)
        .collect()
}
