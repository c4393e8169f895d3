//! Limits of the numbers of runs, as data for other programs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{IdentifiedRun, analyses, clean};
use crate::findings::{self, Finding, FindingKind};
use crate::notation::in_text;

/// Limits of the numbers of each run, and choices of settings.
pub(crate) fn remarks(runs: &[IdentifiedRun<'_>]) -> Vec<RemarkData> {
    let of_run = |run: &IdentifiedRun<'_>| {
        let all = findings::of_rules(run.analysis).into_iter();
        let remark = |finding| RemarkData::of(&finding, vec![run.id.clone()]);
        all.map(remark).collect::<Vec<_>>()
    };
    let mut all: Vec<RemarkData> = runs.iter().flat_map(of_run).collect();
    let every: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
    let choices = match runs.len() {
        0 | 1 => Vec::new(),
        _ => findings::choices(&analyses(runs)),
    };
    all.extend(choices.iter().map(|one| RemarkData::of(one, every.clone())));
    all
}

/// A statement about runs that is not based on a comparison of cells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Remark")]
pub(crate) struct RemarkData {
    /// The rule that makes it: `other-traffic`, `below-precision`, `choice`.
    rule: String,
    /// Purpose of the remark.
    purpose: FindingKind,
    /// Runs that the remark is about, as `run` of the cells names them.
    runs: Vec<String>,
    /// Sentence that iolab prints.
    sentence: String,
    /// Basis of the remark, in words.
    basis: String,
}

impl RemarkData {
    fn of(finding: &Finding, runs: Vec<String>) -> Self {
        Self {
            rule: finding.rule.name.to_owned(),
            purpose: finding.rule.kind,
            runs,
            sentence: clean(&in_text(&finding.text)),
            basis: finding.rule.basis.to_owned(),
        }
    }
}
