//! Runs that end at arbitrary moments: whatever was measured is in the run file, nothing else is left for long, and
//! the plan can be finished. `interrupt.rs` has the moments that are chosen.

#![allow(clippy::print_stderr, reason = "what happened is part of the result")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::Signal;

use crate::support::{
    self, Done, entries, exported, folder, iolab, resumed_is_whole, run, run_files, sample_count,
    status,
};

/// Two cells with a warm-up and four trials each.
const SAMPLES: i64 = 10;
const FILE: &str = "r.iolab";
const RUN: [&str; 18] = [
    "run", "read-size", "data", "-o", FILE, "--set", "bs=4k,64k", "--set", "trials_min=4", "--set",
    "trials_max=4", "--size", "1MiB", "--time", "20ms", "--budget", "60s", "--buffered",
];

/// A number below a limit that looks random, and is the same each time (SplitMix64).
fn below(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % limit
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = iolab(folder, arguments);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

/// Ends a process after a while; how it went, and the samples that were there just before.
fn ended(folder: &Path, arguments: &[&str], after: Duration, signal: Signal) -> (ExitStatus, i64) {
    let child = start(folder, arguments);
    std::thread::sleep(after);
    let before = sample_count(&folder.join(FILE)).unwrap_or(0);
    support::signal(&child, signal);
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("panicked"), "{told}");
    (output.status, before)
}

/// A signal that can be caught ends the run cleanly: at once when nothing was prepared yet, else with code 130. Beside
/// the target it leaves nothing but what lay there before: a run that was killed earlier, when the signal came first.
fn is_clean(folder: &Path, status: ExitStatus, signal: Signal, before: &[String]) {
    let clean = match status.code() {
        Some(code) => code == 0 || code == 130,
        None => status.signal() == Some(signal.as_raw()),
    };
    assert!(clean, "{status} after {signal:?}");
    if signal != Signal::KILL {
        let mut own = entries(&folder.join("data"));
        own.retain(|name| !before.contains(name));
        assert_eq!(own, [""; 0], "after {signal:?}");
    }
}

/// Whatever the moment was, the file tells of whole samples only, and of each that was there before.
fn is_consistent(folder: &Path, before: i64) {
    if !folder.join(FILE).exists() {
        return assert_eq!(before, 0);
    }
    run(folder, &["table", FILE]).expect(0);
    let rows = exported(folder, FILE).len() as i64;
    assert!(rows >= before, "{rows} of {before}");
    let file = Connection::open(folder.join(FILE)).expect("it opens");
    let count = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).expect(sql) };
    assert_eq!(count("SELECT count(*) FROM sample"), rows);
    let halves = "SELECT count(*) FROM sample WHERE ok AND read_requests > 0
        AND id NOT IN (SELECT sample_id FROM latency WHERE operation = 'read')";
    assert_eq!(count(halves), 0, "samples without their latencies");
    let strays = "SELECT count(*) FROM latency WHERE sample_id NOT IN (SELECT id FROM sample)";
    assert_eq!(count(strays), 0, "latencies without their samples");
}

/// Runs in a folder of its own are ended at random moments, and then finished.
fn survives(seed: &mut u64, whole: Duration) {
    let folder = folder();
    let folder = folder.path();
    let data = folder.join("data");
    fs::create_dir(&data).expect("made");
    let mut arguments = RUN.to_vec();
    // In half of the cases the resume is interrupted too.
    for _ in 0..1 + below(seed, 2) {
        let signal = [Signal::INT, Signal::TERM, Signal::KILL][below(seed, 3) as usize];
        let after = Duration::from_micros(below(seed, whole.as_micros() as u64 + 1));
        eprintln!("{} with {signal:?} after {after:?}", arguments[0]);
        let there = entries(&data);
        let (status, before) = ended(folder, &arguments, after, signal);
        is_clean(folder, status, signal, &there);
        is_consistent(folder, before);
        if folder.join(FILE).exists() {
            arguments = vec!["resume", FILE];
        }
    }
    let file = folder.join(FILE);
    let was_done = file.exists() && status(&file) == "done";
    if !file.exists() {
        run(folder, &RUN).expect(0);
    }
    // A complete run is not resumed, so that the next run removes what was left.
    if was_done && !entries(&data).is_empty() {
        let mut again = RUN;
        again[4] = "next.iolab";
        run(folder, &again).expect(0);
    }
    resumed_is_whole(folder, &[], SAMPLES, &[data]);
    let mut left = entries(folder);
    left.retain(|name| name != "next.iolab");
    assert_eq!(left, ["data", FILE]);
}

/// `IOLAB_MOMENTS` is the number of moments.
#[test]
fn a_run_survives_random_moments() {
    let whole = {
        let folder = folder();
        fs::create_dir(folder.path().join("data")).expect("made");
        let began = Instant::now();
        run(folder.path(), &RUN).expect(0);
        began.elapsed()
    };
    let count = std::env::var("IOLAB_MOMENTS").map_or(3, |count| count.parse().expect("a number"));
    for mut seed in 1..=count {
        eprintln!("moment {seed}");
        survives(&mut seed, whole);
    }
}

#[test]
fn simultaneous_runs_do_not_disturb_each_other() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("data")).expect("made");
    let mut arguments = RUN.to_vec();
    arguments.drain(3..5);
    let runs: Vec<Child> = (0..3).map(|_| start(folder, &arguments)).collect();
    for run in runs {
        Done::from(run.wait_with_output().expect("it ends")).expect(0);
    }
    let files = run_files(folder);
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(sample_count(&file), Some(SAMPLES));
    }
    assert_eq!(entries(&folder.join("data")), [""; 0]);
}
