//! Command lines of users of other tools, or of users in a hurry: they work as meant, or the error names what
//! does.

use crate::support::words::words;
use crate::support::{entries, exported, folder, run, with_runs};

#[test]
fn depths_share_one_asynchronous_backend() {
    let folder = folder();
    let fast = ["--size=4MiB", "--time=10ms", "--budget=1s"];
    let line = ["run", "read-random", "--bs=4k", "--depth=1,4", "-o=r.iolab"];
    let done = run(folder.path(), &[&line[..], &fast].concat()).expect(0);
    let backends = exported(folder.path(), "r.iolab").into_iter();
    let mut backends: Vec<String> = backends.map(|row| row["backend"].to_string()).collect();
    backends.sort();
    backends.dedup();
    let backend = backends[0].trim_matches('"').to_owned();
    assert_eq!(backends.len(), 1, "{backends:?}");
    assert!(["io_uring", "libaio"].contains(&&*backend), "{backend}");
    let mut told = done.stderr.lines().filter(|line| line.contains(&backend));
    let told = told.next().unwrap_or_default();
    insta::assert_snapshot!(told.replace(&backend, "BACKEND"), @"note: --depth 1,4 sets backend=BACKEND for all levels: the default backend has one request in flight (--set backend=... chooses another)");
    // One request in flight needs no asynchronous backend.
    let plain = ["run", "read-random", "--depth=1", "--dry-run"];
    let done = run(folder.path(), &plain).expect(0);
    assert_eq!(done.stderr, "");
}

#[test]
fn size_may_be_share_of_a_file() {
    let folder = folder();
    std::fs::write(folder.path().join("mine"), vec![7u8; 4 << 20]).unwrap();
    for (share, bytes) in [("100%", 4 << 20), ("25%", 1 << 20)] {
        let line = ["run", "read-random", "mine", "--bs=4k", "--size", share];
        let rest = ["--time=10ms", "--budget=1s", "-o=r.iolab"];
        run(folder.path(), &[&line[..], &rest].concat()).expect(0);
        let rows = exported(folder.path(), "r.iolab");
        assert!(
            rows.iter().all(|row| row["region_bytes"] == bytes),
            "{share}"
        );
        std::fs::remove_file(folder.path().join("r.iolab")).unwrap();
    }
}

#[test]
fn the_extension_of_an_output_is_its_format() {
    let folder = folder();
    let path = folder.path();
    with_runs(path, &["a.iolab"]);
    std::fs::create_dir(path.join("runs")).unwrap();
    with_runs(&path.join("runs"), &["a.iolab"]);
    for (line, begins) in [
        (&["table", "a.iolab", "-o", "t.csv"][..], "run,"),
        (&["table", "a.iolab", "-o", "t.json"], "{"),
        (&["report", "a.iolab", "-o", "t.md"], "# "),
        (&["report", "a.iolab", "-o", "t.tex"], "\\pdfminorversion"),
        (&["report", "a.iolab", "-o", "t.html"], "<!DOCTYPE html>"),
        (&["export", "a.iolab", "-o", "e.csv"], "run,"),
        (&["export", "a.iolab", "-o", "e.json"], "["),
        (&["export", "a.iolab", "-o", "e.prom"], "# HELP"),
    ] {
        run(path, line).expect(0);
        let text = std::fs::read_to_string(path.join(line[line.len() - 1])).unwrap();
        let start: String = text.chars().take(20).collect();
        assert!(text.starts_with(begins), "{line:?}: {start}");
    }
    // The output is an existing folder, or ends with a slash.
    run(path, &["report", "a.iolab", "-o", "runs"]).expect(0);
    run(path, &["report", "a.iolab", "-o", "new/"]).expect(0);
    assert_eq!(entries(&path.join("new")), ["report.html"]);
    assert_eq!(entries(&path.join("runs")), ["a.iolab", "report.html"]);
}

#[test]
fn run_file_may_be_put_into_folder() {
    let folder = folder();
    let line = ["run", "read-random", "--bs=4k", "--size=4MiB"];
    let rest = ["--time=10ms", "--budget=1s", "-o", "runs/"];
    run(folder.path(), &[&line[..], &rest].concat()).expect(0);
    assert_eq!(entries(&folder.path().join("runs")), ["read-random.iolab"]);
}

