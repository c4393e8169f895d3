//! One file per command.

mod compare;
mod completions;
#[cfg(feature = "measure")]
mod doctor;
mod export;
#[cfg(feature = "measure")]
mod fit;
#[cfg(feature = "measure")]
mod import;
mod list;
mod model;
#[cfg(feature = "measure")]
mod new_file;
mod plot;
mod report;
#[cfg(feature = "measure")]
mod resume;
#[cfg(feature = "measure")]
mod run;
mod schema;
#[cfg(feature = "measure")]
mod serve;
mod show;
mod stats;
#[cfg(feature = "measure")]
mod study;
#[cfg(feature = "measure")]
mod study_causes;
mod table;
#[cfg(feature = "measure")]
mod why;
#[cfg(feature = "measure")]
mod witness;

#[cfg(feature = "measure")]
use std::io::Write as _;
use std::path::{Path, PathBuf};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::answer::Answers;
#[cfg(feature = "measure")]
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::input::{Input, InsideTrials};
use iolab_report::schema::DOCUMENTS;
use iolab_workload::Result;

#[cfg(feature = "measure")]
use crate::arguments::{Fit, Resume, Run, Study, Why};
#[cfg(feature = "measure")]
use crate::ending::with_kept;
#[cfg(feature = "measure")]
use crate::launcher;
#[cfg(feature = "measure")]
use crate::workspace::Workspace;
#[cfg(feature = "measure")]
use iolab_command::failure::{Failure, Outcome};
use iolab_command::lists::{Command, Lists};
#[cfg(feature = "measure")]
use iolab_command::output;
#[cfg(feature = "measure")]
use iolab_command::run_files::read_run;

/// The lists of the core.
pub(crate) fn lists() -> Lists {
    let mut commands = Vec::new();
    #[cfg(feature = "measure")]
    commands.extend(measuring());
    commands.extend(reading());
    Lists {
        commands,
        documents: DOCUMENTS.to_vec(),
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
            |options, _| import::import(options),
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
fn reading() -> [Command; 11] {
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
            |options, _| show::show(options),
        ),
        Command::new(
            "table",
            "Show the tables and findings of run files",
            |options, _| table::table(options),
        ),
        Command::new(
            "plot",
            "Draw run files as a figure: SVG, PDF or PNG",
            |options, _| plot::plot(options),
        ),
        Command::new(
            "stats",
            "Summarise numbers, one per line: intervals, drift, a histogram",
            |options, _| stats::stats(options),
        ),
        Command::new(
            "export",
            "Write every sample, interval or latency bucket, for other programs",
            |options, _| export::export(options),
        ),
        Command::new("model", "List disk models, or print one", |options, _| {
            model::model(options)
        }),
        Command::new(
            "schema",
            "Print the JSON Schema of what a command prints as JSON",
            schema::schema,
        ),
        Command::new(
            "completions",
            "Print shell completions",
            completions::completions,
        ),
    ]
}

/// The file of a run that is complete, or that the user ended early; then with that interrupt, which is returned after all
/// results are printed.
#[cfg(feature = "measure")]
type EndedRun = (PathBuf, Option<Failure>);

/// The end of a run whose measurements are in `kept`.
///
/// # Errors
///
/// The failure of the run; or the user's interrupt, if no results are wanted.
#[cfg(feature = "measure")]
fn ended(
    finished: Result<PathBuf>,
    kept: Option<&Path>,
    workspace: &Workspace,
) -> Outcome<EndedRun> {
    let failure = match finished {
        Ok(path) => return Ok((path, None)),
        Err(error) => with_kept(error.into(), kept),
    };
    match kept.filter(|_| workspace.tells(&failure)) {
        Some(path) if read_run(path).is_ok_and(|run| has_results(&run)) => {
            Ok((path.to_owned(), Some(failure)))
        }
        _ => Err(failure),
    }
}

/// The end of a run alone, whose workspace is closed.
///
/// # Errors
///
/// As [`ended`], after the summary of the results so far; or files that could not be removed.
#[cfg(feature = "measure")]
fn closed(
    finished: Result<PathBuf>,
    kept: Option<&Path>,
    workspace: Workspace,
) -> Outcome<EndedRun> {
    let measured = ended(finished, kept, &workspace)
        .map_err(|failure| with_summary(failure, kept, &workspace));
    workspace.close_after(measured, kept.map(Path::to_owned).as_slice())
}

/// Prints the summary of a run that the user ended before any trial was measured: its only result.
#[cfg(feature = "measure")]
fn with_summary(failure: Failure, kept: Option<&Path>, workspace: &Workspace) -> Failure {
    let kept = kept.filter(|_| workspace.tells(&failure));
    let Some(run) = kept.and_then(|path| read_run(path).ok()) else {
        return failure;
    };
    let print = || -> Outcome {
        let mut to = output::open(None)?;
        output::conclusions(&Interpretation::of(&run), &mut to)?;
        Ok(to.flush()?)
    };
    match print() {
        Ok(()) => failure,
        Err(_) => failure.also("its summary could not be printed"),
    }
}

/// Whether any trial was measured.
#[cfg(feature = "measure")]
fn has_results(run: &AnalysedRun) -> bool {
    run.analysis().cells.iter().any(|cell| cell.n > 0)
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

/// The answers of runs, given with the names of their files.
fn answers<'a>(runs: impl IntoIterator<Item = (&'a Path, &'a AnalysedRun)>) -> Answers<'a> {
    let named = runs.into_iter();
    Answers::of(named.map(|(path, run)| (path.display().to_string(), run)))
}
