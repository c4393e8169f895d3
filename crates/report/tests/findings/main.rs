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

use iolab_analysis::analysis::Analysis;
use iolab_report::findings::Finding;

/// All findings of one run.
fn all_findings(analysis: &Analysis) -> Vec<Finding> {
    iolab_report::findings::findings(analysis)
}

/// Findings of one run in claims of this name, or by the rule of this name.
fn named(name: &str, analysis: &Analysis) -> Vec<Finding> {
    let mut found = all_findings(analysis);
    found.retain(|finding| finding.rule.name == name);
    found
}

/// Findings on doubts about cells.
fn doubts(analysis: &Analysis) -> Vec<Finding> {
    let mut found = all_findings(analysis);
    found.retain(|finding| finding.rule.basis.starts_with("counters and settings"));
    found
}

/// Text of findings, each of which must name its basis.
fn text(findings: &[Finding]) -> String {
    for finding in findings {
        assert!(
            !finding.rule.basis.is_empty(),
            "{} rests on nothing",
            finding.rule.name
        );
    }
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}
