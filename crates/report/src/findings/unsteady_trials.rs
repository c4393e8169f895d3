//! Trials that were to end once they were steady, and did not.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_record::TargetKind;
use iolab_workload::settings::cell_label;

use super::{Finding, Rule, Says, cells_of, has};

pub(crate) const TRIALS_NOT_STEADY: Rule = Rule::doubt(
    "trials-not-steady",
    "what ended each trial that has a rule for steady trials (steady, of fio: steadystate)",
);

/// What is said of a run.
pub(crate) const SAYS: &[Says] = &[trials_not_steady];

/// Cells with trials that ended by their time or size.
fn trials_not_steady(analysis: &Analysis) -> Vec<Finding> {
    let cells: Vec<&CellAnalysis> = analysis
        .cells
        .iter()
        .filter(|cell| cell.not_steady > 0)
        .collect();
    let share = |cell: &CellAnalysis| cell.not_steady as f64 / cell.n.max(1) as f64;
    let worst = cells.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let rule = |cell: &CellAnalysis| {
        let mut trials = cell.cell.spec.trials().into_iter();
        trials.find_map(|trial| trial.steady)
    };
    let Some((worst, rule)) = worst.and_then(|cell| Some((cell, rule(cell)?))) else {
        return Vec::new();
    };
    let which = match (cells.len(), analysis.factors.is_empty()) {
        (_, true) => String::new(),
        (1, false) => format!(" at {}", cell_label(&analysis.factors, &worst.cell.levels)),
        (_, false) => format!(
            " (worst: {})",
            cell_label(&analysis.factors, &worst.cell.levels)
        ),
    };
    let trials = worst.cell.spec.trials();
    let more = match analysis.target_kind {
        TargetKind::Imported => "Longer jobs may become steady",
        _ if trials.iter().any(|trial| trial.limit.time.is_some()) => {
            "A longer --time may let them become steady"
        }
        _ => "A larger limit of bytes or requests may let them become steady",
    };
    TRIALS_NOT_STEADY.one(format!(
        "{} {} trials that never became steady by their rule (steady={rule}): {} of {}{which} ended by their time or size. {more}.",
        cells_of(cells.len(), analysis),
        has(cells.len()),
        worst.not_steady,
        worst.n
    ))
}
