//! Ends of commands that measure.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use iolab_analysis::consent::command_to_finish;
use iolab_analysis::fitness::Answer;
use iolab_record::{RunRecord, RunStatus, TargetKind};
use iolab_runfile::Content;
use iolab_workload::escape_control::shell_word;
use iolab_workload::quantity::counted;
use iolab_workload::{Error, Kind};

use iolab_command::exit::tell;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output::note;
use iolab_command::run_files::files_of_folder;

/// Prints an error and ends the process, whose other threads may wait in the kernel.
pub(crate) fn at_once(error: Error) {
    tell(&error);
    std::process::exit(1);
}

/// The exit code of an answer.
pub(crate) fn answered(answer: Answer) -> Outcome {
    match answer {
        Answer::Yes => Ok(()),
        Answer::No => Err(Failure::No),
        Answer::CannotTell => Err(Failure::CannotTell),
    }
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
    let is_all = files.iter().all(|file| of_folder.contains(file));
    (is_all && of_folder.len() == files.len()).then_some(folder)
}

/// The runs in a folder that can be finished, in the order of their names. Files that cannot be read are named to the user.
pub(crate) fn unfinished(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut open = Vec::new();
    for path in files_of_folder(folder)? {
        match iolab_runfile::read_content(&path) {
            Ok(Content::Run(record)) => {
                let is_model = record.run.target_kind == TargetKind::Model;
                if record.run.status != RunStatus::Done && !is_model {
                    open.push(path);
                }
            }
            Ok(Content::Witness(_)) => {}
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
