//! How far two sides agree, over all cells of a comparison.

use super::{Finding, Rule, capitalised, format_estimate};
use iolab_analysis::claim::Difference;
use iolab_analysis::compare::{
    CellComparison, CellVerdict, Comparison, Criteria, Overall, SideName,
};
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::format_percent;

use crate::doubt::on_side;

pub(crate) const AGREEMENT: Rule = Rule::result(
    "agreement",
    "ratios within blocks, with intervals that hold for all cells together in 95 %",
);

/// iolab against the peers that were measured beside it.
pub fn agreement(comparisons: &[Comparison]) -> Vec<Finding> {
    let sentences = |comparison: &Comparison| {
        let together = overall(comparison).map_or_else(String::new, |text| format!(" {text}"));
        let text = format!(
            "{} of {} over that of {}, in the same blocks of {}{together}",
            capitalised(&comparison.measured()),
            comparison.new,
            comparison.base,
            verdicts(comparison),
        );
        AGREEMENT.one(text)
    };
    comparisons.iter().flat_map(sentences).collect()
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

/// How many of some cells have which verdict: `1 equivalent within 10 %, 2 cannot tell`.
pub(super) fn tally_of(cells: &[&CellComparison], terms: &Criteria) -> String {
    let margin = format_percent(terms.margin);
    let counted: Vec<String> = [
        (CellVerdict::Slower, "slower".to_owned()),
        (CellVerdict::Faster, "faster".to_owned()),
        (CellVerdict::Higher, "higher".to_owned()),
        (CellVerdict::Lower, "lower".to_owned()),
        (
            CellVerdict::Equivalent,
            format!("equivalent within {margin}"),
        ),
        (CellVerdict::Identical, CellVerdict::Identical.to_string()),
        (CellVerdict::CannotTell, CellVerdict::CannotTell.to_string()),
        (CellVerdict::Drifting, CellVerdict::Drifting.to_string()),
        (CellVerdict::OneRunEach, CellVerdict::OneRunEach.to_string()),
        (CellVerdict::Disturbed, CellVerdict::Disturbed.to_string()),
        (
            CellVerdict::RateNotHeld,
            CellVerdict::RateNotHeld.to_string(),
        ),
        (CellVerdict::TwoGroups, CellVerdict::TwoGroups.to_string()),
        (
            CellVerdict::OtherSource,
            CellVerdict::OtherSource.to_string(),
        ),
    ]
    .into_iter()
    .map(|(verdict, words)| {
        let such = cells.iter().filter(|cell| cell.verdict == verdict);
        (such.count(), words)
    })
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{n} {words}"))
    .collect();
    counted.join(", ")
}

/// The ratio over all cells, where both sides went through the same blocks.
pub fn overall(comparison: &Comparison) -> Option<String> {
    let overall = comparison.overall.as_ref()?;
    Some(format!(
        "All cells together, in {} blocks: ratio {}; {}.",
        overall.estimate.blocks.unwrap_or_default(),
        format_estimate(&overall.estimate),
        shown(overall, comparison),
    ))
}

/// What all cells together show: `equivalent within 10 %`.
pub(super) fn shown(overall: &Overall, comparison: &Comparison) -> String {
    let margin = format_percent(comparison.terms.margin);
    let side = |name: &SideName| format!("{}'s side", escape_control(&name.name));
    match (overall.difference, overall.doubts.first()) {
        (Difference::Equivalent, _) => format!("equivalent within {margin}"),
        (Difference::Higher, _) => "higher".to_owned(),
        (Difference::Lower, _) => "lower".to_owned(),
        (Difference::CannotTell, Some(doubt)) => format!(
            "cannot tell: {}",
            on_side(doubt, &side(&comparison.base), &side(&comparison.new))
        ),
        (Difference::NotFound | Difference::CannotTell, _) => {
            format!("not shown to be equivalent within {margin}")
        }
    }
}