#[test]
fn experiment_of_a_run_file_repeats_the_run() {
    let folder = folder();
    let path = folder.path();
    let model = [
        "model:sata-ssd", "--bs=4k,64k", "--size=4MiB", "--threads=1,2",
    ];
    let rest = ["--time=10ms", "--budget=1s", "--seed=11", "-o=a.iolab"];
    run(path, &[&["run", "read-random"][..], &model, &rest].concat()).expect(0);
    let shown = run(path, &["show", "a.iolab"]).expect(0).stdout;
    insta::assert_snapshot!(shown.lines().next().unwrap_or_default(), @"# The experiment of a.iolab; --seed 11 repeats its order, offsets and data.");
    std::fs::write(path.join("again.toml"), shown).unwrap();
    let again = words!("run again.toml model:sata-ssd --seed=11 -o=b.iolab");
    run(path, &again).expect(0);
    let trials = |file| {
        let rows = exported(path, file).into_iter();
        let trial = |row: serde_json::Value| {
            ["cell", "block", "position", "elapsed_ns", "seed"].map(|name| row[name].to_string())
        };
        rows.map(trial).collect::<Vec<_>>()
    };
    assert_eq!(trials("a.iolab"), trials("b.iolab"));
    let job = run(path, &["show", "a.iolab", "--format", "fio"]).expect(0);
    let begins = job
        .stdout
        .lines()
        .find(|line| !line.starts_with(';') && !line.is_empty());
    assert_eq!(begins, Some("[global]"), "{}", job.stdout);
    run(path, &["show", "none.iolab"]).expect(2);
}

#[test]
fn gauges_are_replaced_only_with_force() {
    let folder = folder();
    let path = folder.path();
    with_runs(path, &["a.iolab", "b.iolab"]);
    let export = ["export", "a.iolab", "b.iolab", "-o"];
    run(path, &[&export[..], &["io.prom"]].concat()).expect(0);
    let text = std::fs::read_to_string(path.join("io.prom")).unwrap();
    let mut series: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let count = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), count, "no series is there twice");
    let taken = run(path, &[&export[..], &["io.prom"]].concat()).expect(3);
    insta::assert_snapshot!(taken.stderr, @r"
    error: io.prom exists already
      replace it with --force, or choose another name with -o
    ");
    std::fs::write(path.join("io.prom"), "# HELP iolab_trials old\n").unwrap();
    run(path, &[&export[..], &["io.prom", "--force"]].concat()).expect(0);
    assert_eq!(std::fs::read_to_string(path.join("io.prom")).unwrap(), text);
    std::fs::write(path.join("mine.prom"), "mine 1\n").unwrap();
    assert_eq!(
        entries(path),
        ["a.iolab", "b.iolab", "io.prom", "mine.prom"]
    );
}

#[test]
fn usage_error_is_json_object_on_request() {
    let folder = folder();
    for (arguments, unknown) in [
        (
            &["run", "read-size", "--log", "json", "--bsx", "4k"][..],
            "'--bsx'",
        ),
        (&["study", "--log=json", "--nope"], "'--nope'"),
    ] {
        let refused = run(folder.path(), arguments).expect(2);
        let event: serde_json::Value = serde_json::from_str(&refused.stderr).expect("one object");
        assert_eq!(event["event"], "error");
        let text = event["text"].as_str().unwrap_or_default();
        assert!(text.contains(unknown), "{text}");
    }
}

#[test]
fn plan_is_limited_only_after_all_changes() {
    let folder = folder();
    // With the skips of the definition, these sizes would be more than 10,000 cells.
    let many: Vec<String> = (1..=1000)
        .map(|blocks| format!("{}k", 4 * blocks))
        .collect();
    let many = many.join(",");
    let arguments = [
        "run", "read-stride", "--bs", &many, "--set", "skip=4k", "--dry-run",
    ];
    run(folder.path(), &arguments).expect(0);
}
