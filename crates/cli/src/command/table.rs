//! `iolab table`: what run files hold.

use std::io::Write;
use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::RunName;
use iolab_report::findings::interpretation::Together;
use iolab_report::{document, export, table as tables};
use iolab_workload::Result;

use crate::arguments::{Table, TableFormat};
use crate::command::{answers, read_run_by};
use crate::exit::Outcome;
use crate::output;
use crate::output_format::format_of;

/// Writes the tables to stdout or to a new file.
pub(crate) fn table(options: &Table) -> Outcome {
    let format = format_of(
        options.output.as_deref(),
        options.format,
        Some(TableFormat::Text),
        &[
            (TableFormat::Text, &["txt"]),
            (TableFormat::Csv, &["csv"]),
            (TableFormat::Json, &["json"]),
            (TableFormat::Markdown, &["md", "markdown"]),
            (TableFormat::Latex, &["tex"]),
        ],
    )?;
    let read = |path: &PathBuf| {
        let run = read_run_by(path, options.metric.as_ref())?;
        let name = RunName::of(&path.display().to_string(), run.record());
        Ok((name, run))
    };
    let runs: Vec<(RunName, AnalysedRun)> =
        options.files.iter().map(read).collect::<Result<_>>()?;
    let analyses = runs.iter().map(|(_, run)| run.analysis());
    let files = options.files.iter().map(PathBuf::as_path);
    let answers = answers(files.zip(runs.iter().map(|(_, run)| run)));
    let mut to = output::open(options.output.as_deref())?;
    match format {
        TableFormat::Csv => export::cells(&runs, &mut to)?,
        TableFormat::Json => document::table(&runs, &mut to)?,
        TableFormat::Latex => {
            write!(to, "{}", answers.latex())?;
            for analysis in analyses {
                writeln!(to, "{}", tables::latex(analysis))?;
            }
        }
        TableFormat::Markdown => {
            write!(to, "{}", answers.markdown())?;
            for analysis in analyses {
                writeln!(to, "{}", tables::markdown(analysis))?;
            }
        }
        TableFormat::Text => {
            if answers.answer().is_some() {
                writeln!(to, "{}", answers.text(output::style().width))?;
            }
            let together = Together::of(runs.iter().map(|(_, run)| run));
            for ((_, run), interpretation) in runs.iter().zip(&together.each) {
                output::report(run, interpretation, &mut to)?;
                writeln!(to)?;
            }
            output::sentences(&together.across, output::style(), &mut to)?;
        }
    }
    Ok(to.flush()?)
}
