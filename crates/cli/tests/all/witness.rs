//! `iolab witness`: a program runs as it would alone, and the evidence is that of all that it starts.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::json_schema::assert_as_described;
use crate::support::words::words;
use crate::support::{Done, folder, iolab, run, signal};

const SIZE: u64 = 8 << 20;

fn with_data(folder: &Path) {
    std::fs::write(folder.join("data"), vec![7; SIZE as usize]).unwrap();
}

/// The evidence for a command, as data.
fn evidence(folder: &Path, arguments: &[&str]) -> Value {
    let file = folder.join("e.json");
    let all = [&["witness", "-o", "e.json"], arguments].concat();
    run(folder, &all).expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn number(evidence: &Value, pointer: &str) -> u64 {
    evidence.pointer(pointer).and_then(Value::as_u64).unwrap()
}

/// Whether the kernel keeps accounts of I/O.
fn has_account(evidence: &Value) -> bool {
    let has = !evidence["processes"]["rchar"].is_null();
    if !has {
        needs::skip(
            needs::Need::IoAccount,
            "that of this process cannot be read",
        );
    }
    has
}

#[test]
fn streams_and_exit_code_are_those_of_the_program() {
    let folder = folder();
    let script = "echo out; echo err >&2; exit 7";
    let done = run(folder.path(), &["witness", "--", "sh", "-c", script]).expect(7);
    assert_eq!(done.stdout, "out\n");
    assert!(done.stderr.starts_with("err\nsh: "), "{}", done.stderr);
    assert!(done.stderr.contains("exit code 7"), "{}", done.stderr);
    let missing = run(folder.path(), &words!("witness -- no-such-program")).expect(2);
    assert_eq!(missing.stdout, "");
}

#[test]
fn iolab_ends_by_the_signal_of_the_program() {
    let folder = folder();
    let mut command = iolab(
        folder.path(),
        &["witness", "--", "sh", "-c", "kill -TERM $$"],
    );
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), Some(15), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("ended by signal 15"));
}

#[test]
fn a_signal_is_passed_on_and_the_evidence_is_told() {
    let folder = folder();
    let script = "trap 'exit 9' USR1; echo ready; while :; do read line; done";
    let mut child = iolab(folder.path(), &["witness", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut first).unwrap();
    assert_eq!(first, "ready\n");
    signal(&child, Signal::USR1);
    let done = Done::from(child.wait_with_output().unwrap()).expect(9);
    assert!(done.stderr.contains("exit code 9"), "{}", done.stderr);
}

#[test]
fn what_a_program_reads_is_counted_and_judged() {
    let folder = folder();
    with_data(folder.path());
    let line = words!("--on data -- dd if=data of=/dev/null bs=1M status=none");
    let evidence = evidence(folder.path(), &line);
    assert_as_described(folder.path(), "witness", &evidence);
    assert_eq!(evidence["exit_code"], 0);
    if !has_account(&evidence) {
        return;
    }
    let read = number(&evidence, "/processes/rchar");
    assert!((SIZE..SIZE + 65_536).contains(&read), "{read}");
    // The file was written a moment ago, so that the page cache has most of it; under pressure the kernel drops some. In memory there
    // is no storage, and some file systems do not tell.
    let served = evidence["reads"]["served_by"].as_str().unwrap();
    let moved = number(&evidence, "/reads/moved_bytes");
    match served {
        "page-cache" => assert!(moved <= SIZE / 10, "{evidence:#}"),
        "mixed" | "device" => assert!(moved >= SIZE / 100, "{evidence:#}"),
        other => assert!(["not-storage", "unknown"].contains(&other), "{evidence:#}"),
    }
}

#[test]
fn what_outlives_the_program_is_counted_to_its_end() {
    let folder = folder();
    with_data(folder.path());
    // The inner shell has left its parent before it starts to read.
    let script = "(sh -c 'read go < go; cat data > /dev/null' & ) ; (sh -c 'echo go > go' &)";
    let made = std::process::Command::new("mkfifo")
        .arg("go")
        .current_dir(folder.path())
        .status();
    assert!(made.unwrap().success());
    let evidence = evidence(folder.path(), &["--", "sh", "-c", script]);
    if has_account(&evidence) {
        let read = number(&evidence, "/processes/rchar");
        assert!(read >= SIZE, "{read}");
        assert_eq!(number(&evidence, "/processes/running"), 0);
    }
}

/// The program waits until its observer has closed what it deleted; its last file it deletes just before it ends.
#[test]
fn a_file_that_the_program_deletes_is_not_kept_open() {
    let folder = folder();
    let script = "exec 3>gone; dd if=/dev/zero bs=1M count=8 status=none >&3; rm gone; exec 3>&-
        n=0; while ls -l /proc/$PPID/fd | grep -q 'gone (deleted)'; do n=$((n+1)); [ $n -lt 2000 ] || exit 1; done
        dd if=/dev/zero of=last bs=1M count=8 status=none; rm last";
    let evidence = evidence(folder.path(), &["--", "sh", "-c", script]);
    assert!(evidence["owed_bytes"].as_u64().unwrap_or(0) < 1 << 20);
    let files = evidence["files"].as_array().unwrap();
    let is_gone = |file: &Value| {
        let path = file["path"].as_str().unwrap();
        path.ends_with("/gone") || path.ends_with("/last")
    };
    assert!(!files.iter().any(is_gone), "{evidence:#}");
}

#[test]
fn a_program_of_a_moment_has_totals() {
    let folder = folder();
    let evidence = evidence(folder.path(), &words!("-- true"));
    assert_eq!(evidence["exit_code"], 0);
    assert_eq!(evidence["reads"]["served_by"], Value::Null);
    assert_eq!(
        evidence["text"],
        "true: it read and wrote no storage of note."
    );
}

#[test]
fn a_file_of_evidence_is_never_overwritten() {
    let folder = folder();
    std::fs::write(folder.path().join("e.json"), "mine").unwrap();
    run(folder.path(), &words!("witness -o e.json -- touch ran")).expect(3);
    run(folder.path(), &words!("witness -o e.pdf -- touch ran")).expect(2);
    assert!(!folder.path().join("ran").exists());
    let kept = std::fs::read_to_string(folder.path().join("e.json")).unwrap();
    assert_eq!(kept, "mine");
}
