//! Findings about the order of the trials, which intervals take to be of no importance.

use iolab_stats::{Steadiness, holm};

use super::{Finding, Rule, Says, cells_of, within};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::MARGIN;
use iolab_analysis::series_tests::SeriesTests;
use iolab_workload::quantity::{counted, digits, format_percent};
use iolab_workload::settings::cell_label;

pub(crate) const STEADY_STATE: Rule =
    Rule::result("steady-state", "the last 5 trials of each cell that writes");
pub(crate) const NOT_STEADY: Rule = Rule::doubt("not-steady", STEADY_STATE.basis);
pub(crate) const NOT_WRITTEN_OVER: Rule = Rule::limit(
    "not-written-over",
    "the bytes that the run wrote before the last 5 trials of a cell, over its region",
);
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

/// Whether the cells that write were in a steady state by the rule of the SNIA, each trial being a round. A device that is written
/// to may start fast and end slow; reads hardly change it. Trials that are alike before the region was written over once are no steady
/// state.
pub fn steady(analysis: &Analysis) -> Vec<Finding> {
    // The standard is about the throughput of the device; a group's latency is another quantity.
    if analysis.response.is_time() || analysis.response_group.is_some() {
        return Vec::new();
    }
    let cells = analysis.cells.iter();
    let writing = cells.filter(|c| c.cell.program().is_none() && c.cell.trial().read_percent < 100);
    let drifting = drifting_cells(analysis);
    let drifts = |cell: &CellAnalysis| drifting.iter().any(|other| other.cell.id == cell.cell.id);
    let judged: Vec<(&CellAnalysis, Steadiness)> = writing
        .filter(|cell| !drifts(cell))
        .filter_map(|cell| Some((cell, cell.series_tests.steady?)))
        .collect();
    let all = judged.len();
    let of_writing = |n: usize| match (n == all, all == analysis.cells.len()) {
        (true, true) => cells_of(n, analysis),
        (true, false) => format!("All {} that write", counted(n, "cell")),
        (false, _) => format!("{n} of {} that write", counted(all, "cell")),
    };
    let (alike, not): (Vec<_>, Vec<_>) = judged.into_iter().partition(|(_, steady)| steady.reached);
    let (reached, early): (Vec<_>, Vec<_>) = alike
        .into_iter()
        .partition(|(cell, _)| cell.overwritten.is_none_or(|times| times >= 1.0));
    let mut findings = Vec::new();
    if !reached.is_empty() {
        findings.push(Finding {
            rule: STEADY_STATE,
            text: format!(
                "{} reached a steady state: 5 trials in a row within 20 %, their slope within 10 % (SNIA), after the region was written over.",
                of_writing(reached.len())
            ),
        });
    }
    let share = |cell: &CellAnalysis| cell.overwritten.unwrap_or(0.0);
    let least = early
        .iter()
        .map(|(cell, _)| share(cell))
        .fold(f64::INFINITY, f64::min);
    if !early.is_empty() {
        findings.push(Finding {
            rule: NOT_WRITTEN_OVER,
            text: format!(
                "{}: no steady state is shown. The last 5 trials are alike, but before them the run had written only {} of the region; --precondition writes the region first.",
                of_writing(early.len()),
                format_percent(least)
            ),
        });
    }
    let by_range = |a: &&(_, Steadiness), b: &&(_, Steadiness)| a.1.range.total_cmp(&b.1.range);
    if let Some((cell, steady)) = not.iter().max_by(by_range) {
        let place = match analysis.factors.is_empty() {
            true => String::new(),
            false => format!(" at {}", cell_label(&analysis.factors, &cell.cell.levels)),
        };
        findings.push(Finding {
            rule: NOT_STEADY,
            text: format!(
                "{}: no steady state. The last 5 trials{place} spread over {} (SNIA allows 20 %) with a slope of {} (10 %). More trials, --settle or --precondition may reach it.",
                of_writing(not.len()),
                format_percent(steady.range),
                format_percent(steady.slope)
            ),
        });
    }
    findings
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
            cell_label(&analysis.factors, &cell.cell.levels),
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
    let split: Vec<&CellAnalysis> = cells.filter(|c| in_two_groups(c)).collect();
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
            cell_label(&analysis.factors, &cell.cell.levels),
            format_percent(modes.low_share),
            analysis.response.format(modes.low_median),
            analysis.response.format(modes.high_median),
        ),
    )
}

/// Whether the trials form two groups that are further apart than what matters.
pub(crate) fn in_two_groups(cell: &CellAnalysis) -> bool {
    let modes = cell.series_tests.modes;
    modes.is_some_and(|modes| modes.low_median < (1.0 - MARGIN) * modes.high_median)
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
