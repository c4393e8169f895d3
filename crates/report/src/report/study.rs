//! The runs of a report, and their findings sorted by the experiments that they are about.

use super::commands::{self, OwnModel};
use super::section::{Medium, RunSequence};
use super::{Input, StudyReport, clean, id};
use crate::block::Item;
use crate::findings::sentences::grouped;
use crate::findings::{self, Finding, agreement, choices};
use crate::overview::{Overview, names};
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::Role;
use iolab_analysis::trial_values::distinct;

/// The runs of a report, with what its parts share.
pub(super) struct Study<'a> {
    pub(super) report: &'a StudyReport<'a>,
    pub(super) medium: Medium,
    /// The runs of each experiment.
    pub(super) sequences: Vec<RunSequence>,
    /// Indices of the latest run of each experiment.
    pub(super) latest: Vec<usize>,
    /// Distinct name of each run.
    pub(super) names: Vec<String>,
    /// The model of each run, if that is a file of the user.
    pub(super) models: Vec<Option<OwnModel>>,
    /// The latest runs.
    pub(super) overview: Overview<'a>,
    pub(super) findings: Findings,
}

impl<'a> Study<'a> {
    pub(super) fn new(report: &'a StudyReport<'a>, medium: Medium) -> Self {
        let inputs = report.inputs;
        let sequences = RunSequence::all(inputs);
        let latest: Vec<usize> = sequences.iter().filter_map(RunSequence::latest).collect();
        let shown: Vec<&Input> = latest
            .iter()
            .filter_map(|place| inputs.get(*place))
            .collect();
        let analyses: Vec<&Analysis> = shown.iter().map(|input| input.run.analysis()).collect();
        let (findings, across) = findings::of_runs(&analyses);
        // Earlier runs of an experiment appear in its series only.
        let mut each: Vec<Vec<Finding>> = vec![Vec::new(); inputs.len()];
        for ((place, input), own) in latest.iter().zip(&shown).zip(findings) {
            each[*place].extend(input.interpretation.peers.iter().map(agreement));
            each[*place].extend(own);
        }
        let names = names(&inputs.iter().collect::<Vec<_>>());
        Self {
            report,
            medium,
            findings: Findings::new(&across, &choices(&analyses), &each, &names),
            models: commands::all(inputs, &sequences),
            overview: Overview::new(shown),
            sequences,
            latest,
            names,
        }
    }
}

/// The findings of a report.
pub(super) struct Findings {
    /// Findings of each run alone.
    pub(super) each: Vec<Vec<Item>>,
    /// Findings of several experiments.
    pub(super) across: Vec<Item>,
    /// Choices of settings.
    pub(super) choices: Vec<Item>,
    /// Limits that several experiments share.
    pub(super) limits: Vec<Item>,
    /// Names of the kinds of all findings.
    pub(super) kinds: Vec<&'static str>,
}

impl Findings {
    /// Sorts the findings of runs with these names. A finding of several runs is printed once.
    pub(super) fn new(
        together: &[Finding],
        choices: &[Finding],
        each: &[Vec<Finding>],
        names: &[String],
    ) -> Self {
        let of = |finding: &Finding| (finding.kind.role == Role::Unshown, item(finding));
        let mut shared: Vec<(bool, Item)> = together.iter().map(of).collect();
        let mut alone: Vec<Vec<Item>> = vec![Vec::new(); each.len()];
        let all = each.iter().enumerate().flat_map(|(place, own)| {
            let own = own.iter().map(of);
            own.map(move |one| (one, place))
        });
        for ((is_limit, item), places) in grouped(all) {
            let places = distinct(places);
            if let [only] = places.as_slice() {
                alone[*only].push(item);
                continue;
            }
            let about = places
                .iter()
                .map(|place| (names[*place].clone(), id(*place)));
            let about = about.collect();
            let one = (is_limit, Item { about, ..item });
            if !shared.contains(&one) {
                shared.push(one);
            }
        }
        let of = |limits: bool| {
            let shared = shared.iter();
            let own = shared.filter(|(is_limit, _)| *is_limit == limits);
            own.map(|(_, item)| item.clone()).collect()
        };
        Self {
            each: alone,
            across: of(false),
            choices: choices.iter().map(item).collect(),
            limits: of(true),
            kinds: each
                .iter()
                .flatten()
                .map(|finding| finding.kind.name)
                .collect(),
        }
    }
}

fn item(finding: &Finding) -> Item {
    Item {
        basis: finding.kind.basis.to_owned(),
        ..Item::of(clean(&finding.text))
    }
}
