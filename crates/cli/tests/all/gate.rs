//! `gate` and `history`, and `compare` of several runs: exit codes for scripts, and what a careless user gets.

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
fn too_few_runs_are_no_alarm_and_no_success() {
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
fn a_folder_of_runs_has_a_history_in_every_format() {
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
    let done = run(folder, &["history", "runs", "--format", "html"]).expect(0);
    assert!(done.stdout.starts_with("<!DOCTYPE html"), "{}", done.stdout);
}

/// A model of which only writes became slower, while reads became faster: the 99th percentile of a mix is judged for each operation.
#[test]
fn writes_of_a_mix_that_became_slower_are_a_regression() {
    let folder = folder();
    let folder = folder.path();
    let shown = run(folder, &["model", "show", "sata-ssd"]).expect(0).stdout;
    std::fs::write(folder.join("before.toml"), &shown).unwrap();
    let after = shown
        .replace("\nread_us = 12", "\nread_us = 6")
        .replace("\nwrite_us = 6", "\nwrite_us = 200");
    assert_ne!(shown, after);
    std::fs::write(folder.join("after.toml"), after).unwrap();
    std::fs::create_dir(folder.join("runs")).unwrap();
    for (model, names) in [
        ("before", ["b1", "b2", "b3"]),
        ("after", ["a1", "a2", "a3"]),
    ] {
        for (seed, name) in (1..).zip(names) {
            let line = format!(
                "run read-random model:{model}.toml --set bs=4k --set read_percent=0,50 --time 250ms \
                 --seed {seed} -o runs/{name}.iolab"
            );
            run(folder, &line.split_whitespace().collect::<Vec<_>>()).expect(0);
        }
    }
    let verdicts = |line: &[&str], code: i32| -> Vec<(String, String)> {
        let done = run(
            folder,
            &[line, &["--metric", "p99", "--format", "json"]].concat(),
        );
        let said: serde_json::Value = serde_json::from_str(&done.expect(code).stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let cells = said["cells"].as_array().unwrap().iter();
        cells
            .map(|cell| {
                let percent = text(&cell["levels"][0]);
                let of = format!("{} at {percent}", text(&cell["levels"][1]));
                (of, text(&cell["verdict"]))
            })
            .collect()
    };
    let runs = words!(
        "compare --base runs/b1.iolab runs/b2.iolab runs/b3.iolab --new runs/a1.iolab runs/a2.iolab runs/a3.iolab"
    );
    let two = words!("compare runs/b1.iolab runs/a1.iolab");
    for line in [&runs[..], &two[..]] {
        let found = verdicts(line, 4);
        let of: Vec<&str> = found.iter().map(|(of, _)| of.as_str()).collect();
        // The cell without reads has no verdict on any.
        assert_eq!(of, ["read at 50", "write at 0", "write at 50"]);
        assert_ne!(found[0].1, "slower");
        assert_eq!([&found[1].1, &found[2].1], ["slower"; 2]);
    }
    // What has no operation is judged as before.
    let iops = run(
        folder,
        &[&two[..], &["--metric", "iops", "--format", "json"]].concat(),
    );
    let iops: serde_json::Value = serde_json::from_str(&iops.stdout).unwrap();
    assert_eq!(iops["cells"].as_array().map(Vec::len), Some(2));
    let lines = run(folder, &words!("history runs --metric p99 --format csv")).expect(0);
    let mut columns = lines.stdout.lines().next().unwrap().split(',');
    assert!(columns.any(|name| name == "level_operation"));
    // A model computes no CPU time.
    let cpu = words!("--metric cpu --format json");
    let cpu = run(folder, &[&runs[..], &cpu].concat()).expect(5);
    let cpu: serde_json::Value = serde_json::from_str(&cpu.stdout).unwrap();
    insta::assert_snapshot!(cpu["summary"].as_str().unwrap(), @"3 runs against 3 runs: cannot tell in any of 2 cells: no trial of either side has a value of this");
}
