//! Claims: what runs show, as data. No sentence is made here; `iolab-report` writes them.
//!
//! A claim compares cells that differ in what is asked about and in nothing else. Its numbers are simultaneous over all
//! comparisons of one kind in one run (Bonferroni), so that a false claim of a kind is made in at most 5 % of runs. What in the
//! evidence of exactly these cells could turn a comparison round makes it [`Difference::CannotTell`]. METHODS.md has the rules
//! and how often they fail on runs whose truth is known.
//!
//! Files to begin with: `effect.rs` two cells, `comparison.rs` two levels of a factor in all settings, `best.rs` the best sizes of
//! a curve, `series.rs` the trials of a cell in their order, `change.rs` levels over time, `concurrency.rs` requests at once, `answers.rs`
//! what only some experiments ask, `agree.rs` claims that contradict each other, `order.rs` which claims a page begins with.

mod agree;
mod answers;
mod best;
mod change;
mod choice;
mod comparison;
mod concurrency;
pub(crate) mod effect;
mod order;
mod series;
mod tail;

pub use answers::{
    Aspect, Bent, FixedCost, FixedCosts, Load, Preparation, Programs, Rates, SharedLimit, Together,
    Verified,
};
pub use best::{Best, Candidate, Standing};
use best::{best_of_curves, ways};
pub use change::{Change, Place};
pub use choice::{Access, Choice, choices};
use comparison::random_across_runs;
pub use comparison::{Comparison, Contrast, comparisons};
pub use concurrency::{Cause, Queued, TooFew};
pub use effect::{CellId, Difference, Effect, Estimate, MARGIN, Trials, ratio};
pub(crate) use effect::{confidence, within_run};
pub use order::{HEADLINES_MAX, Role, headlines, ordered};
pub use series::{Course, Shape, State, Steady, dependent_cells, drifting_cells, groups};
pub use tail::LongTail;
use tail::long_tail;

use crate::analysis::Analysis;
use crate::bends::Bends;

/// A statement about cells of some runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// Whether data that was read back is what was written.
    Verified(Verified),
    /// How two programs compare.
    Programs(Box<Programs>),
    /// What a given load does to the response time.
    Load(Load),
    /// Fewer requests at once than were asked for, and why.
    TooFew(TooFew),
    /// What page faults of untouched buffers cost.
    Preparation(Preparation),
    /// What changes from one level of a factor to another.
    Comparison(Comparison),
    /// Where curves over I/O sizes are best: all curves of one run, or the only curve of each of several.
    Best(Vec<Best>),
    /// Which of the ways that an experiment names is fastest.
    Ways(Best),
    /// Throughput that changes its level for good.
    Change(Change),
    /// Slow requests far from the median one.
    LongTail(LongTail),
    /// Whether cells that write reached a steady state.
    Steady(Steady),
    /// What more requests in flight gained.
    Queued(Queued),
    /// A fixed cost of a request and a rate for its bytes.
    FixedCosts(FixedCosts),
    /// Where curves over I/O sizes bend.
    Bent(Bent),
    /// What groups reach at once, against each alone.
    Together(Together),
    /// Trials that drift, depend on each other or form two groups.
    Course(Course),
}

impl Claim {
    /// The cells that it rests on; empty where it is about a run as a whole.
    fn cells(&self) -> Vec<CellId> {
        match self {
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
            Self::Ways(best) => best.candidates.iter().map(|one| one.cell).collect(),
            Self::TooFew(few) => few.cells.clone(),
            Self::Steady(steady) => steady.cells.clone(),
            Self::Course(course) => course.cells.clone(),
            Self::LongTail(tail) => vec![tail.cell],
            Self::Change(change) => vec![change.cell],
            Self::Queued(queued) => vec![queued.cell],
            Self::Together(together) => vec![together.cell],
            Self::Verified(_)
            | Self::Programs(_)
            | Self::Load(_)
            | Self::Preparation(_)
            | Self::FixedCosts(_)
            | Self::Bent(_) => Vec::new(),
        }
    }

