//! fio's own example job files, where installed: those that iolab reads, and the options that stop it in the
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iolab_truth::binary::binary;
use needs::Need;

/// A row for each example: its name, and `read` or the options that stop iolab. The files themselves are not
/// included, because fio has another licence than iolab.
const OUTCOMES: &str = include_str!("fio_examples.txt");
/// Environment variable with a folder of another version's examples.
const VARIABLE: &str = "IOLAB_FIO_EXAMPLES";
const INSTALLED: &str = "/usr/share/doc/fio/examples";

/// Options at the lines that stop iolab; empty if it reads the file.
type Stopped = BTreeSet<String>;

fn expected() -> BTreeMap<&'static str, Stopped> {
    let rows = OUTCOMES.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split_once(' ').expect("a name and an outcome"));
    let options = |text: &str| match text {
        "read" => Stopped::new(),
        _ => text.split(' ').map(str::to_owned).collect(),
    };
    rows.map(|(name, text)| (name, options(text))).collect()
}

/// Job files of the folder in the variable, or of the installed one; `None` if that has none.
///
/// # Panics
/// The folder in the variable has none: a skip was not requested.
fn examples() -> Option<Vec<PathBuf>> {
    let Some(named) = std::env::var_os(VARIABLE) else {
        return jobs(Path::new(INSTALLED));
    };
    let jobs = jobs(Path::new(&named));
    assert!(jobs.is_some(), "{VARIABLE}: no job files in {named:?}");
    jobs
}

/// Job files of a folder, sorted; `None` if it has none.
fn jobs(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.map(|entry| entry.expect("a file of the folder").path());
    let mut jobs: Vec<PathBuf> = paths
        .filter(|path| path.extension() == Some(OsStr::new("fio")))
        .collect();
    jobs.sort();
    (!jobs.is_empty()).then_some(jobs)
}

/// Options that stop iolab in a job file.
fn stopped(job: &Path, target: &Path) -> Stopped {
    let mut command = Command::new(binary());
    // An example may need variables, which have to be missing everywhere.
    command.env_clear().arg("run").args([job, target]);
    let done = command.arg("--dry-run").output().expect("iolab starts");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    let text = String::from_utf8_lossy(&fs::read(job).expect("a job file")).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let option = |number: &str| {
        let number: usize = number.parse().ok()?;
        let line = lines.get(number.checked_sub(1)?)?;
        Some(line.split('=').next()?.trim().to_owned())
    };
    let numbers = told.split("line ").skip(1);
    let numbers = numbers.filter_map(|rest| rest.split(':').next());
    let found: Stopped = numbers.filter_map(option).collect();
    match done.status.code() {
        // The file is read, whether or not its files fit here.
        Some(0 | 3) => assert!(found.is_empty(), "{}: {told}", job.display()),
        Some(2) => assert!(!found.is_empty(), "{}: {told}", job.display()),
        code => panic!("{}: exit code {code:?}: {told}", job.display()),
    }
    found
}

#[test]
fn each_example_is_read_or_stopped_as_listed() {
    let Some(jobs) = examples() else {
        return needs::skip(Need::FioExamples, INSTALLED);
    };
    let target = tempfile::tempdir().expect("a folder");
    let expected = expected();
    let (mut read, mut unlisted, mut other) = (0, Vec::new(), Vec::new());
    for job in &jobs {
        let name = job.file_stem().and_then(OsStr::to_str).expect("a name");
        let found = stopped(job, target.path());
        read += u32::from(found.is_empty());
        match expected.get(name) {
            None => unlisted.push(name),
            Some(listed) if *listed != found => other.push((name, found)),
            Some(_) => {}
        }
    }
    println!(
        "iolab reads {read} of {} examples of fio; not listed: {unlisted:?}",
        jobs.len()
    );
    assert!(other.is_empty(), "{other:#?}");
    assert_eq!(fs::read_dir(target.path()).expect("a folder").count(), 0);
}
