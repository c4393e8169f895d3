//! Claims in words: `comparison.rs` effects, `best.rs` sizes and settings to choose, and a file each for what `iolab_analysis::claim`
//! has one for.

mod answers;
mod best;
mod cause_in_short;
mod causes;
mod causes_in_lines;
mod change;
mod comparison;
mod concurrency;
mod layers;
pub(crate) mod limit;
mod more_blocks;
mod programs;
mod rounds;
mod sentence;
mod series;
mod standard;
mod why_untried;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, LongTail, MARGIN, Role, State};
use iolab_workload::quantity::{counted, format_ns, significant};
use iolab_workload::settings::{cell_label, level_label};

use crate::doubt::clauses as doubts;
use crate::findings::{Finding, FindingKind, Rule};

pub use best::choice;
pub(crate) use cause_in_short::cause_in_short;
pub(crate) use causes::by_reason;
pub(crate) use causes_in_lines::causes_in_lines;
pub(super) use change::done;
pub(crate) use rounds::state_in_short;
pub(crate) use series::{median_of_groups, of_trials};
pub(crate) use standard::{foreseen, in_words_of_standard};
pub(crate) use why_untried::obstacle;

const COMPARISON: &str = "ratios within the blocks that both cells share (of medians where they share none), with simultaneous 95 % intervals";
const BEST: &str =
    "ratios within the blocks that both cells share, with simultaneous 95 % intervals";
const VERIFIED: &str = "every block that a trial wrote, read back after it";
const LOAD: &str =
    "medians over the trials of their response times' quantiles, with exact 95 % intervals";
const TOO_FEW: &str =
    "the requests in flight, by Little's law, and those at the device, by its counters";
const PREPARATION: &str = "ratios within the blocks that both cells share, with simultaneous 95 % intervals, Welch's test, and the page faults of each trial";
const LIMIT: &str = "ratios of IOPS within the blocks that cells share, of sizes and of requests in flight, all shown to be within 5 % by simultaneous 95 % intervals";
const FIXED_COSTS: &str =
    "the median time of a request at each size, fitted as a fixed cost and a rate";
const REPRODUCED: &str =
    "the ratio of both sides within each block, by signed ranks, on its logarithm";
const SUSPECTS: &str = "the difference without each suspect, and without all others, within the blocks that these share, by signed ranks with Holm's correction over all suspects";
const LAYERS: &str = "the requests of each traced trial, joined with the kernel's events; simultaneous 95 % intervals of the median share over the trials";
const TAIL: &str =
    "the 99th percentile over the median of each trial, with simultaneous 95 % intervals";

/// A claim as a sentence, or two. `runs` are those that the claims were made of.
pub fn finding(claim: &Claim, runs: &[&Analysis]) -> Finding {
    let (text, basis) = match claim.runs().first().and_then(|run| runs.get(*run)) {
        Some(first) => said(claim, first, runs),
        None => (String::new(), ""),
    };
    Finding {
        rule: Rule {
            name: claim.kind().0,
            kind: kind(claim),
            basis,
        },
        text,
    }
}

/// Whether the sentences of a claim name the targets that it is about, where the runs have several: see `comparison.rs` and `best.rs`.
pub(super) fn names_targets(claim: &Claim, runs: &[&Analysis]) -> bool {
    let of_several_runs =
        matches!(claim, Claim::Comparison(_) | Claim::Best(_)) && claim.runs().len() > 1;
    claim.compares_targets() || has_several_targets(runs) && of_several_runs
}

/// Whether runs were made on different targets.
fn has_several_targets(runs: &[&Analysis]) -> bool {
    runs.windows(2).any(|two| two[0].target != two[1].target)
}

