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
mod effect;
mod order;
mod tail;

pub use best::{Best, Candidate, Standing, best_of_curves};
pub use choice::{Access, Choice, choices};
pub use comparison::{Comparison, Contrast, comparisons, random_across_runs};
pub use effect::{CellId, Difference, Doubt, Effect, Estimate, MARGIN};
pub use order::{HEADLINES_MAX, Role, headlines, ordered};
pub use tail::{LongTail, long_tail};

use crate::analysis::Analysis;

/// A statement about cells of some runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// What changes from one level of a factor to another.
    Comparison(Comparison),
    /// Where the curves of a run over I/O sizes are best.
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
    for (place, run) in runs.iter().enumerate() {
        all.extend(of_run(run, place));
    }
    all.extend(random_across_runs(runs).into_iter().map(Claim::Comparison));
    all
}

fn of_run(run: &Analysis, place: usize) -> impl Iterator<Item = Claim> {
    let curves = best_of_curves(run, place);
    let best = (!curves.is_empty())
        .then_some(Claim::Best(curves))
        .into_iter();
    let compared = comparisons(run, place).into_iter().map(Claim::Comparison);
    best.chain(compared)
        .chain(long_tail(run, place).map(Claim::LongTail))
}
