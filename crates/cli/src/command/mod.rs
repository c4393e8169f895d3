//! The commands that read what there is; a file has one command, or several that are alike.

mod compare;
mod export;
mod list;
mod plot;
mod report;

use std::io::Write;
use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::document::DOCUMENTS;
use iolab_report::export::FORMATS;
use iolab_report::overview::Input;
use iolab_workload::Result;

use crate::arguments::Schema;
use iolab_command::failure::Outcome;
use iolab_command::{Command, Lists, output};

/// The lists of the core, without what measures.
pub(crate) fn lists() -> Lists {
    Lists {
        commands: commands(),
        documents: DOCUMENTS.to_vec(),
        formats: FORMATS.to_vec(),
        built_in: list::built_in(),
        ..Lists::default()
    }
}

fn commands() -> Vec<Command> {
    vec![
        Command::new(
            "compare",
            "Compare two runs cell by cell: ratio, interval, p, verdict; exit code for CI",
            |options, _| compare::compare(options),
        ),
        Command::new(
            "report",
            "Write run files as one document: findings, tables, evidence, method, data",
            report::report,
        ),
        Command::new(
            "list",
            "List experiments, suites, requirements and settings",
            list::list,
        ),
        Command::new(
            "show",
            "Print the TOML of an experiment, suite, requirement or run file, to copy and change",
            list::show,
        ),
        Command::new(
            "table",
            "Show the tables and findings of run files",
            report::table,
        ),
        Command::new(
            "plot",
            "Draw run files as a figure: SVG, PDF or PNG",
            plot::plot,
        ),
        Command::new(
            "export",
            "Write every sample, interval or latency bucket, for other programs",
            export::export,
        ),
        Command::new(
            "schema",
            "Print the JSON Schema of what a command prints as JSON",
            schema,
        ),
        Command::new("completions", "Print shell completions", list::completions),
    ]
}

/// A run with its analysis for a page.
pub(crate) fn input(path: PathBuf, run: AnalysedRun) -> Result<Input> {
    let mut input = Input::new(path, run);
    if input.shows_inside() {
        input.series = iolab_runfile::read_series(&input.path)?.collect::<Result<_>>()?;
        input.over_time = iolab_runfile::read_latency_over_time(&input.path)?.read_all()?;
    }
    Ok(input)
}

/// Writes a JSON Schema to stdout.
fn schema(options: &Schema, lists: &Lists) -> Outcome {
    let mut to = output::open(None)?;
    let mut documents = lists.documents.iter();
    if let Some(document) = documents.find(|document| document.name == options.output) {
        write!(to, "{}", document.text())?;
    }
    Ok(to.flush()?)
}
