//! Campaigns on the command line: what is shown of them, and how they end.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::slice;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::consent::command_to_finish;
use iolab_plan::cells::FittedPlan;
use iolab_record::{RunRecord, RunStatus, TargetKind};
use iolab_report::findings::interpretation::Interpretation;
use iolab_runfile::{Content, Folder, NewFile};
use iolab_runner::campaign::{
    self, AskedPeaks, Made, Opened, Permission, Program, Region, Site, Terms, Workspace,
};
use iolab_runner::ranks::{self, Ranks};
use iolab_runner::{Finished, GivenTargets, PreparedRun, Setup, Watch};
use iolab_workload::escape_control::shell_word;
use iolab_workload::units::counted;
use iolab_workload::{Error, Kind, Result};

use super::arguments::Changes;
use super::experiment_options::Asked;
use super::progress::{Display, filling};
use super::{
    EXECUTORS, LAUNCHERS, OBSERVERS, PEERS, PREFLIGHTS, SCHEMES, TRACERS, dry_run, signals,
};
use crate::target_names::give;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::{self, note, note_once};
use iolab_command::run_files::{files_of_folder, read_run};
use iolab_command::tell;

/// This program, as a campaign needs it.
pub(crate) const PROGRAM: Program = Program {
    note: note_once,
    filling,
    announce: dry_run::announce,
    catch: signals::catch,
    place: match LAUNCHERS {
        [launcher, ..] => launcher.place,
        [] => ranks::alone,
    },
    preflights: PREFLIGHTS,
    peers: PEERS,
    executors: EXECUTORS,
    observers: OBSERVERS,
    tracing: TRACERS.first().copied(),
    schemes: SCHEMES,
    end: end_at_once,
};

impl Changes {
    /// The terms of a new run with these changes.
    pub(crate) fn terms(&self, asked: &Asked, ranks: Option<Rc<dyn Ranks>>) -> Terms {
        Terms {
            consent: self.consent.consent(),
            system: Permission::of(self.system.change_system),
            programs: self.programs.consent(asked.commands()),
            purges: Permission::of(asked.purges()),
            ranks,
            region: Region::of(asked.has("region")),
            keeps_cache: asked.has("cache"),
            ..Terms::strict(PROGRAM)
        }
    }
}

/// The sites of targets, which the user gives these names.
///
/// # Errors
/// As [`give`].
pub(crate) fn sites(
    given: &GivenTargets,
    named: &[String],
    watch: Option<Watch>,
    terms: Terms,
) -> Result<Vec<Site>> {
    let mut all = campaign::sites(given, watch, terms);
    let targets: Vec<Vec<PathBuf>> = all.iter().map(|site| site.targets.clone()).collect();
    for (site, names) in all.iter_mut().zip(give(named, &targets)?) {
        site.names = names;
    }
    Ok(all)
}

/// The file of a run that is complete, or that the user ended early; with that interrupt, or with what could not be removed,
/// which is returned after all results are printed.
pub(crate) type EndedRun = (PathBuf, Option<Failure>);

/// The end of a run whose measurements are in `kept`.
///
/// # Errors
///
/// The failure of the run; or the user's interrupt, if no results are wanted.
pub(crate) fn ended(
    finished: Result<PathBuf>,
    kept: Option<&Path>,
    workspace: &Workspace,
) -> Outcome<EndedRun> {
    let failure = match finished {
        Ok(path) => return Ok((path, None)),
        // A refused run has measured nothing: another one may be writing the file.
        Err(error) if error.kind() == Kind::Refused => error.into(),
        Err(error) => with_kept(error.into(), kept),
    };
    match kept.filter(|_| is_told(&failure, workspace)) {
        Some(path) if read_run(path).is_ok_and(|run| has_results(&run)) => {
            Ok((path.to_owned(), Some(failure)))
        }
        _ => Err(failure),
    }
}

/// Carries out what is shown under this name and title, and closes the workspace.
///
/// # Errors
/// As [`ended`], after the summary of the results so far.
pub(crate) fn carry_out(
    workspace: Workspace,
    name: &str,
    title: &str,
    work: impl FnOnce(&Setup, &mut Display) -> Result<Finished>,
) -> Outcome<EndedRun> {
    let mut display = display(&workspace, name, title);
    let finished = work(workspace.setup(), &mut display);
    let kept = display.end();
    let finished = finished.map(|finished| finished.path);
    let measured = ended(finished, kept.as_deref(), &workspace)
        .map_err(|failure| with_summary(failure, kept.as_deref(), &workspace));
    close_after(workspace, measured, kept.as_slice())
}

/// Makes the run file at its place, and measures the plan.
///
/// # Errors
/// As [`carry_out`]; also a place where no run file can be made.
pub(crate) fn measure(
    (opened, plan): (Opened, FittedPlan),
    place: NewFile<'_>,
    (seed, peak): (u64, Option<&AskedPeaks>),
    title: &str,
) -> Outcome<EndedRun> {
    // Opened once, so that no other folder takes its place until the file is made.
    let folder = Folder::of(place)?;
    let place = folder.place(place);
    iolab_runfile::check_place(place)?;
    let workspace = opened.prepare(seed, slice::from_ref(&plan), Made::default(), peak)?;
    let name = plan.experiment().name.clone();
    carry_out(workspace, &name, title, |setup, display| {
        PreparedRun::new(plan, None, seed, place, setup)?.carry_out(display)
    })
}

