//! `gate` and `history`: exit codes for scripts, and their formats.

use std::path::Path;

use crate::support::json_schema::assert_as_described;
use crate::support::words::words;
use crate::support::{folder, run, run_tiny, with_runs};

/// Three runs of one experiment in `runs`.
fn three_runs(folder: &Path) {
    std::fs::create_dir(folder.join("runs")).unwrap();
    with_runs(folder, &["runs/a.iolab", "runs/b.iolab", "runs/c.iolab"]);
}

#[test]
fn too_few_runs_are_neither_alarm_nor_success() {
    let folder = folder();
    let folder = folder.path();
    three_runs(folder);
    let gate = ["gate", "--history", "runs", "runs/c.iolab"];
    run(folder, &gate).expect(5);
    let done = run(folder, &[&gate[..], &["--format", "json"]].concat()).expect(5);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_as_described(folder, "gate", &said);
    assert_eq!(said["conclusion"], "cannot tell");
    assert_eq!(said["history"], 2);
    for format in ["csv", "markdown"] {
        run(folder, &[&gate[..], &["--format", format]].concat()).expect(5);
    }
    // A run of another experiment is not a part of the history.
    run_tiny(folder, "read-random", &["-o", "other.iolab"]).expect(0);
    let other = words!("gate --history runs other.iolab --format json");
    let done = run(folder, &other).expect(5);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["history"], 0);
}

#[test]
fn folder_has_history_in_every_format() {
    let folder = folder();
    let folder = folder.path();
    three_runs(folder);
    std::fs::write(folder.join("runs/broken.iolab"), "no run").unwrap();
    let done = run(folder, &["history", "runs"]).expect(0);
    insta::assert_snapshot!(done.stderr, @r"
    note: left out: runs/broken.iolab is not a run file of iolab
      give a file that 'iolab run' or 'iolab study' made (NAME.iolab)
    ");
    let done = run(folder, &["history", "runs", "--format", "csv"]).expect(0);
    let mut rows = csv::Reader::from_reader(done.stdout.as_bytes());
    let header = rows.headers().unwrap().clone();
    let place = |name: &str| header.iter().position(|found| found == name).expect(name);
    let places = ["run", "file", "host", "run_started_utc", "median"].map(place);
    let rows: Vec<csv::StringRecord> = rows.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(
            places.iter().all(|place| !row[*place].is_empty()),
            "{row:?}"
        );
    }
    let done = run(folder, &["history", "runs", "--format", "json"]).expect(0);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["lines"][0]["runs"].as_array().unwrap().len(), 3);
    let done = run(folder, &["history", "runs", "--format", "svg"]).expect(0);
    assert!(done.stdout.starts_with("<svg"), "{}", done.stdout);
    run(folder, &["history", "runs", "-o", "h.html"]).expect(0);
    let page = std::fs::read_to_string(folder.join("h.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html"), "{page}");
    // A page of these runs shows them over time.
    run(
        folder,
        &["report", "runs/a.iolab", "runs/b.iolab", "-o", "r.md"],
    )
    .expect(0);
    let page = std::fs::read_to_string(folder.join("r.md")).unwrap();
    assert!(page.contains("-over-time.svg)"), "{page}");
}
