//! Runs as text: tables, curves and findings.

use std::io::Write;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::buffer_preparation::preparation;
use iolab_analysis::equivalence::program_pairs;
use iolab_report::agreement;
use iolab_report::buffer_preparation as prepare;
use iolab_report::chart::{Style, chart};
use iolab_report::compare;
use iolab_report::comparison_table;
use iolab_report::durable_write;
use iolab_report::equivalence;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::findings::{Finding, cross_findings};
use iolab_report::input::Input;
use iolab_report::layout::{paragraph, wrapped};
use iolab_report::overview::Overview;
use iolab_report::sparkline_panels;
use iolab_report::table;
use iolab_workload::escape_control::escape_control;

use super::style;
use crate::exit::Outcome;

/// Writes the question, the table, the chart, the comparison with other tools and the findings of one run.
pub(crate) fn report(
    run: &AnalysedRun,
    interpretation: &Interpretation,
    to: &mut dyn Write,
) -> Outcome {
    let (analysis, style) = (run.analysis(), style());
    heading(analysis, interpretation, style, to)?;
    write!(to, "{}", table::text(analysis, style.width))?;
    writeln!(to, "\n{}", chart(analysis, &style))?;
    for pair in program_pairs(analysis) {
        writeln!(to, "{}", equivalence::text(&pair, style.width))?;
    }
    for comparison in comparison_table::tabled(analysis) {
        writeln!(to, "{}", comparison_table::text(&comparison, style.width))?;
    }
    let prepared = preparation(analysis);
    if !prepared.is_empty() {
        writeln!(to, "{}", prepare::text(&prepared, style.width))?;
    }
    for comparison in &interpretation.peers {
        writeln!(to, "{}", compare::text(comparison, style.width))?;
        paragraphs(&compare::remarks(comparison), style, to)?;
        writeln!(to)?;
    }
    sentences(&interpretation.findings, style, to)
}

/// Writes the summary of a run and its question.
fn heading(
    analysis: &Analysis,
    interpretation: &Interpretation,
    style: Style,
    to: &mut dyn Write,
) -> Outcome {
    conclusions(interpretation, to)?;
    if !interpretation.conclusions.is_empty() {
        writeln!(to)?;
    }
    Ok(writeln!(
        to,
        "{}",
        wrapped(&escape_control(&analysis.question), style.width)
    )?)
}

/// Writes the summary of a run, one line per target.
pub(crate) fn conclusions(interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
    let width = style().width;
    for line in &interpretation.conclusions {
        let line = escape_control(&line.text);
        write!(to, "{}", paragraph(&line, "", width))?;
    }
    Ok(())
}

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

/// Writes findings as paragraphs that fit the width.
pub(crate) fn sentences(findings: &[Finding], style: Style, to: &mut dyn Write) -> Outcome {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    paragraphs(&texts, style, to)
}

/// Writes texts as a list of paragraphs that fit the width.
pub(crate) fn paragraphs(texts: &[impl AsRef<str>], style: Style, to: &mut dyn Write) -> Outcome {
    for text in texts {
        write!(
            to,
            "{}",
            paragraph(&escape_control(text.as_ref()), "- ", style.width)
        )?;
    }
    Ok(())
}
