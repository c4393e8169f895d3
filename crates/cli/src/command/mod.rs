//! One file per command.

mod compare;
#[cfg(feature = "measure")]
mod doctor;
mod export;
#[cfg(feature = "measure")]
mod fit;
mod list;
mod plot;
mod report;
#[cfg(feature = "measure")]
mod resume;
#[cfg(feature = "measure")]
mod run;
#[cfg(feature = "measure")]
mod serve;
#[cfg(feature = "measure")]
mod study;
#[cfg(feature = "measure")]
mod study_causes;
#[cfg(feature = "measure")]
mod why;
#[cfg(feature = "measure")]
mod witness;

use std::io::Write;
use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::document::DOCUMENTS;
use iolab_report::export::FORMATS;
use iolab_report::overview::{Input, InsideTrials};
use iolab_workload::Result;

use crate::arguments::Schema;
#[cfg(feature = "measure")]
use crate::arguments::{Fit, Resume, Run, Study, Why};
#[cfg(feature = "measure")]
use crate::launcher;
use iolab_command::failure::Outcome;
use iolab_command::lists::{Command, Lists};
use iolab_command::output;

/// The lists of the core.
pub(crate) fn lists() -> Lists {
    let mut commands = Vec::new();
    #[cfg(feature = "measure")]
    commands.extend(measuring());
    commands.extend(reading());
    Lists {
        commands,
        documents: DOCUMENTS.to_vec(),
        formats: FORMATS.to_vec(),
        ..Lists::default()
    }
}

/// The commands that measure, or look at this machine.
#[cfg(feature = "measure")]
fn measuring() -> [Command; 9] {
    [
        Command::with_log(
            "study",
            "Run a suite of experiments and report the findings: start here",
            |options: &Study| options.log.log(),
            |options, _| {
                launcher::alone(options.changes.dry_run, "study", launcher::TOGETHER)?;
                study::study(options)
            },
        ),
        Command::with_log(
            "run",
            "Run one experiment",
            |options: &Run| options.log.log(),
            |options, _| {
                launcher::together(options.changes.dry_run, |ranks| run::run(options, ranks))
            },
        ),
        Command::with_log(
            "fit",
            "Check whether storage is good enough for a purpose: yes, no, or cannot tell",
            |options: &Fit| options.log.log(),
            |options, _| {
                launcher::alone(options.dry_run, "fit", launcher::TOGETHER)?;
                fit::fit(options)
            },
        ),
        Command::with_log(
            "why",
            "Find what causes a difference that a run shows, by measuring without each suspect",
            |options: &Why| options.log.log(),
            |options, _| {
                let is_plan = options.dry_run || options.list;
                launcher::alone(is_plan, "why", "it explains a run of one process")?;
                why::why(options)
            },
        ),
        Command::with_log(
            "resume",
            "Finish interrupted runs and print their answers",
            |options: &Resume| options.log.log(),
            |options, _| {
                launcher::together(options.dry_run, |ranks| resume::resume(options, ranks))
            },
        ),
        Command::new(
            "import",
            "Convert results of fio or IOzone to a run file",
            |options, _| run::import(options),
        ),
        Command::new(
            "doctor",
            "Check a target and this machine: what to trust, what to set",
            |options, _| doctor::doctor(options),
        ),
        Command::new(
            "serve",
            "Serve a disk model as a file in real time, for any tool to measure",
            |options, _| serve::serve(options),
        ),
        Command::new(
            "witness",
            "Run any program, and show where its bytes came from and went to",
            |options, _| witness::witness(options),
        ),
    ]
}

/// The commands that read what there is.
fn reading() -> [Command; 10] {
    [
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
            |options, _| list::list(options),
        ),
        Command::new(
            "show",
            "Print the TOML of an experiment, suite, requirement or run file, to copy and change",
            |options, _| list::show(options),
        ),
        Command::new(
            "table",
            "Show the tables and findings of run files",
            |options, _| report::table(options),
        ),
        Command::new(
            "plot",
            "Draw run files as a figure: SVG, PDF or PNG",
            |options, _| plot::plot(options),
        ),
        Command::new(
            "export",
            "Write every sample, interval or latency bucket, for other programs",
            export::export,
        ),
        Command::new("model", "List disk models, or print one", |options, _| {
            list::model(options)
        }),
        Command::new(
            "schema",
            "Print the JSON Schema of what a command prints as JSON",
            schema,
        ),
        Command::new("completions", "Print shell completions", list::completions),
    ]
}

/// A run with its analysis for a page.
fn input(path: PathBuf, run: AnalysedRun) -> Result<Input> {
    let mut input = Input::new(path, run);
    if input.shows_inside() {
        input.inside = InsideTrials {
            throughput: iolab_runfile::read_series(&input.path)?.collect::<Result<_>>()?,
            latency: iolab_runfile::read_latency_over_time(&input.path)?.read_all()?,
        };
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
