//! Claims in words: `sentence.rs` writes claims with points, and a file each writes evidence that points do not show.

mod causes;
mod comparison;
mod layers;
mod programs;
mod rounds;
mod sentence;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, MARGIN, Payload};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial_description::levels_in_words;

use crate::doubt::clauses as doubts;
use crate::findings::{Finding, FindingKind, Rule, with_levels};

pub(crate) use causes::by_reason;
pub(crate) use causes::{cause_in_short, causes_in_lines, obstacle};
pub(crate) use rounds::{
    foreseen, in_words_of_standard, median_of_groups, of_trials, state_in_short,
};
pub(super) use sentence::done;
use sentence::of_points;

/// A claim as a sentence, or two. `runs` are those that the claims were made of.
pub fn finding(claim: &Claim, runs: &[&Analysis]) -> Finding {
    let text = match claim.runs().first().and_then(|run| runs.get(*run)) {
        Some(first) => said(claim, first, runs),
        None => String::new(),
    };
    let kind = match claim.kind.is_doubt {
        true => FindingKind::Doubt,
        false => FindingKind::Result,
    };
    Finding {
        rule: Rule {
            name: claim.kind.name,
            kind,
            basis: claim.kind.basis,
        },
        text,
    }
}

/// Whether the sentences of a claim name the targets that it is about, where the runs have several: see `comparison.rs`.
pub(super) fn names_targets(claim: &Claim, runs: &[&Analysis]) -> bool {
    claim.compares_targets() || has_several_targets(runs) && claim.runs().len() > 1
}

/// Whether runs were made on different targets.
fn has_several_targets(runs: &[&Analysis]) -> bool {
    runs.windows(2).any(|two| two[0].target != two[1].target)
}

/// The sentence; `first` is the first run that it is about.
fn said(claim: &Claim, first: &Analysis, runs: &[&Analysis]) -> String {
    match &claim.payload {
        Some(Payload::Programs(two)) => programs::of_programs(two),
        Some(Payload::TooFew(cause)) => {
            format!("{} {}", of_points(claim, first, runs), layers::cause(cause))
        }
        Some(Payload::Comparison(comparison)) => comparison::of_comparison(comparison, runs),
        Some(Payload::TimeByLayer(time)) => layers::of_time(time, first),
        Some(Payload::Rounds(found)) => rounds::of_rounds(found, first),
        Some(Payload::Reproduced(found)) => causes::of_reproduction(found),
        Some(Payload::Suspects(found)) => {
            causes::of_suspects(found, usize::MAX) + &causes::difference(first, runs)
        }
        None => of_points(claim, first, runs),
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

/// ` with 4 KiB, 2 threads`: a cell by the factors of its run; empty without factors.
pub(crate) fn with_cell(run: &Analysis, id: CellId) -> String {
    let cell = run.cell(id.cell);
    cell.map_or_else(String::new, |cell| with_levels(run, cell))
}

/// `4 KiB, 2 threads`: levels of a cell that others share.
fn held_in_words(held: &[(String, String)], cell: Option<&CellAnalysis>) -> String {
    let every = CellSpec::default();
    let spec = cell.map_or(&every, |cell| &cell.cell.spec);
    levels_in_words(spec, held.iter().map(|(factor, level)| (factor, level)))
}

/// ` with 4 KiB, 2 threads`; empty if nothing is held.
fn with_held(held: &[(String, String)], cell: Option<&CellAnalysis>) -> String {
    match held_in_words(held, cell) {
        none if none.is_empty() => none,
        levels => format!(" with {levels}"),
    }
}

/// `5 %`.
pub(crate) fn margin() -> String {
    format!("{} %", 100.0 * MARGIN)
}