/// The sentence, and what it rests on; `first` is the first run that it is about.
fn said(claim: &Claim, first: &Analysis, runs: &[&Analysis]) -> (String, &'static str) {
    match claim {
        Claim::Verified(verified) => (answers::of_verified(verified, first), VERIFIED),
        Claim::Programs(two) => (programs::of_programs(two), programs::basis(two.aspect)),
        Claim::Load(load) => (answers::of_load(load, first), LOAD),
        Claim::TooFew(few) => (concurrency::of_too_few(few, first), TOO_FEW),
        Claim::Preparation(untouched) => (answers::of_preparation(untouched, first), PREPARATION),
        Claim::Comparison(comparison) => (comparison::of_comparison(comparison, runs), COMPARISON),
        Claim::Best(curves) => (best::of_curves(curves, runs), BEST),
        Claim::Change(change) => (change::of_change(change, first), change::basis(change)),
        Claim::Gradual(found) => (change::of_gradual(found, first), change::GRADUAL),
        Claim::NoChange(kept) => (change::of_no_change(kept, first), change::KEPT),
        Claim::LongTail(tail) => (of_tail(tail, runs), TAIL),
        Claim::TimeByLayer(time) => (layers::of_time(time, first), LAYERS),
        Claim::Steady(steady) => (
            series::of_steady(steady, first),
            series::steady_basis(&steady.state),
        ),
        Claim::Rounds(found) => (rounds::of_rounds(found, first), rounds::BASIS),
        Claim::Limit(limit) => (concurrency::of_limit(limit), LIMIT),
        Claim::FixedCosts(costs) => (answers::of_fixed_costs(costs), FIXED_COSTS),
        Claim::Reproduced(found) => (causes::of_reproduction(found), REPRODUCED),
        Claim::Suspects(found) => (
            causes::of_suspects(found, usize::MAX) + &causes::difference(found, runs),
            SUSPECTS,
        ),
    }
}

/// Purpose of a claim's sentence.
fn kind(claim: &Claim) -> FindingKind {
    match claim {
        Claim::Verified(verified) if verified.all.failed > 0 => FindingKind::Doubt,
        Claim::Steady(steady) => match steady.state {
            State::NotReached { .. } => FindingKind::Doubt,
            State::NotWrittenOver { .. } => FindingKind::Limit,
        },
        // What the run was made for, also where they are not steady.
        Claim::Rounds(_) => FindingKind::Result,
        _ => match claim.role() {
            Role::Change | Role::Weakness => FindingKind::Doubt,
            _ => FindingKind::Result,
        },
    }
}

fn cell<'a>(runs: &[&'a Analysis], id: CellId) -> Option<&'a CellAnalysis> {
    runs.get(id.run)?.cell(id.cell)
}

/// `throughput`, `reader's throughput`: the quantity of a run.
fn quantity(runs: &[&Analysis], id: CellId) -> String {
    let Some(run) = runs.get(id.run) else {
        return String::new();
    };
    match &run.response_group {
        Some(group) => format!("{group}'s {}", run.quantity()),
        None => run.quantity(),
    }
}

/// `bs=4KiB, threads=2`: a cell by the factors of its run.
fn in_cell(run: &Analysis, id: CellId) -> String {
    cell_label(&run.factors, run.levels_of(id.cell))
}

/// ` at bs=4KiB, threads=2`; nothing where there is no factor.
pub(crate) fn at_cell(run: &Analysis, id: CellId) -> String {
    match run.factors.is_empty() {
        true => String::new(),
        false => format!(" at {}", in_cell(run, id)),
    }
}

/// `bs=4KiB, threads=2`.
fn levels_label(held: &[(String, String)]) -> String {
    let levels = held.iter();
    let levels: Vec<String> = levels
        .map(|(factor, level)| level_label(factor, level))
        .collect();
    levels.join(", ")
}

/// ` at bs=4KiB, threads=2`; nothing where nothing varies.
fn at(held: &[(String, String)]) -> String {
    match held.is_empty() {
        true => String::new(),
        false => format!(" at {}", levels_label(held)),
    }
}

/// `5 %`.
pub(crate) fn margin() -> String {
    format!("{} %", 100.0 * MARGIN)
}

fn of_tail(tail: &LongTail, runs: &[&Analysis]) -> String {
    let run = runs.get(tail.cell.run);
    let latency = run.map_or_else(
        || "latency".to_owned(),
        |run| {
            let latency = run.timed.subject("latency");
            match &run.response_group {
                Some(group) => format!("{group}'s {latency}"),
                None => latency,
            }
        },
    );
    let (p50, p99) = tail.quantiles;
    let others = match tail.cells {
        1 => String::new(),
        n => format!(" {n} cells have a p99 above 3× the median."),
    };
    let unjudged = match tail.unjudged {
        0 => String::new(),
        n => format!(" Not judged: {}.", counted(n as u64, "cell")),
    };
    let begin = match (tail.cells, tail.unjudged) {
        (1, 0) => "The",
        _ => "The longest tail shown: the",
    };
    format!(
        "{begin} 99th percentile of {latency} is {}× the median ({} to {}×){}: {} against {}.{others}{unjudged}",
        significant(tail.ratio),
        significant(tail.interval.0),
        significant(tail.interval.1),
        at(&tail.at),
        format_ns(p99),
        format_ns(p50),
    )
}
