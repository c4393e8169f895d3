//! Claims: what runs show, as data. `iolab-report` writes the sentences.
//!
//! A claim compares cells that differ only in what is asked about. Its intervals are simultaneous over all comparisons of one
//! kind in one run (Bonferroni), so that at most 5 % of runs have a false claim of a kind. Evidence of exactly these cells that
//! could reverse a comparison makes it [`Difference::CannotTell`]. METHODS.md has the rules and their measured error rates.
//!
//! Files to begin with:
//! - `effect.rs`: two cells, `comparison.rs`: two levels of a factor in all settings, `contradictions.rs`:
//!   comparisons that disagree.
//! - `best.rs`: the best sizes of a curve, `limit.rs`: limits that more requests in flight do not raise,
//!   `concurrency.rs`: requests in flight, `company.rs`: groups at once.
//! - `series.rs`: the trials of a cell in their order, `rounds.rs`: rounds until they are steady, `change.rs`:
//!   levels over time.
//! - `phenomena.rs` and `falls.rs`: differences that can be explained, `overhead.rs`: the time of trials
//!   outside their I/O, `causes.rs`: results of interventions.
//! - `answers.rs`: claims of particular experiments, `grounds.rs`: cells and doubts of each kind, `order.rs`:
//!   the order of claims.

mod answers;
mod best;
mod causes;
mod change;
mod choice;
mod company;
mod comparison;
mod concurrency;
mod contradictions;
pub(crate) mod effect;
mod falls;
mod grounds;
mod leftover;
mod limit;
mod order;
mod overhead;
mod phenomena;
mod phenomenon;
mod rounds;
mod series;
mod signs;
mod simplicity;
mod stages;
mod tail;

pub use answers::{
    Aspect, FixedCost, FixedCosts, Load, Preparation, Programs, RateTimes, Rates, Verified,
};
pub use best::{Best, Candidate, Standing};
use best::{best_of_curves, ways};
pub use causes::{
    Again, CauseVerdict, Remainder, Reproduction, Share, Suspected, Suspects, WhyUntried,
    is_answered, remainders,
};
pub use change::{Change, ChangePlace, GradualChange, NoChange};
pub use choice::{Access, Choice, choices};
pub use comparison::{Comparison, Contrast, comparisons};
use comparison::{random_across_runs, targets_across_runs};
pub use concurrency::{Cause, TooFew};
pub use effect::{CellId, Difference, Effect, Estimate, MARGIN, Trials, ratio};
pub use falls::{Unpaired, WhyUnpaired, unpaired};
pub use leftover::{changes_inside, leftover};
pub use limit::Limit;
pub use order::{HEADLINES_MAX, Role, headlines, ordered};
pub use overhead::{Overhead, overhead};
pub use phenomena::{Unexplainable, phenomena};
pub use phenomenon::{Fall, Phenomenon, PhenomenonKind, Tail, Unclaimed};
pub use rounds::{Outside, Rounds, RoundsDoubts, RoundsState, TrackedState};
use schemars::JsonSchema;
use serde::Serialize;
pub use series::{
    Groups, State, Steady, dependent_cells, drifting_cells, drifts, groups, two_groups,
};
pub use signs::signs;
pub use stages::{JournalledSyncs, Largest, TimeByLayer};
use tail::long_tail;
pub use tail::{LongTail, TailObstacle, leaves_tails_open};

use crate::analysis::Analysis;

/// A statement about cells of one or more runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "evidence", rename_all = "snake_case")]
pub enum Claim {
    /// Whether the data read back is the data written.
    Verified(Verified),
    /// Comparison of two programs.
    Programs(Box<Programs>),
    /// Response time as a function of the given load.
    Load(Load),
    /// Fewer requests in flight than requested, with the cause.
    TooFew(TooFew),
    /// The cost of page faults in untouched buffers.
    Preparation(Preparation),
    /// Comparison of two levels of a factor.
    Comparison(Comparison),
    /// The best I/O sizes: of all curves of one run, or of the only curve of each of several runs. Or the best of the ways that an experiment
    /// names.
    Best(Vec<Best>),
    /// Throughput that changes its level for good.
    Change(Change),
    /// A trial from its beginning that is not constant, without such a change.
    Gradual(GradualChange),
    /// Trials from their beginning without either.
    NoChange(NoChange),
    /// Slow requests, far above the median latency.
    LongTail(LongTail),
    /// Layers that take most of the time of requests, and of the slowest ones.
    TimeByLayer(TimeByLayer),
    /// Whether cells that write reached a steady state.
    Steady(Steady),
    /// Whether rounds, of all cells or of writes before them, came to a steady state.
    Rounds(Rounds),
    /// A limit that more requests in flight do not raise.
    Limit(Limit),
    /// A fixed cost of a request, and a bandwidth for its bytes.
    FixedCosts(FixedCosts),
    /// Whether a phenomenon of another run is there again.
    Reproduced(Reproduction),
    /// Results of interventions on suspects.
    Suspects(Suspects),
}

