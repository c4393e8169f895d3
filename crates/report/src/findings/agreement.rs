//! How far two sides agree, over all cells of a comparison.

use std::borrow::Cow;

use super::{Finding, Rule, capitalised, format_estimate};
use iolab_analysis::claim::Difference;
use iolab_analysis::compare::{
    CellComparison, CellVerdict, Comparison, Criteria, Overall, SideName,
};
use iolab_figure::result_names;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::format_percent;

use crate::compare::conclusion::{measured, undecided};
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
            capitalised(&measured(comparison)),
            comparison.new,
            comparison.base,
            verdicts(comparison),
        );
        AGREEMENT.one(text)
    };
    comparisons.iter().flat_map(sentences).collect()
}

/// Whether any cell, or all of them together, are shown to differ or to be equivalent: what shows nothing is no news.
pub(super) fn is_shown(comparison: &Comparison) -> bool {
    let together = comparison.overall.as_ref().map(|all| all.difference);
    let together = together.is_some_and(|difference| match difference {
        Difference::Higher | Difference::Lower | Difference::Equivalent => true,
        Difference::NotFound | Difference::CannotTell => false,
    });
    together || comparison.cells.iter().any(|cell| !cell.verdict.is_open())
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

/// How many of some cells have which verdict: `1 equivalent within 10 %, 2 cannot tell (wide interval)`.
pub(super) fn tally_of(cells: &[&CellComparison], terms: &Criteria) -> String {
    let margin = format_percent(terms.margin);
    let mut verdicts: Vec<CellVerdict> = cells.iter().map(|cell| cell.verdict).collect();
    verdicts.sort_unstable();
    let words = verdicts.into_iter().map(|verdict| match verdict {
        CellVerdict::Equivalent => format!("equivalent within {margin}").into(),
        other => result_names::verdict(other),
    });
    let mut counts: Vec<(Cow<'static, str>, usize)> = Vec::new();
    for word in words {
        match counts.last_mut() {
            Some((last, n)) if *last == word => *n += 1,
            _ => counts.push((word, 1)),
        }
    }
    let counted = counts.into_iter().map(|(word, n)| format!("{n} {word}"));
    counted.collect::<Vec<String>>().join(", ")
}

/// What a cell shows by itself: `equivalent within 10 %`, `cannot tell: intervals too wide`.
pub(super) fn shown_of_cell(cell: &CellComparison, comparison: &Comparison) -> String {
    let margin = format_percent(comparison.terms.margin);
    match (cell.verdict, cell.verdict.why_open()) {
        (CellVerdict::Equivalent, _) => format!("equivalent within {margin}"),
        (_, Some(why)) => format!("cannot tell: {}", undecided(why, comparison.response)),
        (other, None) => result_names::verdict(other).into_owned(),
    }
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
