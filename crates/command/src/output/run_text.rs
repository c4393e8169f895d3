//! Text of runs: of those that a command has just made only what matters.

use std::io::Write;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::chart::Style;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::findings::{Finding, cross_findings};
use iolab_report::input::Input;
use iolab_report::layout::paragraph;
use iolab_report::overview::Overview;
use iolab_report::run_text;
use iolab_workload::escape_control::escape_control;

use super::style;
use crate::failure::Outcome;

/// Lines after the text of a run: an empty one, and its run file.
const LINES_BELOW: usize = 2;

/// Writes everything about one run.
pub fn report(run: &AnalysedRun, interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
    let text = run_text::text(run, interpretation, &style());
    Ok(write!(to, "{text}")?)
}

/// Writes the summary of a run, one line per target.
pub fn conclusions(interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
    let width = style().width;
    for line in &interpretation.conclusions {
        let line = escape_control(&line.text);
        write!(to, "{}", paragraph(&line, "", width))?;
    }
    Ok(())
}

/// Writes findings as paragraphs that fit the width.
pub fn sentences(findings: &[Finding], style: Style, to: &mut dyn Write) -> Outcome {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    paragraphs(&texts, style, to)
}

/// Writes texts as a list of paragraphs that fit the width.
pub fn paragraphs(texts: &[impl AsRef<str>], style: Style, to: &mut dyn Write) -> Outcome {
    for text in texts {
        write!(
            to,
            "{}",
            paragraph(&escape_control(text.as_ref()), "- ", style.width)
        )?;
    }
    Ok(())
}

/// Writes one run, in full or in brief.
pub fn run(input: &Input, full: bool, to: &mut dyn Write) -> Outcome {
    let text = match full {
        true => return report(&input.run, &input.interpretation, to),
        false => Overview::new([input]).screen(LINES_BELOW, &style()),
    };
    Ok(write!(to, "{text}")?)
}

/// Writes runs one after the other, then their common findings.
pub fn runs(inputs: &[Input], full: bool, to: &mut dyn Write) -> Outcome {
    for (number, input) in inputs.iter().enumerate() {
        if number > 0 {
            writeln!(to)?;
        }
        run(input, full, to)?;
    }
    if inputs.len() > 1 {
        let analyses = inputs.iter().map(|input| input.run.analysis());
        let found = cross_findings(analyses);
        if !found.is_empty() {
            writeln!(to, "\nAll together\n")?;
            sentences(&found, style(), to)?;
        }
    }
    Ok(())
}
