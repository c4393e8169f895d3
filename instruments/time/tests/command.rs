//! `time`: its answer, and how it ends. The session `time` has what surrounds the runs, and failures.

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
    let done = run(folder, &[&line[..], &["sleep 0.02", "sleep 0.3"]].concat()).expect(4);
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
fn an_interrupt_kills_the_command_and_cleans_up() {
    let folder = folder();
    let made = std::process::Command::new("mkfifo")
        .arg("fifo")
        .current_dir(folder.path())
        .status();
    assert!(made.unwrap().success());
    let command = "echo $$ > fifo; exec sleep 1000";
    let child = iolab(folder.path(), &["time", command, "--cleanup", "exit 7"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = fs::read_to_string(folder.path().join("fifo")).unwrap();
    signal(&child, Signal::INT);
    let done = Done::from(child.wait_with_output().unwrap()).expect(130);
    assert!(done.stderr.contains("--cleanup: "), "{}", done.stderr);
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid}");
}
