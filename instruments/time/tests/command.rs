//! `time`: its answer, what surrounds the runs, and how it ends.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::words::words;
use crate::support::{Done, entries, exported, folder, iolab, run, signal};

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn a_slower_command_is_named_first() {
    let folder = folder();
    let folder = folder.path();
    let line =
        words!("time --runs 12 -n short -n long --fail-if-slower -o t.iolab --export-json t.json");
    let done = run(folder, &[&line[..], &["sleep 0.02", "sleep 0.1"]].concat()).expect(4);
    assert!(done.stdout.starts_with("long is "), "{}", done.stdout);
    assert!(
        done.stdout.contains("× slower than short ("),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("The start-up of sh, "),
        "{}",
        done.stdout
    );
    assert!(done.stdout.lines().count() <= 24, "{}", done.stdout);
    assert_eq!(entries(folder), ["t.iolab", "t.json"]);
    let results = &json(folder, "t.json")["results"];
    for (place, name) in ["short", "long"].iter().enumerate() {
        let own = &results[place];
        assert_eq!(own["command"], *name);
        assert_eq!(own["times"].as_array().unwrap().len(), 12);
        assert_eq!(own["exit_codes"], serde_json::json!(vec![0; 12]));
        for key in ["mean", "stddev", "median", "user", "system", "min", "max"] {
            assert!(own[key].is_f64(), "{key}: {own}");
        }
    }
    // The run file is one of all others.
    let rows = exported(folder, "t.iolab");
    assert_eq!(rows.len(), 2 * 13);
    assert_eq!(rows[0]["target_kind"], "commands");
    run(folder, &words!("report t.iolab -o t.md")).expect(0);
    run(folder, &words!("compare t.iolab t.iolab")).expect(0);
    run(folder, &words!("history .")).expect(0);
}

#[test]
fn commands_around_runs_have_their_places() {
    let folder = folder();
    let line = words!("time --runs 2 --warmup 2 -L n a,b --export-json t.json");
    let around = [
        "--setup", "echo setup {n} >> log", "--prepare", "echo prepare {n} >> log", "--cleanup",
        "echo cleanup {n} >> log", "echo run {n} >> log",
    ];
    let done = run(folder.path(), &[&line[..], &around].concat());
    assert!(matches!(done.code, Some(0 | 5)), "{}", done.stderr);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    for name in ["a", "b"] {
        let own: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_suffix(name)?.strip_suffix(' '))
            .collect();
        let runs = ["prepare", "run"].repeat(4);
        assert_eq!(own, [&["setup"], &runs[..], &["cleanup"]].concat(), "{log}");
    }
    let results = &json(folder.path(), "t.json")["results"];
    assert_eq!(results[1]["parameters"]["n"], "b");
}

#[test]
fn a_failed_command_is_named_with_its_words() {
    let folder = folder();
    let commands = words!("time --runs 2 --seed 1");
    let commands = [&commands[..], &["echo it broke >&2; exit 9", "exit 8"]].concat();
    let done = run(folder.path(), &commands).expect(1);
    insta::assert_snapshot!(done.stderr.trim_end(), @"
    error: 'echo it broke >&2; exit 9' ended with exit code 9; it wrote: it broke
      run it by hand to see more; -i counts runs that fail
    ");
    let done = run(
        folder.path(),
        &[&commands[..], &["-i", "--export-json", "t.json"]].concat(),
    );
    assert!(matches!(done.code, Some(0 | 5)), "{}", done.stderr);
    let codes =
        |place: usize| json(folder.path(), "t.json")["results"][place]["exit_codes"].clone();
    assert_eq!((codes(0), codes(1)), (vec![9, 9].into(), vec![8, 8].into()));
}

#[test]
fn an_interrupt_kills_the_command() {
    let folder = folder();
    let made = std::process::Command::new("mkfifo")
        .arg("fifo")
        .current_dir(folder.path())
        .status();
    assert!(made.unwrap().success());
    let child = iolab(folder.path(), &["time", "echo $$ > fifo; exec sleep 1000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = fs::read_to_string(folder.path().join("fifo")).unwrap();
    signal(&child, Signal::INT);
    Done::from(child.wait_with_output().unwrap()).expect(130);
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid}");
}
