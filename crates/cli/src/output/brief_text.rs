//! Runs as text at their end: what matters of them.

use std::io::Write;

use iolab_analysis::buffer_preparation::preparation;
use iolab_analysis::equivalence::program_pairs;
use iolab_report::agreement;
use iolab_report::buffer_preparation as prepare;
use iolab_report::durable_write;
use iolab_report::equivalence;
use iolab_report::findings::cross_findings;
use iolab_report::input::Input;
use iolab_report::overview::Overview;
use iolab_report::sparkline_panels;
use iolab_report::table;

use super::run_text::heading;
use super::{report, sentences, style};
use crate::failure::Outcome;

/// Writes one run, in full or only what matters.
pub(crate) fn run(input: &Input, full: bool, to: &mut dyn Write) -> Outcome {
    match full {
        true => report(&input.run, &input.interpretation, to),
        false => brief(input, to),
    }
}

/// Writes runs one after the other, and what several show together.
pub(crate) fn runs(inputs: &[Input], full: bool, to: &mut dyn Write) -> Outcome {
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

/// Writes the question, whether other tools agree, the table, its curves and the findings that matter.
fn brief(input: &Input, to: &mut dyn Write) -> Outcome {
    let (analysis, style) = (input.run.analysis(), style());
    if durable_write::asks(input) {
        return Ok(write!(to, "{}", durable_write::text(input, &style))?);
    }
    let mut text: Vec<u8> = Vec::new();
    heading(analysis, &input.interpretation, style, &mut text)?;
    if !input.interpretation.peers.is_empty() {
        writeln!(
            text,
            "{}",
            agreement::text(&input.interpretation.peers, style.width)
        )?;
    }
    write!(text, "{}", table::text(analysis, style.width))?;
    let overview = Overview::new([input]);
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    let curves = sparkline_panels::curves(analysis, &style);
    // Findings come before curves, which `table` and the page have as well.
    let with_curves = lines(&text) + 1 + curves.lines().count();
    if !curves.is_empty() && overview.fits(with_curves, style.width) {
        write!(text, "\n{curves}")?;
    }
    for pair in program_pairs(analysis) {
        writeln!(text, "\n{}", equivalence::text(&pair, style.width))?;
    }
    let prepared = preparation(analysis);
    if !prepared.is_empty() {
        write!(text, "\n{}", prepare::text(&prepared, style.width))?;
    }
    to.write_all(&text)?;
    let findings = overview.findings_text(lines(&text), style.width);
    Ok(write!(to, "{findings}")?)
}