impl Claim {
    /// The cells that it rests on; empty where it is about a run as a whole.
    pub fn cells(&self) -> Vec<CellId> {
        match self {
            Self::Comparison(comparison) => {
                let effects = comparison.effects.iter();
                let sides = effects.flat_map(|effect| [effect.base, effect.other]);
                let alone = match &comparison.contrast {
                    Contrast::Company { alone } => alone.as_slice(),
                    _ => &[],
                };
                sides.chain(alone.iter().copied()).collect()
            }
            Self::Best(curves) => {
                let all = curves.iter().flat_map(|best| &best.candidates);
                all.map(|candidate| candidate.cell).collect()
            }
            Self::TooFew(few) => few.cells.clone(),
            Self::NoChange(kept) => kept.cells.clone(),
            Self::Steady(steady) => steady.cells.clone(),
            Self::LongTail(tail) => vec![tail.cell],
            Self::TimeByLayer(time) => vec![time.cell],
            Self::Change(change) => vec![change.cell],
            Self::Gradual(change) => vec![change.cell],
            Self::Limit(limit) => limit.cells.clone(),
            Self::Verified(_)
            | Self::Programs(_)
            | Self::Load(_)
            | Self::Preparation(_)
            | Self::FixedCosts(_)
            | Self::Rounds(_)
            | Self::Reproduced(_)
            | Self::Suspects(_) => Vec::new(),
        }
    }

    /// The runs that it is based on: their indices in ascending order.
    pub fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = match self {
            Self::Verified(Verified { run, .. })
            | Self::Load(Load { run, .. })
            | Self::Preparation(Preparation { run, .. })
            | Self::FixedCosts(FixedCosts { run, .. })
            | Self::Rounds(Rounds { run, .. })
            | Self::Reproduced(Reproduction { run, .. })
            | Self::Suspects(Suspects { run, .. }) => vec![*run],
            Self::Programs(programs) => vec![programs.run],
            _ => self.cells().iter().map(|cell| cell.run).collect(),
        };
        runs.sort_unstable();
        runs.dedup();
        runs
    }
}

/// The claims about several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct OfRuns {
    /// Claims about single runs, in the order of the runs.
    pub each: Vec<Vec<Claim>>,
    /// Claims about several runs together.
    pub across: Vec<Claim>,
}

/// All claims about runs. Deterministic. Where two runs contradict each other, both claims become
/// [`Difference::CannotTell`].
pub fn of_runs(runs: &[&Analysis]) -> OfRuns {
    let each = runs
        .iter()
        .enumerate()
        .map(|(place, run)| of_run(run, place));
    let mut each: Vec<Vec<Claim>> = each.collect();
    let lengths: Vec<usize> = each.iter().map(Vec::len).collect();
    let mut all: Vec<Claim> = each.drain(..).flatten().collect();
    // Both write out all settings of every cell, to find pairs in different runs.
    if runs.len() > 1 {
        all.extend(random_across_runs(runs).into_iter().map(Claim::Comparison));
        all.extend(targets_across_runs(runs).into_iter().map(Claim::Comparison));
    }
    contradictions::reconcile(&mut all, runs);
    let mut all = all.into_iter();
    OfRuns {
        each: lengths
            .into_iter()
            .map(|length| all.by_ref().take(length).collect())
            .collect(),
        across: all.collect(),
    }
}

/// The claims of [`of_runs`] as one list, in which the best sizes of runs with one curve each are one claim.
pub fn claims(runs: &[&Analysis]) -> Vec<Claim> {
    let OfRuns { each, across } = of_runs(runs);
    let mut curves = Vec::new();
    let mut all = Vec::new();
    for claim in each.into_iter().flatten() {
        match claim {
            Claim::Best(mut own) if own.len() == 1 && !own[0].is_of_ways => curves.append(&mut own),
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
    // Its cells are variants of two: what else tells them apart was chosen, and is not the question.
    if let Some((again, suspects)) = causes::causes(run, place) {
        all.push(Claim::Reproduced(again));
        all.extend(suspects.into_iter().map(Claim::Suspects));
        return all;
    }
    all.extend(rounds::rounds(run, place).map(Claim::Rounds));
    all.extend(answers::verified(run, place).map(Claim::Verified));
    let programs = answers::programs(run, place).into_iter().map(Box::new);
    all.extend(programs.map(Claim::Programs));
    all.extend(answers::load(run, place).map(Claim::Load));
    all.extend(ways(run, place).map(|ways| Claim::Best(vec![ways])));
    let too_few = concurrency::too_few(run, place).into_iter();
    all.extend(too_few.map(Claim::TooFew));
    all.extend(answers::untouched(run, place).map(Claim::Preparation));
    all.extend(comparisons(run, place).into_iter().map(Claim::Comparison));
    let curves = best_of_curves(run, place);
    all.extend((!curves.is_empty()).then_some(Claim::Best(curves)));
    all.extend(change::changes(run, place).into_iter().map(Claim::Change));
    all.extend(change::gradual(run, place).map(Claim::Gradual));
    all.extend(change::no_change(run, place).map(Claim::NoChange));
    all.extend(long_tail(run, place).map(Claim::LongTail));
    all.extend(stages::time_by_layer(run, place).map(Claim::TimeByLayer));
    all.extend(series::steady(run, place).into_iter().map(Claim::Steady));
    all.extend(limit::limits(run, place).into_iter().map(Claim::Limit));
    all.extend(answers::fixed_costs(run, place).map(Claim::FixedCosts));
    all.extend(company::company(run, place).map(Claim::Comparison));
    all
}
