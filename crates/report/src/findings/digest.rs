//! What several runs mean for a decision: few statements, the weightiest first, none twice, and all caveats in short.

mod caveat;

use crate::findings::agreement::AGREEMENT;
use crate::findings::concurrency::SERIALISED;
use crate::findings::interpretation::Interpretation;
use crate::findings::preparation::PREPARATION;
use crate::findings::programs::{PROGRAMS_DIFFER, PROGRAMS_EQUIVALENT};
use crate::findings::rate::LOAD;
use crate::findings::series_tests::{NOT_STEADY, NOT_WRITTEN_OVER};
use crate::findings::timeline::{LEVEL_IN_WARM_UP, LEVEL_OVER_RUN, LEVEL_WITHIN_TRIALS};
use crate::findings::trust::Trust;
use crate::findings::verified::VERIFIED;
use crate::findings::{Finding, Rule, agreement, words};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{self, HEADLINES_MAX, Role};
use iolab_analysis::headline_numbers::HeadlineNumbers;

pub use caveat::Caveat;

/// Rules that answer the question of an experiment, in the order in which they are shown.
const ANSWERS: [Rule; 5] = [
    AGREEMENT,
    VERIFIED,
    PROGRAMS_DIFFER,
    PROGRAMS_EQUIVALENT,
    LOAD,
];
/// Rules that explain a number.
const EXPLANATIONS: [Rule; 2] = [SERIALISED, PREPARATION];
/// Rules of changes over time.
const CHANGES: [Rule; 3] = [LEVEL_OVER_RUN, LEVEL_WITHIN_TRIALS, LEVEL_IN_WARM_UP];

/// Rules of limits that change a decision.
const LIMITS: [Rule; 2] = [NOT_STEADY, NOT_WRITTEN_OVER];

/// A run with what it says.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The run.
    pub run: &'a AnalysedRun,
    /// What it says alone.
    pub interpretation: &'a Interpretation,
}

/// A statement that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// Places of the runs that it is about, in ascending order.
    pub runs: Vec<usize>,
    /// A sentence, or a few.
    pub text: String,
}

/// What a page begins with.
#[derive(Debug, Clone)]
pub struct Digest<'a> {
    /// The numbers that are compared most.
    pub glance: HeadlineNumbers<'a>,
    /// How far they can be trusted.
    pub trust: Trust,
    /// At most [`HEADLINES_MAX`] statements, the weightiest first.
    pub headlines: Vec<Headline>,
    /// What limits the numbers, the worst first.
    pub caveats: Vec<Caveat>,
}

impl<'a> Digest<'a> {
    /// The digest of runs, in the order in which they were made.
    pub fn of(runs: &[Told<'a>]) -> Self {
        let analyses: Vec<&Analysis> = runs.iter().map(|told| told.run.analysis()).collect();
        let analysed: Vec<&AnalysedRun> = runs.iter().map(|told| told.run).collect();
        Self {
            glance: HeadlineNumbers::of(&analyses),
            trust: Trust::of(&analysed),
            headlines: headlines(runs, &analyses),
            caveats: caveat::all(&analyses),
        }
    }
}

/// Answers, explanations, effects, changes over time, limits, equivalence: in this order.
fn headlines(runs: &[Told<'_>], analyses: &[&Analysis]) -> Vec<Headline> {
    let mut all = of_rules(runs, &ANSWERS);
    all.extend(of_rules(runs, &EXPLANATIONS));
    let claims = claim::claims(analyses);
    let of_claims = |role: fn(Role) -> bool| {
        let own = claim::headlines(&claims).into_iter();
        own.filter(move |one| role(one.role())).map(|one| Headline {
            runs: one.runs(),
            text: words::finding(one, analyses).text,
        })
    };
    all.extend(of_claims(|role| role <= Role::BestInSettings));
    all.extend(of_rules(runs, &CHANGES));
    all.extend(of_rules(runs, &LIMITS));
    all.extend(of_claims(|role| role > Role::BestInSettings));
    all.truncate(HEADLINES_MAX);
    all
}

/// The findings of these rules, one of each about a run; what several runs say in the same words stands once.
fn of_rules(runs: &[Told<'_>], rules: &[Rule]) -> Vec<Headline> {
    let mut all: Vec<Headline> = Vec::new();
    for rule in rules {
        for (run, told) in runs.iter().enumerate() {
            let peers = agreement(&told.interpretation.peers);
            let mut own = peers.iter().chain(&told.interpretation.findings);
            let Some(Finding { text, .. }) = own.find(|finding| finding.rule == *rule) else {
                continue;
            };
            match all.iter_mut().find(|other| other.text == *text) {
                Some(other) => other.runs.push(run),
                None => all.push(Headline {
                    runs: vec![run],
                    text: text.clone(),
                }),
            }
        }
    }
    all
}
