//! Findings in plain sentences: claims in words.
//!
//! Files to begin with: `sentences.rs` claims as sentences, `digest.rs` what several runs mean for a decision.

mod conclusion;
pub mod digest;
mod doubts;
pub mod interpretation;
pub mod sentences;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{self, Claim, Kind, OfRuns};
use iolab_figure::labels;
use iolab_workload::trial_description::levels_in_words;

pub use conclusion::{Conclusion, conclusions};
pub use digest::agreement;

/// One or two sentences, and the kind of their claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: &'static Kind,
    /// The sentences.
    pub text: String,
}

/// Findings about runs that are shown together: of each run, in the order of its claims, and of several.
pub fn of_runs(analyses: &[&Analysis]) -> (Vec<Vec<Finding>>, Vec<Finding>) {
    let OfRuns { each, across } = claim::of_runs(analyses);
    let said = |claim: &Claim| sentences::finding(claim, analyses);
    let of_run = |claims: &Vec<Claim>| {
        let (shown, not) = claim::ordered(claims);
        shown.into_iter().chain(not).map(said).collect()
    };
    let each = each.iter().map(of_run).collect();
    (each, across.iter().map(said).collect())
}

/// Findings about several runs together: comparisons across them, and which settings to choose.
pub fn cross_findings<'a>(analyses: impl IntoIterator<Item = &'a Analysis>) -> Vec<Finding> {
    let analyses: Vec<&Analysis> = analyses.into_iter().collect();
    with_choices(of_runs(&analyses).1, &analyses)
}

/// Findings of several runs together, with choices of settings added.
pub(crate) fn with_choices(mut across: Vec<Finding>, analyses: &[&Analysis]) -> Vec<Finding> {
    if analyses.len() > 1 {
        across.extend(choices(analyses));
    }
    across
}

/// Choices of settings.
pub fn choices(analyses: &[&Analysis]) -> Vec<Finding> {
    let all = claim::choices(analyses);
    all.iter()
        .map(|one| sentences::finding(one, analyses))
        .collect()
}

/// The origin of the bytes in brackets, unless it was the device.
fn origin(cell: &CellAnalysis) -> String {
    let served = cell.served.as_ref().filter(|_| !cell.is_target());
    served.map_or_else(String::new, |served| {
        format!(" [{}]", labels::served(served))
    })
}

/// `4 KiB, 2 threads`: a cell by its levels; `None` if the run has no factors.
pub fn levels_of(analysis: &Analysis, cell: &CellAnalysis) -> Option<String> {
    let levels = analysis.factors.iter().zip(&cell.cell.levels);
    (levels.len() > 0).then(|| levels_in_words(&cell.cell.spec, levels))
}

/// ` with 4 KiB, 2 threads`; empty if the run has no factors.
fn with_levels(analysis: &Analysis, cell: &CellAnalysis) -> String {
    levels_of(analysis, cell).map_or_else(String::new, |levels| format!(" with {levels}"))
}

/// `3 of 16 cells`, for use within a sentence.
fn within(n: usize, analysis: &Analysis) -> String {
    match analysis.cells.len() {
        1 if n == 1 => "the only cell".to_owned(),
        2 if n == 2 => "both cells".to_owned(),
        all if n == all => "all cells".to_owned(),
        all => format!("{n} of {all} cells"),
    }
}
