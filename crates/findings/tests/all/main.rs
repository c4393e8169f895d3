//! What the laboratory concludes from made-up records. One program, so that it is linked once.

#[path = "../../../analysis/tests/support/synthetic.rs"]
mod synthetic;

mod choices;
mod circumstances;
mod concurrency;
mod crossing;
mod digest;
mod findings;
mod pace;
mod peers;
mod preparation;
mod shape;
mod timeline;
mod verified;

use iolab_analysis::analysis::Analysis;
use iolab_analysis::knots::Bends;
use iolab_findings::Finding;

/// All that is said of one run.
fn all_findings(analysis: &Analysis) -> Vec<Finding> {
    iolab_findings::findings(analysis, &Bends::of(analysis))
}

/// What findings say, a line each. Every one has a basis.
fn text(findings: &[Finding]) -> String {
    for finding in findings {
        assert!(
            !finding.basis().is_empty(),
            "{} rests on nothing",
            finding.rule
        );
    }
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}
