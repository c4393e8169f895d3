//! The answer of a comparison, in one line that can be copied.

use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{CellComparison, CellVerdict, Comparison, ReplicationUnit};
use iolab_analysis::doubt::{DoubtKind, RatioBound};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial_description::level_in_words;
use iolab_workload::units::{counted, format_percent};

use crate::cell_counts::all_cells;
use crate::ratio::{self, RatioShown};

/// The compared quantity.
pub(crate) fn measured(comparison: &Comparison) -> String {
    let response = comparison.response;
    response.map_or_else(|| "values".to_owned(), |response| response.to_string())
}

/// Reason why there is no conclusion about a cell: `other traffic`, `p99 needs 368 requests in a trial; ...`.
pub(crate) fn undecided(why: DoubtKind, response: Option<Response>) -> String {
    let needed = response.map_or(0, |response| response.requests_min());
    match (why, response) {
        (DoubtKind::NoValue, Some(response)) if needed > 1 => format!(
            "{} needs {} in a trial; no trial of a side has enough (increase --time)",
            response.name(),
            counted(needed, "request")
        ),
        (DoubtKind::NoValue | DoubtKind::NoRatio, _) => why.words().to_owned(),
        _ => why.to_string(),
    }
}

/// The ratio of a cell; `None` without one.
fn ratio_of(cell: &CellComparison) -> Option<RatioShown> {
    cell.estimate.as_ref().map(ratio::of)
}

/// The ratio of a cell in words: `1.41× lower (1.30 to 1.52×)`.
fn times(cell: &CellComparison) -> Option<String> {
    Some(ratio_of(cell)?.in_words())
}

/// Distance of a cell's ratio from 1, on the logarithm.
pub(super) fn size(cell: &CellComparison) -> f64 {
    ratio_of(cell).map_or(0.0, RatioShown::size)
}

/// The bound that the ratio of a cell is, if one side did not hold its rate.
fn bound(cell: &CellComparison) -> Option<RatioBound> {
    cell.estimate?.bound
}

/// Sides that did not hold their rates among `n` cells: ` (the base did not hold its rate)`, ` (in 2 the base
/// did not hold its rate)`.
fn unheld_rates(bounds: impl Iterator<Item = RatioBound>, n: usize) -> String {
    let bounds: Vec<RatioBound> = bounds.collect();
    let side = match bounds.as_slice() {
        [] => return String::new(),
        all if all.iter().all(|one| *one == RatioBound::AtMost) => "the base",
        all if all.iter().all(|one| *one == RatioBound::AtLeast) => "the new side",
        _ => "one side",
    };
    let within = match bounds.len() {
        all if all == n => String::new(),
        some => format!("in {some} "),
    };
    format!(" ({within}{side} did not hold its rate)")
}

/// The answer for all cells: how many differ, with the largest difference; how many do not; how many have no
/// conclusion, with the reason. For several runs also all cells together, if they differ.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let cells = comparison.cells.as_slice();
    let margin = comparison.terms.margin;
    let all = cells.len();
    let mut parts: Vec<String> = Vec::new();
    for verdict in [
        CellVerdict::Slower,
        CellVerdict::Faster,
        CellVerdict::Lower,
        CellVerdict::Higher,
        CellVerdict::Equivalent,
        CellVerdict::NoChange,
        CellVerdict::Identical,
    ] {
        let own: Vec<&CellComparison> = cells.iter().filter(|c| c.verdict == verdict).collect();
        // A bound has no largest difference: sides that held their rates come first.
        let size = |cell: &CellComparison| (bound(cell).is_none(), size(cell));
        let greater = |a: &CellComparison, b: &CellComparison| {
            let ((exact, size), (of_other, other)) = (size(a), size(b));
            exact.cmp(&of_other).then(size.total_cmp(&other))
        };
        let Some(most) = own.iter().max_by(|a, b| greater(a, b)) else {
            continue;
        };
        let what = match verdict {
            CellVerdict::Equivalent => format!("equivalent within {}", format_percent(margin)),
            CellVerdict::Identical => "the same measurements".to_owned(),
            other => other.to_string(),
        };
        let times = match verdict {
            CellVerdict::NoChange | CellVerdict::Identical => None,
            _ => times(most),
        };
        let n = own.len();
        // Only the first part states the number of all cells.
        let count = match parts.is_empty() {
            _ if n == all => all_cells(all),
            true => format!("{n} of {all} cells"),
            false => n.to_string(),
        };
        let is_bound = bound(most).is_some();
        let most_of = if n == 1 || is_bound { "" } else { "the most " };
        let unheld = own.iter().filter_map(|cell| bound(cell));
        let unheld = unheld_rates(unheld, n);
        parts.push(match (all, verdict, times) {
            (_, CellVerdict::Identical, _) => what,
            (2.., CellVerdict::NoChange, _) if n == all => format!("{what} in any of {all} cells"),
            (2.., CellVerdict::NoChange, _) => format!("{what} in {count}"),
            (1, _, Some(times)) => format!("{what}, {times}{unheld}"),
            (1, ..) => what,
            (_, CellVerdict::Equivalent, _) | (.., None) => format!("{count} {what}"),
            (.., Some(times)) => {
                let levels = comparison.factors.iter().zip(&most.levels);
                let words = levels.map(|(factor, level)| match factor.as_str() {
                    // How many are in flight depends on settings that are not compared.
                    "depth" => format!("depth {level}"),
                    _ => level_in_words(&CellSpec::default(), factor, level),
                });
                let with = words.collect::<Vec<_>>().join(", ");
                format!("{count} {what}, {most_of}{times} with {with}{unheld}")
            }
        });
    }
    let open: Vec<&CellComparison> = cells.iter().filter(|c| c.verdict.is_open()).collect();
    let mut reasons: Vec<String> = Vec::new();
    for why in open.iter().filter_map(|cell| cell.verdict.why_open()) {
        let why = undecided(why, comparison.response);
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let reasons = reasons.join(", ");
    match (open.as_slice(), all) {
        ([], _) => {}
        ([only], 1) => {
            let times = times(only).map_or_else(String::new, |times| format!(", {times}"));
            parts.push(format!("cannot tell{times}; {reasons}"));
        }
        (open, _) if open.len() == all => {
            parts.push(format!("cannot tell in any of {all} cells: {reasons}"));
        }
        (open, _) => parts.push(format!("cannot tell in {}: {reasons}", open.len())),
    }
    let together = comparison.overall.as_ref();
    let told = [CellVerdict::Slower, CellVerdict::Faster];
    let is_told = |all: &&CellComparison| {
        comparison.unit == ReplicationUnit::Runs && told.contains(&all.verdict)
    };
    if let Some(all) = together.filter(is_told) {
        let times = times(all).unwrap_or_default();
        parts.push(format!("all cells together {}, {times}", all.verdict));
    }
    parts.join("; ")
}
