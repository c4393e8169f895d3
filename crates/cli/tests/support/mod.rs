//! Runs the binary in a temporary folder on a real file system.

#![allow(dead_code, reason = "each test crate uses its share")]

pub(crate) mod json_schema;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use needs::Need;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use words::words;

/// Options for a run that takes a moment.
pub(crate) const TINY: [&str; 12] =
    words!("--set bs=4k,64k --size 4MiB --time 10ms --budget 1s --seed 7 --set trials_max=6");

/// The folder of each room by its name: of the crates of the core, then of instruments.
pub(crate) fn rooms() -> BTreeMap<String, PathBuf> {
    let folders = ["crates", "instruments"].map(|folder| root().join(folder));
    let entries = folders
        .iter()
        .flat_map(|all| std::fs::read_dir(all).expect("a folder"));
    let named = entries.map(|entry| {
        let entry = entry.expect("an entry");
        (
            entry.file_name().into_string().expect("UTF-8"),
            entry.path(),
        )
    });
    named.collect()
}

/// The files below a folder whose names have one of these endings; all without any.
pub(crate) fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{folder:?}: {e}"));
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            match path.extension().and_then(|ending| ending.to_str()) {
                _ if path.is_dir() => folders.push(path),
                ending
                    if endings.is_empty() || ending.is_some_and(|one| endings.contains(&one)) =>
                {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found
}

/// Everything reachable from one node.
pub(crate) fn reached<T: Ord + Clone>(arrows: &BTreeMap<T, BTreeSet<T>>, from: &T) -> BTreeSet<T> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(one) = open.pop() {
        for next in &arrows[one] {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

/// Bytes that look random.
pub(crate) fn incompressible(bytes: usize) -> Vec<u8> {
    let (mut all, mut state) = (vec![0; bytes], 1u64);
    for word in all.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_ne_bytes());
    }
    all
}

/// The top folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A temporary folder, removed at the end of the test.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder for the test")
}

/// A temporary folder in memory, on a tmpfs.
#[track_caller]
pub(crate) fn folder_in_memory() -> Option<TempDir> {
    let is_tmpfs = |folder: &TempDir| {
        rustix::fs::statfs(folder.path()).is_ok_and(|stat| stat.f_type == 0x0102_1994)
    };
    let made = tempfile::tempdir_in("/dev/shm").ok().filter(is_tmpfs);
    if made.is_none() {
        needs::skip(Need::Shm, "no folder on a tmpfs can be made");
    }
    made
}

/// The binary, started in a folder, without the parts of the environment that change its output. `IOLAB_READER`
/// names another binary for reading results: a build for another system, after the program that runs it, with
/// spaces between the words.
pub(crate) fn iolab(folder: &Path, arguments: &[&str]) -> Command {
    let reader = std::env::var("IOLAB_READER").unwrap_or_default();
    let mut words = reader.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(env!("CARGO_BIN_EXE_iolab")));
    command.args(words);
    command
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .env("COLUMNS", "100")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm");
    command
}

/// The exit code and output of a run of the binary.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let Done { stdout, stderr, .. } = &self;
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{stdout}\nstderr:\n{stderr}"
        );
        assert!(!stderr.contains("panicked"), "{stderr}");
        self
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// The error at the end of stderr, for a snapshot. The path of the folder, random names of scratch files, and
/// the number of kept trials, which depends on the machine, are replaced.
#[track_caller]
pub(crate) fn error_of(done: &Done, folder: &Path) -> String {
    let (_, told) = done.stderr.split_once("error: ").expect("an error");
    let is_sure = |line: &&str| !line.contains(" kept in ");
    let told: Vec<&str> = told.lines().filter(is_sure).collect();
    let path = folder.canonicalize().expect("it is there");
    without_random_names(&told.join("\n").replace(&path.display().to_string(), "DIR"))
}

/// A text without the random part of names of scratch files.
pub(crate) fn without_random_names(text: &str) -> String {
    let mut parts = text.split(".iolab-scratch-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, rest| {
        text + ".iolab-scratch-NAME" + rest.trim_start_matches(|c: char| c.is_ascii_hexdigit())
    })
}

