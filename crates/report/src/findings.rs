//! Findings in plain sentences: claims in words, and limits of the numbers.
//!
//! Files to begin with: `sentences.rs` claims as sentences, other findings by topic, `digest.rs`
//! what several runs mean for a decision (`digest/` findings by weight, merged).

mod conclusion;
pub mod digest;
mod doubts;
pub mod interpretation;
mod ranks;
mod run_status;
pub mod sentences;

use schemars::JsonSchema;
use serde::Serialize;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{self, Claim};
use iolab_figure::labels;
use iolab_record::ServedBy;
use iolab_workload::table;
use iolab_workload::trial_description::levels_in_words;

pub use conclusion::{Conclusion, conclusions};
pub use digest::agreement;
pub(crate) use ranks::stragglers;

/// One or two sentences, and the rule that made them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The sentences.
    pub text: String,
}

/// A function with the sentences of one rule on a run.
type Says = fn(&Analysis) -> Vec<String>;

/// The rules on how a run was carried out, in the order of their findings. [`doubts::doubts`] has those on its cells.
const OF_RUN: [(Rule, Says); 7] = table! {
    (Rule::limit("unfinished", "the status of the run, and the cells without a measured trial"), run_status::unfinished);
    (Rule::doubt("definition-not-read", "the definition of the experiment that the run file contains"), run_status::no_definition);
    (Rule::doubt("order-of-cells", "the warm-up, and the cells that write"), run_status::order_of_cells);
    (Rule::limit("gaps", "the options of each tool"), run_status::gaps);
    (Rule::doubt("peers", "the command line of each trial"), run_status::peers);
    (Rule::limit("model", "the target of the run"), run_status::a_model);
    (Rule::limit("network", "the account of the NFS client (mountstats), for each trial"), run_status::over_the_network);
};

/// The rules on the numbers of a run, in the order of their findings.
const OF_NUMBERS: [(Rule, Says); 10] = table! {
    (Rule::doubt("requests-in-pieces", "the device's count of requests over iolab's, in each trial"), doubts::requests_in_pieces);
    (Rule::limit("not-durable", "the sync policy of each cell that writes"), doubts::not_durable);
    (Rule::doubt("straggler", "throughput over the median of the others in the same trial: below 1 in every trial, and the exact interval of its median below 0.95, at 95 % for all hosts or ranks together"),
     stragglers);
    (Rule::doubt("rank-imbalance", "medians of throughput while all ranks were active, and from the first start to the last end"), ranks::imbalance);
    (Rule::doubt("cache-kept", "median over the trials of what the page cache of a client held, of the bytes that its ranks go over, before trials that read with a cold cache"),
     ranks::caches_kept);
    (Rule::doubt("below-precision", "the farther end of the median's interval, against the goal"), doubts::below_precision);
    (Rule::doubt("two-groups", "the density of each cell's trials, and its valley"), sentences::in_two_groups);
    (Rule::doubt("drift", "Mann and Kendall's test in each cell, with Holm's correction over the cells"), sentences::drifting);
    (Rule::limit("tail-unknown", "the requests of each trial"), doubts::tail_unknown);
    (Rule::limit("not-joined", "the requests of each traced trial, joined with the kernel's events"), run_status::not_joined);
};

/// All findings about one run: results in the order of [`claim::Role`], then limits, then what it does not show.
pub fn findings(analysis: &Analysis) -> Vec<Finding> {
    let OfRuns { mut each, .. } = of_runs(&[analysis]);
    each.pop().unwrap_or_default()
}

/// The findings about runs that are shown together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfRuns {
    /// For each run, in order: findings that no other run contradicts.
    pub each: Vec<Vec<Finding>>,
    /// Comparisons of accesses that were measured by separate runs.
    pub across: Vec<Finding>,
}

/// All findings about runs that are shown together.
pub fn of_runs(analyses: &[&Analysis]) -> OfRuns {
    let claims = claim::of_runs(analyses);
    let own = claims.each.iter().zip(analyses);
    let each = own.map(|(claims, analysis)| {
        let (shown, not) = claim::ordered(claims);
        let said = |claims: Vec<&Claim>| -> Vec<Finding> {
            let findings = claims.into_iter();
            findings
                .map(|claim| sentences::finding(claim, analyses))
                .collect()
        };
        [said(shown), of_rules(analysis), said(not)].concat()
    });
    let across = claims.across.iter();
    OfRuns {
        each: each.collect(),
        across: across
            .map(|one| sentences::finding(one, analyses))
            .collect(),
    }
}

/// The limits of one run's numbers.
pub(crate) fn of_rules(analysis: &Analysis) -> Vec<Finding> {
    let said = |rules: &[(Rule, Says)]| -> Vec<Finding> {
        let texts = rules.iter().flat_map(|(rule, says)| {
            let texts = says(analysis).into_iter();
            texts.map(|text| Finding { rule: *rule, text })
        });
        texts.collect()
    };
    [said(&OF_RUN), doubts::doubts(analysis), said(&OF_NUMBERS)].concat()
}

/// Findings about several runs together: comparisons across them, and which settings to choose.
pub fn cross_findings<'a>(analyses: impl IntoIterator<Item = &'a Analysis>) -> Vec<Finding> {
    let analyses: Vec<&Analysis> = analyses.into_iter().collect();
    with_choices(of_runs(&analyses).across, &analyses)
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
    let Some(served) = cell.served.as_ref().filter(|_| !cell.is_target()) else {
        return String::new();
    };
    let what = match served.unanimous() {
        Some(ServedBy::PageCache) => "page cache",
        Some(ServedBy::NotStorage) => "not storage",
        Some(ServedBy::Unknown) => "of unknown origin",
        Some(other) => return format!(" [{other}]"),
        None => return format!(" [{}]", labels::served(served)),
    };
    format!(" [{what}]")
}

/// `3 of 16 cells`.
fn cells_of(n: usize, analysis: &Analysis) -> String {
    labels::capital(&within(n, analysis))
}

/// `4 KiB, 2 threads`: a cell by its levels; `None` if the run has no factors.
pub(crate) fn levels_of(analysis: &Analysis, cell: &CellAnalysis) -> Option<String> {
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

fn has(n: usize) -> &'static str {
    if n == 1 { "has" } else { "have" }
}

/// Purpose of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Purpose")]
pub enum FindingKind {
    /// Answers a question.
    Result,
    /// States how far the numbers can be trusted.
    Doubt,
    /// States what the numbers do not show.
    Limit,
}

/// Properties that all findings of one sort share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule in reports.
    pub name: &'static str,
    /// Purpose of its sentences.
    pub kind: FindingKind,
    /// Basis of its sentences.
    pub basis: &'static str,
}

impl Rule {
    /// A rule that states how far numbers can be trusted.
    const fn doubt(name: &'static str, basis: &'static str) -> Self {
        let kind = FindingKind::Doubt;
        Self { name, kind, basis }
    }

    /// A rule that states what numbers do not show.
    const fn limit(name: &'static str, basis: &'static str) -> Self {
        let kind = FindingKind::Limit;
        Self { name, kind, basis }
    }
}