/// A display for a run here.
pub(crate) fn display(workspace: &Workspace, name: &str, title: &str) -> Display {
    let mut display = Display::new(name);
    title.clone_into(&mut display.title);
    display.is_virtual = workspace.is_virtual();
    display
}

/// Whether the user ended the measurement and wants its results.
pub(crate) fn is_told(failure: &Failure, workspace: &Workspace) -> bool {
    failure.is_interrupt() && !workspace.ends_at_once()
}

/// Removes scratch files; `kept` are the run files. A file that cannot be removed is the failure of a run that has results, or
/// is added to it.
///
/// # Errors
/// The failure in `measured`.
pub(crate) fn close_after<T>(
    workspace: Workspace,
    measured: Outcome<(T, Option<Failure>)>,
    kept: &[PathBuf],
) -> Outcome<(T, Option<Failure>)> {
    let Err(left) = workspace.close(kept) else {
        return measured;
    };
    match measured {
        Ok((results, None)) => Ok((results, Some(left.into()))),
        Ok((results, Some(failure))) => Ok((results, Some(failure.also(left.message())))),
        Err(failure) => Err(failure.also(left.message())),
    }
}

/// Prints the summary of a run that the user ended before any trial was measured: its only result.
fn with_summary(failure: Failure, kept: Option<&Path>, workspace: &Workspace) -> Failure {
    let kept = kept.filter(|_| is_told(&failure, workspace));
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
pub(crate) fn has_results(run: &AnalysedRun) -> bool {
    run.analysis().cells.iter().any(|cell| cell.n > 0)
}

/// Prints an error and ends the process, whose other threads may wait in the kernel.
fn end_at_once(error: Error) {
    tell(&error);
    std::process::exit(1);
}

/// Puts the last failure first, which ended several runs early, with the targets that were left out.
pub(crate) fn ended_early(failures: &mut Vec<Failure>, left_out: Vec<String>) {
    let Some(last) = failures.pop() else { return };
    let last = match left_out.is_empty() {
        true => last,
        false => last.also(format_args!("not measured: {}", left_out.join(", "))),
    };
    failures.insert(0, last);
}

/// For an interrupt of one of several runs that belong together, adds the command to finish all of them.
pub(crate) fn interrupted(failure: Failure, files: &[PathBuf]) -> Failure {
    match failure {
        Failure::Told(error) if error.kind() == Kind::Interrupted => {
            let folder = folder_of_all(files);
            let runs: Vec<(RunRecord, Cow<'_, str>)> = files
                .iter()
                .filter_map(|file| {
                    let named = folder.unwrap_or(file).to_string_lossy();
                    Some((iolab_runfile::read(file).ok()?, named))
                })
                .collect();
            let what = match files {
                [_] => "it",
                _ => "the runs",
            };
            Failure::Told(
                match command_to_finish(runs.iter().map(|(run, file)| (run, file.as_ref()))) {
                    Some(command) => error.hint(format!("finish {what} with: {command}")),
                    None => error,
                },
            )
        }
        other => other,
    }
}

/// The folder of these files, if they are several and include all runs in it that can be finished.
fn folder_of_all(files: &[PathBuf]) -> Option<&Path> {
    let [first, _, ..] = files else { return None };
    let folder = first
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())?;
    let of_folder = unfinished(folder).ok()?;
    let is_all = of_folder.iter().all(|(file, _)| files.contains(file));
    (is_all && of_folder.len() == files.len()).then_some(folder)
}

/// The runs in a folder that are not complete, in the order of their names, with their kind of target. Files that cannot be read
/// are named to the user.
pub(crate) fn unfinished(folder: &Path) -> Result<Vec<(PathBuf, TargetKind)>> {
    let mut open = Vec::new();
    for path in files_of_folder(folder)? {
        match iolab_runfile::read_content(&path) {
            Ok(Content::Run(record)) if record.run.status != RunStatus::Done => {
                open.push((path, record.run.target_kind));
            }
            Ok(Content::Run(_) | Content::Observation(_)) => {}
            Err(error) => note(format_args!("note: left out: {error}")),
        }
    }
    Ok(open)
}

/// Adds the file with the measurements of an unfinished run.
pub(crate) fn with_kept(failure: Failure, path: Option<&Path>) -> Failure {
    let Some(path) = path else { return failure };
    let place = path.display();
    match iolab_runfile::read(path) {
        Ok(record) => {
            let log = iolab_runfile::log_beside(path).filter(|_| !record.samples.is_empty());
            match (record.samples.len() as u64, log) {
                (0, _) => failure.also("no trial was completed"),
                (trials, None) => {
                    failure.also(format_args!("{} kept in {place}", counted(trials, "trial")))
                }
                (trials, Some(log)) => failure.also(format_args!(
                    "{} kept in {place} and {}, which belong together; once there is room, merge them: {}",
                    counted(trials, "trial"),
                    log.display(),
                    command_to_merge(&record, path)
                )),
            }
        }
        Err(error) => failure.also(format_args!(
            "trials are in the run file {place}, as far as they could be written; it cannot be read now: {}",
            error.message()
        )),
    }
}

/// The command that merges the log next to a run file into it, and finishes the run if it is incomplete.
fn command_to_merge(record: &RunRecord, path: &Path) -> String {
    let file = path.to_string_lossy();
    let finishes = match record.run.status {
        RunStatus::Done => None,
        RunStatus::Running | RunStatus::Interrupted | RunStatus::Failed => {
            command_to_finish([(record, file.as_ref())])
        }
    };
    finishes.unwrap_or_else(|| format!("iolab resume {}", shell_word(&file)))
}
