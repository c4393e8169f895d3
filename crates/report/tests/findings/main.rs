//! Conclusions of the laboratory from made-up records. One program, so that it is linked once.

#![allow(clippy::disallowed_fields)] // records are made up

mod buffer_preparation;
mod choices;
mod claims;
mod concurrency;
mod digest;
mod disturbance;
mod drives;
mod equivalence;
mod findings;
mod groups;
mod mixed;
mod peers;
mod ranks;
mod rate;
mod shape;
mod soak;
mod stages;
mod timeline;
mod together;
mod verified;

use iolab_analysis::analysis::{Analysis, DoubtKind};
use iolab_report::findings::Finding;

/// All findings of one run.
fn all_findings(analysis: &Analysis) -> Vec<Finding> {
    iolab_report::findings::of_runs(&[analysis]).0.remove(0)
}

/// Findings of one run in claims of this name, or on the doubt of this name.
fn named(name: &str, analysis: &Analysis) -> Vec<Finding> {
    let doubt = DoubtKind::ALL.iter().find(|doubt| doubt.name() == name);
    let is_on = |finding: &Finding| {
        let is_of_words = |doubt: &DoubtKind| finding.text.contains(doubt.words());
        finding.kind.name == "doubt" && doubt.is_some_and(is_of_words)
    };
    let mut found = all_findings(analysis);
    found.retain(|finding| finding.kind.name == name || is_on(finding));
    found
}

/// Findings on doubts about cells.
fn doubts(analysis: &Analysis) -> Vec<Finding> {
    let mut found = all_findings(analysis);
    found.retain(|finding| finding.kind.name == "doubt");
    found
}

/// Text of findings, each of which must name its basis.
fn text(findings: &[Finding]) -> String {
    for finding in findings {
        assert!(
            !finding.kind.basis.is_empty(),
            "{} rests on nothing",
            finding.kind.name
        );
    }
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}
