//! `iolab doctor` on real targets, and its findings in run files.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iolab_record::{Event, EventKind};
use needs::Need;
use serde_json::Value;

use crate::support::{entries, folder, run, run_tiny};

/// The JSON of a diagnosis.
#[track_caller]
fn diagnosis(folder: &Path, target: &str) -> Value {
    let done = run(folder, &["doctor", target, "--format", "json"]).expect(0);
    serde_json::from_str(&done.stdout).expect("JSON")
}

/// Severity and text of the findings of one rule.
fn of_rule(diagnosis: &Value, topic: &str, rule: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = diagnosis["findings"].as_array().expect("a list");
    findings
        .iter()
        .filter(|f| f["topic"] == topic && f["rule"] == rule)
        .map(|f| (text(&f["severity"]), text(&f["what"])))
        .collect()
}

#[test]
fn a_full_file_is_only_read() {
    let folder = folder();
    let path = folder.path().join("mine");
    let data: Vec<u8> = (0..1_000_000u32).map(|i| (i / 7) as u8).collect();
    std::fs::write(&path, &data).expect("written");
    File::open(&path)
        .expect("opened")
        .sync_all()
        .expect("durable");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).expect("set");
    let value = diagnosis(folder.path(), "mine");
    assert_eq!(value["kind"], "file");
    assert_eq!(of_rule(&value, "data", "empty")[0].0, "fine");
    let folder_itself = diagnosis(folder.path(), ".");
    assert!(folder_itself["findings"].as_array().expect("a list").len() > 5);
    assert_eq!(std::fs::read(&path).expect("read"), data);
    assert_eq!(entries(folder.path()), ["mine"]);
}

#[test]
fn run_warns_of_sparse_file_and_keeps_it() {
    let folder = folder();
    let file = File::create(folder.path().join("sparse")).expect("made");
    file.set_len(16 << 20).expect("sized");
    file.sync_all().expect("durable");
    if of_rule(&diagnosis(folder.path(), "sparse"), "data", "empty")[0].0 == "fine" {
        return needs::skip(Need::Holes, "a sparse file looks full");
    }
    let done = run_tiny(folder.path(), "read-size", &["sparse", "-o", "s.iolab"]).expect(0);
    let record = iolab_runfile::read(&folder.path().join("s.iolab")).expect("a run file");
    let warning = |event: &&Event| event.kind == EventKind::Warning;
    let kept = &record
        .events
        .iter()
        .find(warning)
        .expect("a warning")
        .message;
    insta::assert_snapshot!(kept.split("; ").next().expect("a warning"), @"4 MiB of 4 MiB (100 %) is a hole: it reads as zeros without any device");
    let told = format!("note: {kept}");
    assert!(done.stderr.lines().any(|line| line == told), "{told}");
}
