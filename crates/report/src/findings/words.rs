//! Claims in words: `comparison.rs` effects, `best.rs` sizes and settings to choose.

mod best;
mod comparison;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, Estimate, LongTail, MARGIN, ordered};
use iolab_analysis::doubt::SideDoubt;
use iolab_workload::quantity::{format_ns, significant};

use crate::doubt::of_side;
use crate::findings::{Finding, FindingKind, Rule};

pub use best::choice;
pub(crate) use comparison::accesses;
use comparison::nothings;

const COMPARISON: &str = "ratios within the blocks that both cells share (of medians where they share none), with intervals that hold for all comparisons of this kind in the run together in 95 %";
const BEST: &str = "ratios within the blocks that both cells share, with intervals that hold for all pairs together in 95 %";
const TAIL: &str = "the 99th percentile over the median of each trial, with intervals that hold for all cells together in 95 %";

/// A claim as a sentence, or two. `runs` are those that the claims were made of.
pub fn finding(claim: &Claim, runs: &[&Analysis]) -> Finding {
    let (text, basis) = match claim {
        Claim::Comparison(comparison) => (comparison::of_comparison(comparison, runs), COMPARISON),
        Claim::Best(curves) => (best::of_curves(curves, runs), BEST),
        Claim::LongTail(tail) => (of_tail(tail, runs), TAIL),
    };
    Finding {
        rule: Rule {
            name: claim.kind().0,
            kind: FindingKind::Result,
            basis,
        },
        text,
    }
}

/// A sentence, or two, with the claims that it writes out.
#[derive(Debug, Clone)]
pub struct WrittenClaims<'c> {
    /// One; of those that show nothing there may be several.
    pub claims: Vec<&'c Claim>,
    /// The sentence.
    pub finding: Finding,
}

/// Claims in words, in the order in which they are shown: those that show something, the weightiest first, and those that show
/// nothing. `runs` are those that the claims were made of.
pub fn written<'c>(
    claims: &'c [Claim],
    runs: &[&Analysis],
) -> (Vec<WrittenClaims<'c>>, Vec<WrittenClaims<'c>>) {
    let (shown, not) = ordered(claims);
    let shown = shown.into_iter().map(|one| WrittenClaims {
        claims: vec![one],
        finding: finding(one, runs),
    });
    (shown.collect(), nothings(&not, runs))
}

fn cell<'a>(runs: &[&'a Analysis], id: CellId) -> Option<&'a CellAnalysis> {
    let run = runs.get(id.run)?;
    run.cells.iter().find(|cell| cell.cell.id == id.cell)
}

/// `throughput`, `reader's throughput`: the quantity of a run.
fn quantity(runs: &[&Analysis], id: CellId) -> String {
    let Some(run) = runs.get(id.run) else {
        return String::new();
    };
    match &run.response_group {
        Some(group) => format!("{group}'s {}", run.response),
        None => run.response.to_string(),
    }
}

/// ` at bs=4KiB, threads=2`; nothing where nothing varies.
fn at(held: &[(String, String)]) -> String {
    if held.is_empty() {
        return String::new();
    }
    let levels: Vec<String> = held
        .iter()
        .map(|(f, level)| format!("{f}={level}"))
        .collect();
    format!(" at {}", levels.join(", "))
}

/// `4.23 times (4.22 to 4.24)`.
fn times(estimate: &Estimate) -> String {
    let interval = estimate.interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", significant(low), significant(high))
    });
    format!("{} times{interval}", significant(estimate.ratio))
}

/// `5 %`.
pub(crate) fn margin() -> String {
    format!("{} %", 100.0 * MARGIN)
}

/// A reason for doubt, in words.
fn doubt(doubt: &SideDoubt) -> String {
    of_side(&doubt.reason)
}

fn of_tail(tail: &LongTail, runs: &[&Analysis]) -> String {
    let group = runs
        .get(tail.cell.run)
        .and_then(|run| run.response_group.as_ref());
    let latency = group.map_or_else(
        || "latency".to_owned(),
        |group| format!("{group}'s latency"),
    );
    let (p50, p99) = tail.quantiles;
    let others = match tail.cells {
        1 => String::new(),
        n => format!(" {n} cells have a p99 above 3 times the median."),
    };
    format!(
        "The 99th percentile of {latency} is {} times ({} to {}) the median{}: {} against {}.{others}",
        significant(tail.ratio),
        significant(tail.interval.0),
        significant(tail.interval.1),
        at(&tail.at),
        format_ns(p99),
        format_ns(p50),
    )
}
