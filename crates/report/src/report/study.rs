//! The runs of a report, and what its parts share.

use iolab_analysis::analysis::Analysis;

use super::across::Findings;
use super::own_model::{self, OwnModel};
use super::picture::Medium;
use super::run_sequence::RunSequence;
use super::{Input, StudyReport, section};
use crate::findings::{self, Finding, agreement, choices};
use crate::overview::Overview;

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
        let said = findings::of_runs(&analyses);
        // Earlier runs of an experiment appear in its series only.
        let mut each: Vec<Vec<Finding>> = vec![Vec::new(); inputs.len()];
        for ((place, input), own) in latest.iter().zip(&shown).zip(said.each) {
            each[*place].extend(agreement(&input.interpretation.peers));
            each[*place].extend(own);
        }
        let names = section::names(inputs);
        Self {
            report,
            medium,
            findings: Findings::new(&said.across, &choices(&analyses), &each, &names),
            models: own_model::all(inputs, &sequences),
            overview: Overview::new(shown),
            sequences,
            latest,
            names,
        }
    }
}