/// Runs a line in a shell, with the binary in the path.
pub(crate) fn shell(folder: &Path, line: &str) -> Done {
    let binary = Path::new(env!("CARGO_BIN_EXE_iolab"));
    let paths = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{paths}", binary.parent().expect("a folder").display());
    let mut command = Command::new("bash");
    // The script of docs/COOKBOOK.md has a folder as its argument, and two variables.
    command
        .args(["-c", line, "script", "disk"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .envs([
            ("PATH", path.as_str()),
            ("new", "script.iolab"),
            ("history", "runs"),
        ])
        .envs([("COLUMNS", "100"), ("LC_ALL", "C.UTF-8"), ("TERM", "xterm")])
        .env("GITHUB_STEP_SUMMARY", "summary.md")
        .env("HOME", folder);
    command.output().expect("bash starts").into()
}

/// Fails if a terminal could take a part of a text as a command.
#[track_caller]
pub(crate) fn assert_harmless(text: &str, what: &str) {
    let steers = |c: char| iolab_workload::escape_control::steers(c) && c != '\n' && c != '\t';
    let found = text.find(steers);
    assert!(found.is_none(), "{what}: {:?}", found.map(|at| &text[at..]));
}

#[track_caller]
pub(crate) fn assert_harmless_output(done: &Done, what: &str) {
    assert_harmless(&done.stdout, what);
    assert_harmless(&done.stderr, what);
}

/// Runs the binary to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Done {
    iolab(folder, arguments)
        .output()
        .expect("the binary starts")
        .into()
}

/// Runs an experiment in a moment, with further arguments.
pub(crate) fn run_tiny(folder: &Path, experiment: &str, more: &[&str]) -> Done {
    let arguments = [&["run", experiment], more, &TINY[..]].concat();
    run(folder, &arguments)
}

/// Puts finished runs of the experiment read-size into a folder, under these names. At most three runs are
/// measured, once for all tests of a program.
pub(crate) fn with_runs(folder: &Path, names: &[&str]) {
    static RUNS: [LazyLock<Vec<u8>>; 3] = [const { LazyLock::new(measured) }; 3];
    for (name, run) in names.iter().zip(&RUNS) {
        std::fs::write(folder.join(name), &**run).expect("a run file");
    }
    assert!(names.len() <= RUNS.len());
}

fn measured() -> Vec<u8> {
    let place = folder();
    run_tiny(place.path(), "read-size", &["-o", "r.iolab"]).expect(0);
    std::fs::read(place.path().join("r.iolab")).expect("a run file")
}

/// Names of all entries of a folder, sorted.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The run files below `iolab-results`, sorted.
pub(crate) fn run_files(folder: &Path) -> Vec<PathBuf> {
    let results = folder.join("iolab-results");
    entries(&results)
        .into_iter()
        .filter(|name| name.ends_with(".iolab"))
        .map(|name| results.join(name))
        .collect()
}

/// Number of samples in a run file, which may be incomplete.
pub(crate) fn sample_count(file: &Path) -> Option<i64> {
    let record = iolab_runfile::read(file).ok()?;
    Some(record.samples.len() as i64)
}

/// Status of a run, as its file has it: `running`, `done`, `interrupted` or `failed`.
#[track_caller]
pub(crate) fn status(file: &Path) -> String {
    let record = iolab_runfile::read(file).expect("a run file");
    record.run.status.name().to_owned()
}

/// Waits until a run file has this many samples.
#[track_caller]
pub(crate) fn wait_for_samples(file: &Path, count: i64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while sample_count(file).is_none_or(|n| n < count) {
        assert!(
            Instant::now() < deadline,
            "no {count} samples within a minute"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a worker of a trial reads data. Reads of /proc before, and those that warm the cache, have far
/// fewer bytes.
pub(crate) fn wait_for_reads(process: u32) {
    const DATA: u64 = 32 << 20;
    let reads = |task: std::fs::DirEntry| {
        let text = |name: &str| std::fs::read_to_string(task.path().join(name)).ok();
        let is_worker = text("comm")?.starts_with("iolab-");
        let bytes = text("io")?
            .lines()
            .next()?
            .strip_prefix("rchar: ")?
            .parse()
            .ok();
        bytes.filter(|bytes: &u64| is_worker && *bytes > DATA)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        if tasks.flatten().find_map(reads).is_some() {
            return;
        }
        assert!(Instant::now() < deadline, "no worker reads within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The rows of `export --format json`.
pub(crate) fn exported(folder: &Path, file: &str) -> Vec<serde_json::Value> {
    let done = run(folder, &["export", file, "--format", "json"]).expect(0);
    let rows: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    rows.as_array().expect("an array").clone()
}

/// Starts a run on a folder `data`, which it makes, and waits until its file `r.iolab` has this many samples.
pub(crate) fn started(folder: &Path, arguments: &[&str], samples: i64) -> Child {
    std::fs::create_dir(folder.join("data")).expect("a folder for the target");
    measuring(iolab(folder, arguments), &folder.join("r.iolab"), samples)
}

/// Starts a command, and waits until a run file has this many samples.
pub(crate) fn measuring(mut command: Command, file: &Path, samples: i64) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary starts");
    wait_for_samples(file, samples);
    child
}

/// Interrupts a command once a run file has this many samples.
pub(crate) fn interrupted(command: Command, file: &Path, samples: i64) -> Done {
    let child = measuring(command, file, samples);
    signal(&child, Signal::INT);
    Done::from(child.wait_with_output().expect("it ends")).expect(130)
}

/// Sends a signal to a child that has not been waited for, whether it still runs or not.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it can be signalled");
}

/// Finishes a run with these options: each of `samples` trials is there once, and targets are left empty.
pub(crate) fn resumed_is_whole(folder: &Path, options: &[&str], samples: i64, targets: &[PathBuf]) {
    run(folder, &[&["resume", "r.iolab"], options].concat()).expect(0);
    let rows = exported(folder, "r.iolab");
    assert_eq!(rows.len() as i64, samples);
    let place = |row: &serde_json::Value| (row["cell"].as_u64(), row["block"].as_u64());
    let places: HashSet<_> = rows.iter().map(place).collect();
    assert_eq!(places.len() as i64, samples, "no trial is made twice");
    for target in targets {
        assert_eq!(entries(target), [""; 0], "a scratch file is left");
    }
    run(folder, &["table", "r.iolab"]).expect(0);
    assert_eq!(status(&folder.join("r.iolab")), "done");
}
