//! Whether the intervals are as narrow as requested.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response, TRIALS_MIN};
use iolab_analysis::more_trials::MoreTrials;
use iolab_record::TargetKind;
use iolab_workload::quantity::format_percent;

use super::{Finding, Rule, Says, cells_of, has, levels_of, more_trials};

pub(crate) const BELOW_PRECISION: Rule = Rule::doubt(
    "below-precision",
    "half of the median's interval over the median, against the goal",
);

/// Rules on a run, in the order of their findings.
pub(crate) const SAYS: &[Says] = &[below_precision];

/// Cells whose interval is wider than the requested precision, or missing.
pub fn below_precision(analysis: &Analysis) -> Vec<Finding> {
    // An inquiry has as many blocks as its question needs, and its comparisons have their own intervals. Steady
    // rounds and a soak have no goal of precision, and get no more trials.
    if analysis.inquiry.is_some() || !analysis.seeks_precision {
        return Vec::new();
    }
    let measured = || {
        let all = analysis.cells.iter();
        all.filter(|c| c.n > 0 && analysis.has_response(c))
    };
    let wide: Vec<&CellAnalysis> = measured()
        .filter(|c| c.precision.is_some_and(|p| p > analysis.precision_goal))
        .collect();
    // A trial may have a value only when it has enough requests.
    let (lacking, without): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) = measured()
        .filter(|c| c.precision.is_none())
        .partition(|c| c.lacks_requests());
    let mut findings = Vec::new();
    let worst = wide.iter().max_by(|a, b| {
        a.precision
            .unwrap_or(0.0)
            .total_cmp(&b.precision.unwrap_or(0.0))
    });
    if let Some(worst) = worst {
        let goal = format_percent(analysis.precision_goal);
        let reached = format!(
            "{} after {} trials",
            match wide_interval(worst, analysis.response) {
                None => format!("+/- {}", format_percent(worst.precision.unwrap_or(0.0))),
                Some(interval) => format!("95 % interval {interval}"),
            },
            worst.n
        );
        let missed = match levels_of(analysis, worst) {
            None => format!("The precision goal of {goal} was missed: {reached}."),
            Some(worst) => format!(
                "{} the {goal} precision goal (worst: {worst}, {reached}).",
                match (wide.len(), wide.len() == analysis.cells.len()) {
                    (2, true) => "Neither cell reached".to_owned(),
                    (3.., true) => "No cell reached".to_owned(),
                    _ => format!("{} missed", cells_of(wide.len(), analysis)),
                },
            ),
        };
        // Further trials are at one level or the other.
        let changed = analysis.timeline.over_run.iter();
        let has_changed = changed
            .map(|shift| shift.cell)
            .any(|id| wide.iter().any(|cell| cell.cell.id == id));
        let remedy = match has_changed {
            true => "The level changed during the run, so that more trials do not help.",
            false => more_trials::sentence(MoreTrials::of(analysis, &wide)),
        };
        findings.push(Finding {
            rule: BELOW_PRECISION,
            text: format!("{missed} {remedy}").trim_end().to_owned(),
        });
    }
    if !without.is_empty() {
        findings.push(Finding {
            rule: BELOW_PRECISION,
            text: format!(
                "{} {} too few trials for a 95 % interval of the median ({TRIALS_MIN} are needed). {}",
                cells_of(without.len(), analysis),
                has(without.len()),
                more_trials::sentence(MoreTrials::of(analysis, &without)),
            )
            .trim_end()
            .to_owned(),
        });
    }
    if !lacking.is_empty() {
        let response = analysis.response;
        findings.push(Finding {
            rule: BELOW_PRECISION,
            text: format!(
                "{} {} no 95 % interval of the median: fewer than {TRIALS_MIN} trials had enough requests for a {response} ({} per trial). {}",
                cells_of(lacking.len(), analysis),
                has(lacking.len()),
                response.requests_min(),
                longer_trials(analysis),
            ),
        });
    }
    findings
}

/// The interval of the median of a cell, `0.0250 MB/s to 14.9 MB/s`, if half of it exceeds the median: a
/// distance of 16853 % to both sides has no meaning.
pub(super) fn wide_interval(cell: &CellAnalysis, response: Response) -> Option<String> {
    cell.precision.filter(|precision| *precision > 1.0)?;
    let interval = cell.response?.median_interval?;
    let [low, high] = [interval.low, interval.high].map(|end| response.format(end));
    Some(format!("{low} to {high}"))
}

/// Way to get more requests per trial.
pub(super) fn longer_trials(analysis: &Analysis) -> &'static str {
    match analysis.target_kind {
        TargetKind::Imported => "Longer jobs in the imported file have more.",
        _ => "Increase --time.",
    }
}
