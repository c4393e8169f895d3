//! Findings about throughput that changes its level and stays there: over the run, and within each trial.

use super::{Finding, Rule, Says, within};
use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::timeline::{RunShift, TrialShift};
use iolab_workload::quantity::{format_bytes, format_ns, format_percent};
use iolab_workload::settings::cell_label;

pub(crate) const LEVEL_WITHIN_TRIALS: Rule = Rule::doubt(
    "level-within-trials",
    "changepoints (PELT) in the median over the trials of each interval, confirmed likewise",
);
pub(crate) const LEVEL_IN_WARM_UP: Rule =
    Rule::doubt("level-in-warm-up", LEVEL_WITHIN_TRIALS.basis);
pub(crate) const LEVEL_OVER_RUN: Rule = Rule::doubt(
    "level-over-run",
    "changepoints (PELT) in the logarithms of the trials, each confirmed by Welch's test for dependent values",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[level_over_run, level_within_trials, level_in_warm_up];

/// Most changes over a run that are told: the greatest.
const TOLD_MAX: usize = 3;

/// After how much was written the throughput of the cells that write changed for good. What that may come from is a
/// suspect, no cause.
pub fn level_over_run(analysis: &Analysis) -> Vec<Finding> {
    let mut shifts: Vec<&RunShift> = analysis.timeline.over_run.iter().collect();
    shifts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    shifts.truncate(TOLD_MAX);
    shifts.sort_by_key(|shift| shift.after_ns);
    let told = shifts.into_iter().map(|shift| Finding {
        rule: LEVEL_OVER_RUN,
        text: over_run(shift, analysis),
    });
    told.collect()
}

fn over_run(shift: &RunShift, analysis: &Analysis) -> String {
    let suspect = if shift.factor < 1.0 {
        "Typical causes: an exhausted write cache, garbage collection or throttling; --precondition moves the change before the first trial"
    } else {
        "Typical causes: a burst credit, a cache, or the end of background work in the device; --settle or --precondition may avoid it"
    };
    format!(
        "After {} written ({} of trials), throughput {}{}, for {} trials after {}. {suspect}. Medians over the run mix both levels.",
        format_bytes(shift.written_bytes as f64),
        format_ns(shift.after_ns as f64),
        moved(shift.factor),
        levels(shift.cell, shift.before_mb_s, shift.after_mb_s, analysis),
        shift.trials_after,
        shift.trials_before,
    )
}

/// Cells whose throughput changes its level at the same time in each of their trials.
pub fn level_within_trials(analysis: &Analysis) -> Vec<Finding> {
    let shifts = &analysis.timeline.within;
    let size = |shift: &TrialShift| shift.factor().ln().abs();
    let Some(greatest) = shifts.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else {
        return Vec::new();
    };
    let suspect = if greatest.factor() < 1.0 {
        "Typical causes: a cache that fills up, an exhausted burst credit or throttling"
    } else {
        "Typical cause: a cache that fills with data that is read again"
    };
    LEVEL_WITHIN_TRIALS.one(format!(
            "In {} throughput changes its level within the trials: after {} ({}) it {}{}, in the median of {} trials. {suspect}. Shorter or longer trials would give other results.",
            within(shifts.len(), analysis),
            format_ns(greatest.after_ns as f64),
            format_bytes(greatest.moved_bytes),
            moved(greatest.factor()),
            levels(
                greatest.cell,
                greatest.before_mb_s,
                greatest.after_mb_s,
                analysis
            ),
            greatest.trials,
        ),
    )
}

/// Cells whose throughput changed for good in the warm-up, which no number holds.
fn level_in_warm_up(analysis: &Analysis) -> Vec<Finding> {
    let shifts = analysis.timeline.in_warm_ups.iter();
    let size = |shift: &TrialShift| shift.factor().ln().abs();
    let Some(greatest) = shifts.max_by(|a, b| size(a).total_cmp(&size(b))) else {
        return Vec::new();
    };
    LEVEL_IN_WARM_UP.one(format!(
        "During the warm-up, which the numbers exclude, throughput changed{} after {} ({}); the measured trials show the later level.",
        levels(greatest.cell, greatest.before_mb_s, greatest.after_mb_s, analysis),
        format_bytes(greatest.moved_bytes),
        format_ns(greatest.after_ns as f64),
    ))
}

/// `fell to 34 % of what it was`.
fn moved(factor: f64) -> String {
    if factor < 1.0 {
        format!("fell to {} of what it was", format_percent(factor))
    } else if factor.is_finite() {
        format!("rose to {} of what it was", format_percent(factor))
    } else {
        "rose from nothing".to_owned()
    }
}

/// ` (bs=1MiB: from 1200 MB/s to 410 MB/s)`.
fn levels(cell: i64, before: f64, after: f64, analysis: &Analysis) -> String {
    let name = match analysis.cells.iter().find(|c| c.cell.id == cell) {
        Some(found) if !analysis.factors.is_empty() => {
            format!("{}: ", cell_label(&analysis.factors, &found.cell.levels))
        }
        _ => String::new(),
    };
    let format = |value| Response::Throughput.format(value);
    format!(" ({name}from {} to {})", format(before), format(after))
}
