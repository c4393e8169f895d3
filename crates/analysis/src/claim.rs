//! Claims: what runs show, as data. No sentence is made here; `iolab-report` writes them.
//!
//! A claim compares cells that differ in what is asked about and in nothing else. Its numbers are simultaneous over all
//! comparisons of one kind in one run (Bonferroni), so that a false claim of a kind is made in at most 5 % of runs. What in the
//! evidence of exactly these cells could turn a comparison round makes it [`Difference::CannotTell`]. METHODS.md has the rules
//! and how often they fail on runs whose truth is known.
//!
//! Files to begin with: `effect.rs` two cells, `comparison.rs` two levels of a factor in all settings, `best.rs` the best sizes of
//! a curve, `order.rs` which claims a page begins with.

mod best;
mod choice;
mod comparison;
pub(crate) mod effect;
mod order;
mod tail;

pub use best::{Best, Candidate, Standing, best_of_curves};
pub use choice::{Access, Choice, choices};
pub use comparison::{Comparison, Contrast, comparisons, random_across_runs};
pub use effect::{CellId, Difference, Effect, Estimate, MARGIN, Trials, ratio};
pub use order::{HEADLINES_MAX, Role, headlines, ordered};
pub use tail::{LongTail, long_tail};

use crate::analysis::Analysis;

/// A statement about cells of some runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// What changes from one level of a factor to another.
    Comparison(Comparison),
    /// Where curves over I/O sizes are best: all curves of one run, or the only curve of each of several.
    Best(Vec<Best>),
    /// Slow requests far from the median one.
    LongTail(LongTail),
}

impl Claim {
    /// The runs that it rests on, by their places in ascending order.
    pub fn runs(&self) -> Vec<usize> {
        let cells: Vec<CellId> = match self {
            Self::Comparison(comparison) => {
                let effects = comparison.effects.iter();
                effects
                    .flat_map(|effect| [effect.base, effect.other])
                    .collect()
            }
            Self::Best(curves) => {
                let all = curves.iter().flat_map(|best| &best.candidates);
                all.map(|candidate| candidate.cell).collect()
            }
            Self::LongTail(tail) => vec![tail.cell],
        };
        let mut runs: Vec<usize> = cells.iter().map(|cell| cell.run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    }
}

/// All that runs show, run by run, and last what several of them show together. The same runs give the same claims, always.
pub fn claims(runs: &[&Analysis]) -> Vec<Claim> {
    let mut all = Vec::new();
    let mut of_accesses = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let mut curves = best_of_curves(run, place);
        match curves.len() {
            0 => {}
            1 => of_accesses.append(&mut curves),
            _ => all.push(Claim::Best(curves)),
        }
        all.extend(comparisons(run, place).into_iter().map(Claim::Comparison));
        all.extend(long_tail(run, place).map(Claim::LongTail));
    }
    if !of_accesses.is_empty() {
        all.push(Claim::Best(of_accesses));
    }
    all.extend(random_across_runs(runs).into_iter().map(Claim::Comparison));
    all
}
