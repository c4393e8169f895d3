//! Reading and analysing the run files that a command is given.

use std::io::Write;
use std::path::{Path, PathBuf};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::fitness::Answer;
use iolab_analysis::runs::FiledRun;
use iolab_record::RunRecord;
use iolab_report::answer::Answers;
use iolab_report::overview::Input;
use iolab_workload::group::ALL;
use iolab_workload::response::Metric;
use iolab_workload::{Error, Result};

use crate::Lists;
use crate::failure::Outcome;
use crate::output::{self, Results};

/// The run files of a folder, in the order of their names; without hidden ones, as of a run that begins.
pub fn files_of_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        Error::usage(format!(
            "cannot read the folder {}: {error}",
            folder.display()
        ))
        .hint("name a folder with run files (*.iolab)")
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden
            && path
                .extension()
                .is_some_and(|extension| extension == "iolab")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads and analyses a run file.
pub fn read_run(path: &Path) -> Result<AnalysedRun> {
    read_run_by(path, None)
}

/// Reads and analyses a run file by another quantity than the response of its experiment.
pub fn read_run_by(path: &Path, metric: Option<&Metric>) -> Result<AnalysedRun> {
    analysed(iolab_runfile::read(path)?, path, metric)
}

/// Leaves out runs that an earlier file holds already, with a note to the user.
pub fn without_copies(records: Vec<(&Path, RunRecord)>) -> Vec<(&Path, RunRecord)> {
    let mut kept: Vec<(&Path, RunRecord)> = Vec::new();
    for (path, record) in records {
        match kept.iter().find(|(_, known)| known.is_same_run(&record)) {
            Some((known, _)) if *known == path => output::note(format_args!(
                "note: {} was given twice; it is shown once",
                path.display()
            )),
            Some((known, _)) => output::note(format_args!(
                "note: {} holds the same run as {}; it is shown once",
                path.display(),
                known.display()
            )),
            None => kept.push((path, record)),
        }
    }
    kept
}

/// The record of a run file, analysed.
pub fn analysed(record: RunRecord, path: &Path, metric: Option<&Metric>) -> Result<AnalysedRun> {
    let named = metric.and_then(|metric| metric.group.as_deref());
    let has = |name: &str| {
        record
            .cells
            .iter()
            .any(|cell| cell.spec.number_of(Some(name)).is_some())
    };
    if let Some(name) = named.filter(|name| *name != ALL && !has(name)) {
        return Err(
            Error::usage(format!("there is no group '{name}' in {}", path.display()))
                .hint("iolab table shows the groups of a run"),
        );
    }
    let run = AnalysedRun::by(record, metric);
    match run.record().experiment.asked {
        None => Ok(run),
        Some(_) => run.answered(iolab_runfile::read_latency(path)?),
    }
}

/// A run and the name of its file.
pub type NamedRun = (String, AnalysedRun);

/// The runs of files, each with the name of its file.
///
/// # Errors
/// A file cannot be read, or has no group of this name.
pub fn named_runs(paths: &[PathBuf], metric: Option<&Metric>) -> Result<Vec<NamedRun>> {
    let run = |path: &PathBuf| Ok((path.display().to_string(), read_run_by(path, metric)?));
    paths.iter().map(run).collect()
}

/// The named files, with the run files of a folder in place of the folder.
///
/// # Errors
/// A folder cannot be read, or has none.
pub fn files_of(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = files_of_folder(path)?;
        if found.is_empty() {
            return Err(no_run_file(path));
        }
        files.extend(found);
    }
    Ok(files)
}

/// A folder holds no run file.
fn no_run_file(folder: &Path) -> Error {
    Error::usage(format!("no run file (*.iolab) in {}", folder.display()))
        .hint("iolab study and iolab run keep theirs in iolab-results, or where -o says")
}

/// All runs of a folder. Leaves out files that cannot be read, with a note to the user.
pub fn runs_of_folder(folder: &Path, metric: Option<&Metric>) -> Result<Vec<NamedRun>> {
    let mut runs = Vec::new();
    for path in files_of_folder(folder)? {
        match read_run_by(&path, metric) {
            Ok(run) => runs.push((path.display().to_string(), run)),
            Err(error) => output::note(format_args!("note: left out: {error}")),
        }
    }
    Ok(runs)
}

/// The runs as comparisons take them.
pub fn filed(runs: &[NamedRun]) -> Vec<FiledRun<'_>> {
    runs.iter()
        .map(|(file, run)| FiledRun { file, run })
        .collect()
}

/// The answers of runs, given with the names of their files.
pub fn answers<'a>(
    runs: impl IntoIterator<Item = (&'a Path, &'a AnalysedRun)>,
    lists: &Lists,
) -> Answers {
    let named = runs.into_iter();
    let named = named.map(|(path, run)| (path.display().to_string(), run));
    Answers::of(named, &lists.answers)
}

/// Prints the answers of runs, then the results of runs without an answer; `full` prints all results of all of them.
pub fn show(
    files: &[PathBuf],
    full: bool,
    lists: &Lists,
    to: &mut Results,
) -> Outcome<Option<Answer>> {
    let read = |path: &PathBuf| Ok(Input::new(path.clone(), read_run(path)?));
    let mut inputs = files.iter().map(read).collect::<Result<Vec<Input>>>()?;
    let answers = answers(
        inputs
            .iter()
            .map(|input| (input.path.as_path(), &input.run)),
        lists,
    );
    let answer = answers.answer();
    write!(to, "{}", answers.screen(output::style().width))?;
    if answer.is_some() && full {
        writeln!(to)?;
    }
    inputs.retain(|input| full || input.run.answer().is_none());
    output::runs(&inputs, full, to)?;
    to.flush()?;
    Ok(answer)
}
