//! How far two sides agree, over all cells of a comparison.

use super::{Finding, Rule, capitalised};
use crate::ratio;
use iolab_analysis::compare::{CellComparison, CellVerdict, Comparison, Criteria, ReplicationUnit};
use iolab_workload::quantity::format_percent;

use crate::compare::conclusion::{measured, undecided};
use crate::doubt::on_side;

pub(crate) const AGREEMENT: Rule = Rule::result(
    "agreement",
    "ratios within blocks, with simultaneous 95 % intervals",
);

/// Peers of a run compared with iolab.
pub fn agreement(comparisons: &[Comparison]) -> Vec<Finding> {
    let sentences = |comparison: &Comparison| {
        let together = overall(comparison).map_or_else(String::new, |text| format!(" {text}"));
        let text = format!(
            "{} of {} relative to {}, in the same blocks of {}{together}",
            capitalised(&measured(comparison)),
            comparison.new,
            comparison.base,
            verdicts(comparison),
        );
        AGREEMENT.one(text)
    };
    comparisons.iter().flat_map(sentences).collect()
}

/// Whether any cell, or all of them together, are shown to differ or to be equivalent. Otherwise there is
/// nothing to report.
pub(super) fn is_shown(comparison: &Comparison) -> bool {
    let mut all = comparison.cells.iter().chain(&comparison.overall);
    all.any(|cell| !cell.verdict.is_open())
}

/// The cells, and how many of them have which verdict.
fn verdicts(comparison: &Comparison) -> String {
    let cells: Vec<&CellComparison> = comparison.cells.iter().collect();
    let tally = tally_of(&cells, &comparison.terms);
    let cells = match cells.len() {
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    };
    format!("{cells}: {tally}.")
}

/// Number of cells for each verdict: `1 equivalent within 10 %, 2 cannot tell (wide interval)`.
pub(super) fn tally_of(cells: &[&CellComparison], terms: &Criteria) -> String {
    let margin = format_percent(terms.margin);
    let mut verdicts: Vec<CellVerdict> = cells.iter().map(|cell| cell.verdict).collect();
    verdicts.sort_unstable();
    let alike = verdicts.chunk_by(|a, b| a == b);
    let counted = alike.map(|all| match all[0] {
        CellVerdict::Equivalent => format!("{} equivalent within {margin}", all.len()),
        other => format!("{} {other}", all.len()),
    });
    counted.collect::<Vec<String>>().join(", ")
}

/// The verdict of a cell, or of all cells together, in words: `equivalent within 10 %`, `cannot tell: served by
/// page-cache on fio's side`.
pub(super) fn shown_of_cell(cell: &CellComparison, comparison: &Comparison) -> String {
    let margin = format_percent(comparison.terms.margin);
    match (cell.verdict, cell.verdict.why_open(), cell.doubts.first()) {
        (CellVerdict::Equivalent, ..) => format!("equivalent within {margin}"),
        (_, Some(_), Some(doubt)) => {
            let [base, new] =
                [&comparison.base, &comparison.new].map(|side| format!("{side}'s side"));
            format!("cannot tell: {}", on_side(&[doubt], &base, &new))
        }
        (_, Some(why), None) => format!("cannot tell: {}", undecided(why, comparison.response)),
        (other, None, _) => other.to_string(),
    }
}

/// The ratio over all cells.
pub fn overall(comparison: &Comparison) -> Option<String> {
    let overall = comparison.overall.as_ref()?;
    let estimate = overall.estimate.as_ref()?;
    let of = match (comparison.unit, estimate.blocks) {
        (ReplicationUnit::Runs, _) => "All undisturbed cells together".to_owned(),
        (_, blocks) => format!(
            "All cells together, in {} blocks",
            blocks.unwrap_or_default()
        ),
    };
    Some(format!(
        "{of}: {}; {}.",
        ratio::of(estimate).in_words(),
        shown_of_cell(overall, comparison),
    ))
}