    /// The runs that it rests on, by their places in ascending order.
    pub fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = match self {
            Self::Verified(Verified { run, .. })
            | Self::Load(Load { run, .. })
            | Self::Preparation(Preparation { run, .. })
            | Self::FixedCosts(FixedCosts { run, .. })
            | Self::Bent(Bent { run, .. }) => vec![*run],
            Self::Programs(programs) => vec![programs.run],
            _ => self.cells().iter().map(|cell| cell.run).collect(),
        };
        runs.sort_unstable();
        runs.dedup();
        runs
    }
}

/// Where the curves of a run bend, from the bends that were found; apart from the others because fitting them takes long.
pub fn bent(analysis: &Analysis, found: &Bends, run: usize) -> Option<Claim> {
    answers::bent(analysis, found, run).map(Claim::Bent)
}

/// What runs show.
#[derive(Debug, Clone, PartialEq)]
pub struct OfRuns {
    /// Each by itself, in the order of the runs.
    pub each: Vec<Vec<Claim>>,
    /// Several of them together.
    pub across: Vec<Claim>,
}

/// All that runs show but for bends. The same runs give the same claims, always; where two of them contradict each other, both say
/// that it cannot be told.
pub fn of_runs(runs: &[&Analysis]) -> OfRuns {
    let each = runs
        .iter()
        .enumerate()
        .map(|(place, run)| of_run(run, place));
    let mut each: Vec<Vec<Claim>> = each.collect();
    let lengths: Vec<usize> = each.iter().map(Vec::len).collect();
    let mut all: Vec<Claim> = each.drain(..).flatten().collect();
    all.extend(random_across_runs(runs).into_iter().map(Claim::Comparison));
    agree::reconcile(&mut all, runs);
    let mut all = all.into_iter();
    OfRuns {
        each: lengths
            .into_iter()
            .map(|length| all.by_ref().take(length).collect())
            .collect(),
        across: all.collect(),
    }
}

/// The same as one list, with the best sizes of runs that have one curve each together.
pub fn claims(runs: &[&Analysis]) -> Vec<Claim> {
    let OfRuns { each, across } = of_runs(runs);
    let mut curves = Vec::new();
    let mut all = Vec::new();
    for claim in each.into_iter().flatten() {
        match claim {
            Claim::Best(mut own) if own.len() == 1 => curves.append(&mut own),
            other => all.push(other),
        }
    }
    if !curves.is_empty() {
        all.push(Claim::Best(curves));
    }
    all.extend(across);
    all
}

fn of_run(run: &Analysis, place: usize) -> Vec<Claim> {
    let mut all = Vec::new();
    all.extend(answers::verified(run, place).map(Claim::Verified));
    let programs = answers::programs(run, place).into_iter().map(Box::new);
    all.extend(programs.map(Claim::Programs));
    all.extend(answers::load(run, place).map(Claim::Load));
    all.extend(ways(run, place).map(Claim::Ways));
    let too_few = concurrency::too_few(run, place).into_iter();
    all.extend(too_few.map(Claim::TooFew));
    all.extend(answers::untouched(run, place).map(Claim::Preparation));
    all.extend(comparisons(run, place).into_iter().map(Claim::Comparison));
    let curves = best_of_curves(run, place);
    all.extend((!curves.is_empty()).then_some(Claim::Best(curves)));
    all.extend(change::changes(run, place).into_iter().map(Claim::Change));
    all.extend(long_tail(run, place).map(Claim::LongTail));
    all.extend(series::steady(run, place).into_iter().map(Claim::Steady));
    all.extend(concurrency::queued(run, place).map(Claim::Queued));
    all.extend(answers::fixed_costs(run, place).map(Claim::FixedCosts));
    let together = answers::together(run, place).into_iter();
    all.extend(together.map(Claim::Together));
    all.extend(series::courses(run, place).into_iter().map(Claim::Course));
    all
}
