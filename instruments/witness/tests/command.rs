//! `iolab witness`: a program runs as if alone, and the evidence includes all processes that it starts.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::json_schema::assert_as_described;
use crate::support::{Done, folder, iolab, run, signal};

const SIZE: u64 = 8 << 20;

fn with_data(folder: &Path) {
    std::fs::write(folder.join("data"), vec![7; SIZE as usize]).unwrap();
}

/// The evidence for a command, as JSON.
fn evidence(folder: &Path, arguments: &[&str]) -> Value {
    let all = [&["witness", "-o", "e.json"], arguments].concat();
    run(folder, &all).expect(0);
    let file = folder.join("e.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let evidence = serde_json::from_str(&text).unwrap();
    assert_as_described(folder, "witness", &evidence);
    evidence
}

fn number(evidence: &Value, pointer: &str) -> u64 {
    evidence.pointer(pointer).and_then(Value::as_u64).unwrap()
}

#[test]
fn signal_is_passed_on_and_evidence_printed() {
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
    assert!(done.stderr.starts_with("sh: "), "{}", done.stderr);
}

/// A report of fio: 8 MiB read in 1 ms, by an engine that iolab lacks.
const REPORT: &str = r#"{"fio version": "fio-3.33",
"global options": {"ioengine": "splice", "rw": "read", "bs": "1M", "size": "8M", "filename": "data"},
"jobs": [{"jobname": "t", "error": 0, "job options": {"name": "t"}, "job_runtime": 1, "usr_cpu": 0.0, "sys_cpu": 0.0,
"read": {"io_bytes": 8388608, "total_ios": 8, "runtime": 1, "clat_ns": {}, "lat_ns": {}},
"write": {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {}, "lat_ns": {}}}]}"#;

#[test]
fn claims_of_program_are_compared_with_devices() {
    let folder = folder();
    with_data(folder.path());
    std::fs::write(folder.path().join("old"), REPORT).unwrap();
    let script = "cat data > /dev/null; cp old new; echo streams";
    let arguments = ["--claim", "new", "--on", "data", "--", "sh", "-c", script];
    let with = evidence(folder.path(), &arguments);
    assert_eq!(with["claim"]["tool"], "fio");
    assert_eq!(number(&with, "/claim/reads/bytes"), SIZE);
    let mb_s = with["claim"]["reads"]["throughput_mb_s"].as_f64().unwrap();
    assert!((mb_s - 8388.608).abs() < 1e-6, "{mb_s}");
    // An older report, a missing one, and a file of another kind hold no claim of this program.
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let old = std::fs::File::options()
        .append(true)
        .open(folder.path().join("old"))
        .unwrap();
    old.set_modified(past).unwrap();
    for report in ["old", "none", "data"] {
        let evidence = evidence(folder.path(), &["--claim", report, "--", "true"]);
        assert!(evidence["claim"].is_null(), "{report}: {evidence}");
    }
}
