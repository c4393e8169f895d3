//! What several runs mean for a decision: few findings, the weightiest first, none twice, and all caveats in
//! short.

mod caveat;
mod merged;
mod weight;

use crate::interpretation::Interpretation;
use crate::trust::Trust;
use crate::{Finding, FindingKind, Rule, agreement, costs_of_random, optimal_pattern};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::headline_numbers::HeadlineNumbers;

pub use caveat::Caveat;

/// Most headlines of a digest.
pub const HEADLINES_MAX: usize = 7;
/// Fewest headlines, where there are as many results.
const HEADLINES_MIN: usize = 3;
/// Most headlines of one rule about one run.
const OF_ONE_RULE_MAX: usize = 2;

/// A run with what it says.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The run.
    pub run: &'a AnalysedRun,
    /// What it says alone.
    pub interpretation: &'a Interpretation,
}

impl<'a> Told<'a> {
    fn analysis(&self) -> &'a Analysis {
        self.run.analysis()
    }
}

/// A finding that matters, short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The rule behind it.
    pub rule: Rule,
    /// Numbers of the runs that it is about, in order.
    pub runs: Vec<usize>,
    /// One sentence, or two.
    pub text: String,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Digest<'a> {
    /// The numbers that are compared most.
    pub glance: HeadlineNumbers<'a>,
    /// How far they can be trusted.
    pub trust: Trust,
    /// At most [`HEADLINES_MAX`] findings, the weightiest first.
    pub headlines: Vec<Headline>,
    /// Findings of all kinds that are in no headline.
    pub more: usize,
    /// What limits the numbers, the worst first.
    pub caveats: Vec<Caveat>,
}

impl<'a> Digest<'a> {
    /// The digest of runs, in the order in which they were made.
    pub fn of(runs: &[Told<'a>]) -> Self {
        let analyses: Vec<&Analysis> = runs.iter().map(Told::analysis).collect();
        let analysed: Vec<&AnalysedRun> = runs.iter().map(|told| told.run).collect();
        let mut ranked = merged::headlines(runs);
        let taken: Vec<Rule> = ranked.iter().flat_map(|m| m.stands_for).copied().collect();
        let all = findings(runs, &analyses);
        let total = all.len();
        for (runs, finding) in all {
            let is_result = finding.rule.kind == FindingKind::Result;
            let said = ranked
                .iter()
                .filter(|m| m.is_again(finding.rule, &runs))
                .count();
            if is_result && !taken.contains(&finding.rule) && said < OF_ONE_RULE_MAX {
                ranked.push(merged::Ranked::of(finding, runs));
            }
        }
        ranked.sort_by_key(|headline| std::cmp::Reverse(headline.weight));
        // What has no weight is reported only where there is little else.
        let weighty = ranked.iter().filter(|headline| headline.weight > 0).count();
        ranked.truncate(weighty.clamp(HEADLINES_MIN, HEADLINES_MAX));
        let headlines: Vec<Headline> = ranked.into_iter().map(|m| m.headline).collect();
        Self {
            glance: HeadlineNumbers::of(&analyses),
            trust: Trust::of(&analysed),
            more: total.saturating_sub(headlines.len()),
            headlines,
            caveats: caveat::all(&analyses),
        }
    }
}

/// All findings with the numbers of the runs that they are about; what several runs say in the same words stands once.
fn findings(runs: &[Told<'_>], analyses: &[&Analysis]) -> Vec<(Vec<usize>, Finding)> {
    let mut all: Vec<(Vec<usize>, Finding)> = Vec::new();
    for (number, told) in runs.iter().enumerate() {
        let own = agreement(&told.interpretation.peers);
        for finding in own.iter().chain(&told.interpretation.findings) {
            match all.iter_mut().find(|(_, other)| other == finding) {
                Some((numbers, _)) => numbers.push(number),
                None => all.push((vec![number], finding.clone())),
            }
        }
    }
    if runs.len() > 1 {
        let mut together = costs_of_random(analyses);
        together.extend(optimal_pattern(analyses));
        let numbers: Vec<usize> = (0..runs.len()).collect();
        all.extend(
            together
                .into_iter()
                .map(|finding| (numbers.clone(), finding)),
        );
    }
    all
}
