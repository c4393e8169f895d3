//! `compare` and `stats`: exit codes for scripts, and what a careless user gets.

use std::path::Path;

use crate::support::words::words;
use crate::support::{self, folder, iolab, run};

fn numbers(folder: &Path, name: &str, values: impl IntoIterator<Item = f64>) {
    let text: String = values.into_iter().map(|v| format!("{v}\n")).collect();
    std::fs::write(folder.join(name), text).unwrap();
}

/// Ten values within 1 % of `around`.
fn steady(around: f64) -> impl Iterator<Item = f64> {
    [3, -7, 5, 0, -2, 9, -9, 1, -4, 6]
        .into_iter()
        .map(move |d| around * (1.0 + f64::from(d) / 1000.0))
}

#[test]
fn the_exit_code_is_the_verdict() {
    let folder = folder();
    let folder = folder.path();
    numbers(folder, "base", steady(100.0));
    numbers(folder, "slow", steady(70.0));
    numbers(folder, "same", steady(100.2));
    numbers(folder, "wild", [50.0, 190.0, 70.0, 30.0, 160.0, 90.0]);
    for (new, more, code, verdict) in [
        ("slow", &["--better", "higher"][..], 4, "slower"),
        ("slow", &["--better", "lower"], 0, "faster"),
        ("slow", &[], 0, "lower"),
        ("slow", &["--margin", "0.5"], 0, "equivalent"),
        ("same", &["--better", "higher"], 0, "equivalent"),
        ("wild", &["--better", "higher"], 5, "cannot tell"),
    ] {
        let line = [&["compare", "base", new], more].concat();
        for format in ["text", "csv", "markdown"] {
            run(folder, &[&line[..], &["--format", format]].concat()).expect(code);
        }
        let told = run(folder, &[&line[..], &["--format", "json"]].concat()).expect(code);
        let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
        let cell = told["cells"][0]["verdict"].as_str().expect("a verdict");
        // Why none can be given follows in brackets.
        assert_eq!(cell.split(" (").next(), Some(verdict), "{more:?}: {cell}");
    }
}

#[test]
fn numbers_come_from_a_pipe_too() {
    let folder = folder();
    let mut child = iolab(folder.path(), &["stats", "-", "--format", "json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = b"# ms\n3\n1\n2\n5\n4\n6\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text).unwrap();
    let done: support::Done = child.wait_with_output().unwrap().into();
    let all: serde_json::Value = serde_json::from_str(&done.expect(0).stdout).unwrap();
    assert_eq!(all[0]["median"], 3.5);
    assert_eq!(all[0]["median_low"], 1.0);
}

#[test]
fn default_grid_runs_have_enough_trials_to_compare() {
    let folder = folder();
    for (seed, file) in [("1", "base.iolab"), ("2", "new.iolab")] {
        let grid = words!("run disk-grid model:sata-ssd --set bs=4k,64k --threads 1,2 --time 50ms");
        let arguments = [&grid[..], &["--seed", seed, "-o", file]].concat();
        run(folder.path(), &arguments).expect(0);
    }
    let line = words!("compare base.iolab new.iolab --format json");
    let compared: serde_json::Value =
        serde_json::from_str(&run(folder.path(), &line).stdout).expect("JSON");
    let cells = compared["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 16);
    assert!(
        cells
            .iter()
            .all(|cell| cell["estimate"]["interval"][0].is_number()),
        "{compared}"
    );
}

/// A model whose writes became slower and whose reads became faster. The 99th percentile of a mix is judged for
/// each operation.
#[test]
fn slower_writes_of_a_mix_are_a_regression() {
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
        // The cell without reads has no verdict on reads.
        assert_eq!(of, ["read at 50", "write at 0", "write at 50"]);
        assert_ne!(found[0].1, "slower");
        assert_eq!([&found[1].1, &found[2].1], ["slower"; 2]);
    }
    // A quantity without operations has one verdict for each cell.
    let iops = run(
        folder,
        &[&two[..], &["--metric", "iops", "--format", "json"]].concat(),
    );
    let iops: serde_json::Value = serde_json::from_str(&iops.stdout).unwrap();
    assert_eq!(iops["cells"].as_array().map(Vec::len), Some(2));
    // A model computes no CPU time.
    let cpu = words!("--metric cpu --format json");
    let cpu = run(folder, &[&runs[..], &cpu].concat()).expect(5);
    let cpu: serde_json::Value = serde_json::from_str(&cpu.stdout).unwrap();
    insta::assert_snapshot!(cpu["summary"].as_str().unwrap(), @"3 runs against 3 runs: cannot tell in any of 2 cells: a side has no value");
}
