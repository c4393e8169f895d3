//! `iolab table`: the content of run files.

use std::io::Write;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::RunName;
use iolab_analysis::witness::Evidence;
use iolab_record::{RunRecord, tell_targets_apart};
use iolab_report::findings::interpretation::Together;
use iolab_report::{document, export, table as tables, witness};
use iolab_runfile::Content;
use iolab_workload::Error;

use crate::arguments::{Table, TableFormat};
use crate::command::answers;
use iolab_command::failure::Outcome;
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_command::run_files::{analysed, files_of, without_copies};

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
    let mut records: Vec<(&Path, RunRecord)> = Vec::new();
    let mut observations: Vec<Evidence> = Vec::new();
    let paths = files_of(&options.files)?;
    for path in &paths {
        match iolab_runfile::read_content(path)? {
            Content::Run(record) => records.push((path, *record)),
            Content::Witness(witnessed) => observations.push(Evidence::of(*witnessed)),
        }
    }
    let mut records = without_copies(records);
    tell_targets_apart(records.iter_mut().map(|(_, record)| record));
    let mut runs: Vec<(RunName, AnalysedRun)> = Vec::new();
    let mut files: Vec<&Path> = Vec::new();
    for (path, record) in records {
        let run = analysed(record, path, options.metric.as_ref())?;
        let name = RunName::of(&path.display().to_string(), run.record());
        runs.push((name, run));
        files.push(path);
    }
    if !observations.is_empty() && format != TableFormat::Text {
        return of_observation(&runs, &observations, format, options);
    }
    let analyses = runs.iter().map(|(_, run)| run.analysis());
    let answers = answers(files.into_iter().zip(runs.iter().map(|(_, run)| run)));
    let mut to = output::open(options.output.as_deref())?;
    match format {
        TableFormat::Csv => export::cells(&runs, &mut to)?,
        TableFormat::Json => document::table(&runs, &mut to)?,
        TableFormat::Latex => {
            write!(to, "{}", answers.latex())?;
            for analysis in analyses {
                writeln!(to, "{}", tables::table(analysis).latex())?;
            }
        }
        TableFormat::Markdown => {
            write!(to, "{}", answers.markdown())?;
            for analysis in analyses {
                write!(to, "{}", tables::table(analysis).markdown())?;
            }
        }
        TableFormat::Text => {
            if answers.answer().is_some() {
                write!(to, "{}", answers.text(output::style().width))?;
            }
            let together = Together::of(runs.iter().map(|(_, run)| run));
            for ((_, run), interpretation) in runs.iter().zip(&together.each) {
                output::report(run, interpretation, &mut to)?;
                writeln!(to)?;
            }
            output::sentences(&together.across, output::style(), &mut to)?;
            for evidence in &observations {
                writeln!(to, "{}", witness::text(evidence, output::style().width))?;
            }
        }
    }
    Ok(to.flush()?)
}

/// Prints the observation of one program as data.
fn of_observation(
    runs: &[(RunName, AnalysedRun)],
    observations: &[Evidence],
    format: TableFormat,
    options: &Table,
) -> Outcome {
    match (runs, observations, format) {
        ([], [evidence], TableFormat::Json) => {
            let mut to = output::open(options.output.as_deref())?;
            witness::json(evidence, &mut to)?;
            Ok(to.flush()?)
        }
        (_, _, TableFormat::Json) => Err(Error::usage(
            "a file of 'iolab witness' has a JSON document of its own",
        )
        .hint("give one such file alone: iolab table FILE --format json")
        .into()),
        _ => Err(
            Error::usage("a file of 'iolab witness' is shown as text or JSON only")
                .hint("iolab report FILE writes HTML, Markdown or LaTeX")
                .into(),
        ),
    }
}
