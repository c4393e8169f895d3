//! Runs as text: tables, curves and findings.

use std::io::Write;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::buffer_preparation::preparation;
use iolab_analysis::equivalence::program_pairs;
use iolab_report::buffer_preparation as prepare;
use iolab_report::chart::{Style, chart};
use iolab_report::compare;
use iolab_report::comparison_table;
use iolab_report::equivalence;
use iolab_report::findings::Finding;
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::layout::{paragraph, wrapped};
use iolab_report::table;
use iolab_workload::escape_control::escape_control;

use super::style;
use crate::failure::Outcome;

/// Writes the question, the table, the chart, the comparison with other tools and the findings of one run.
pub fn report(run: &AnalysedRun, interpretation: &Interpretation, to: &mut dyn Write) -> Outcome {
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
pub(super) fn heading(
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
