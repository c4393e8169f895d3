//! How far two sides agree, over all cells of a comparison.

use super::{Finding, Rule};
use crate::compare::conclusion;
use crate::compare::remarks::overall;
use iolab_analysis::compare::Comparison;

pub(crate) const AGREEMENT: Rule = Rule::result(
    "agreement",
    "ratios within blocks, with simultaneous 95 % intervals",
);

/// Peers of a run compared with iolab.
pub fn agreement(comparisons: &[Comparison]) -> Vec<Finding> {
    let finding = |comparison: &Comparison| {
        let together = overall(comparison).map_or_else(String::new, |text| format!(" {text}"));
        AGREEMENT.one(format!("{}.{together}", conclusion(comparison)))
    };
    comparisons.iter().flat_map(finding).collect()
}

/// Whether any cell, or all of them together, are shown to differ or to be equivalent. Otherwise there is
/// nothing to report.
pub(super) fn is_shown(comparison: &Comparison) -> bool {
    let mut all = comparison.cells.iter().chain(&comparison.overall);
    all.any(|cell| !cell.verdict.is_open())
}
