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
