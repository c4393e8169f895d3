//! One file per command.

mod compare;
mod completions;
#[cfg(feature = "measure")]
mod doctor;
mod export;
#[cfg(feature = "measure")]
mod fit;
mod gate;
mod history;
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
mod slo;
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
#[cfg(feature = "measure")]
use std::rc::Rc;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_report::answer::Answers;
#[cfg(feature = "measure")]
use iolab_report::findings::interpretation::Interpretation;
use iolab_report::input::{Input, InsideTrials};
#[cfg(feature = "measure")]
use iolab_runner::ranks::Ranks;
use iolab_workload::Result;

use crate::arguments::Command;
#[cfg(feature = "measure")]
use crate::ending::with_kept;
#[cfg(feature = "measure")]
use crate::workspace::Workspace;
#[cfg(feature = "measure")]
use iolab_command::failure::Failure;
use iolab_command::failure::Outcome;
#[cfg(feature = "measure")]
use iolab_command::output::{self, Log};
#[cfg(feature = "measure")]
use iolab_command::run_files::read_run;

/// Carries out a command; `ranks` are the processes of a run across several.
pub(crate) fn carry_out(
    command: Command,
    #[cfg(feature = "measure")] ranks: Option<Rc<Ranks>>,
) -> Outcome {
    match command {
        #[cfg(feature = "measure")]
        Command::Study(options) => study::study(&options),
        #[cfg(feature = "measure")]
        Command::Run(options) => run::run(&options, ranks),
        #[cfg(feature = "measure")]
        Command::Fit(options) => fit::fit(&options),
        #[cfg(feature = "measure")]
        Command::Why(options) => why::why(&options),
        Command::List(options) => list::list(&options),
        Command::Show(options) => show::show(&options),
        Command::Table(options) => table::table(&options),
        #[cfg(feature = "measure")]
        Command::Import(options) => import::import(&options),
        Command::Plot(options) => plot::plot(&options),
        #[cfg(feature = "measure")]
        Command::Resume(options) => resume::resume(&options, ranks),
        Command::Compare(options) => compare::compare(&options),
        Command::Gate(options) => gate::gate(&options),
        Command::History(options) => history::history(&options),
        Command::Stats(options) => stats::stats(&options),
        #[cfg(feature = "measure")]
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Report(options) => report::report(&options),
        Command::Export(options) => export::export(&options),
        Command::Model(options) => model::model(&options),
        #[cfg(feature = "measure")]
        Command::Serve(options) => serve::serve(options),
        #[cfg(feature = "measure")]
        Command::Witness(options) => witness::witness(&options),
        Command::Schema(options) => schema::schema(&options),
        Command::Completions(options) => completions::completions(&options),
    }
}

#[cfg(feature = "measure")]
impl Command {
    /// The kind of output on stderr during the command.
    pub(crate) fn log(&self) -> Log {
        match self {
            Command::Study(options) => options.log.log(),
            Command::Run(options) => options.log.log(),
            Command::Fit(options) => options.log.log(),
            Command::Resume(options) => options.log.log(),
            Command::Why(options) => options.log.log(),
            _ => Log::Lines,
        }
    }
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
