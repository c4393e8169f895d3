//! Commands that print: help, lists, tables, exports, pipes.

use crate::support::{self, entries, folder, iolab, run, run_tiny, with_runs};

#[test]
fn list_names_everything() {
    let folder = folder();
    let done = run(folder.path(), &["list"]).expect(0);
    for name in [
        "read-size", "write-size", "read-stride", "write-stride", "read-random", "write-random",
        "quick", "micro",
    ] {
        assert!(done.stdout.contains(name), "{}", done.stdout);
    }
    let named = |arguments: &[&str]| {
        let list = run(folder.path(), arguments).expect(0).stdout;
        let words = list.lines().filter_map(|line| line.strip_prefix("  "));
        let names = words.filter_map(|line| line.split(' ').next().map(str::to_owned));
        names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(named(&["list", "--settings"]).len(), 15);
    let all = named(&["list", "--settings", "--all"]);
    for setting in iolab_workload::settings::SETTINGS {
        assert!(
            all.iter().any(|name| name == setting.name),
            "{}",
            setting.name
        );
    }
    let done = run(folder.path(), &["list", "--settings", "--all"]).expect(0);
    let mut lines = done.stdout.lines();
    let threads = lines.find(|line| line.starts_with("  threads "));
    insta::assert_snapshot!(threads.unwrap_or_default().trim(), @"threads           workers, 1 to 1024; also called numjobs [default: 1]");
    let rest: Vec<&str> = lines
        .skip_while(|line| !line.starts_with("Also "))
        .collect();
    insta::assert_snapshot!(rest.join("\n"), @r"
    Also with one value each: trials_min, trials_max, precision, budget, refine, settle, precondition,
    pilot, warmup, writes, halves.
    ");
}

#[test]
fn lists_and_captions_fit_the_terminal() {
    let folder = folder();
    run_tiny(
        folder.path(),
        "read-random",
        &["model:sata-ssd", "-o", "r.iolab"],
    )
    .expect(0);
    for arguments in [
        &["list"][..],
        &["list", "--settings"],
        &["table", "r.iolab"],
    ] {
        for width in [60, 80] {
            let mut command = iolab(folder.path(), arguments);
            let output = command.env("COLUMNS", width.to_string()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let wide = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{arguments:?}");
        }
    }
}

#[test]
fn what_is_shown_can_be_run() {
    let folder = folder();
    let toml = run(folder.path(), &["show", "read-random"])
        .expect(0)
        .stdout;
    assert!(toml.contains("# "), "comments are kept");
    std::fs::write(folder.path().join("mine.toml"), toml).unwrap();
    run(folder.path(), &["show", "mine.toml"]).expect(0);
    run_tiny(folder.path(), "mine.toml", &["-o", "r.iolab"]).expect(0);
    run(folder.path(), &["show", "nothing"]).expect(2);
}

#[test]
fn table_shows_what_run_showed() {
    let folder = folder();
    let shown = run_tiny(folder.path(), "read-size", &["--full", "-o", "r.iolab"])
        .expect(0)
        .stdout;
    let again = run(folder.path(), &["table", "r.iolab"]).expect(0).stdout;
    assert_eq!(shown.trim(), again.trim());
    let table = |format| {
        let arguments = ["table", "r.iolab", "--format", format];
        run(folder.path(), &arguments).expect(0).stdout
    };
    let csv = table("csv");
    let mut columns = csv.lines().next().unwrap().split(',');
    assert!(columns.any(|name| name == "throughput_mb_s_median"));
    let json: serde_json::Value = serde_json::from_str(&table("json")).unwrap();
    assert_eq!(json["cells"][0]["level_bs"], "4KiB");
    assert!(
        table("markdown")
            .lines()
            .any(|line| line.starts_with("|---"))
    );
}

#[test]
fn reading_leaves_the_run_file_alone() {
    let folder = folder();
    run_tiny(folder.path(), "read-size", &["-o", "r.iolab"]).expect(0);
    let before = std::fs::read(folder.path().join("r.iolab")).unwrap();
    run(folder.path(), &["table", "r.iolab"]).expect(0);
    run(folder.path(), &["export", "r.iolab", "--format", "csv"]).expect(0);
    run(folder.path(), &["resume", "r.iolab"]).expect(0);
    assert_eq!(
        std::fs::read(folder.path().join("r.iolab")).unwrap(),
        before
    );
    assert_eq!(entries(folder.path()), ["r.iolab"]);
}

#[test]
fn export_writes_samples_and_buckets() {
    let folder = folder();
    with_runs(folder.path(), &["r.iolab"]);
    let arguments = ["export", "r.iolab", "--format", "csv", "-o", "out.csv"];
    run(folder.path(), &arguments).expect(0);
    let csv = std::fs::read_to_string(folder.path().join("out.csv")).unwrap();
    let samples = csv.lines().count() - 1;
    assert_eq!(support::exported(folder.path(), "r.iolab").len(), samples);
    let arguments = ["export", "r.iolab", "--format", "json", "--histogram"];
    let done = run(folder.path(), &arguments).expect(0);
    let buckets: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let counted: u64 = buckets
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|b| b["count"].as_u64())
        .sum();
    let requests: u64 = support::exported(folder.path(), "r.iolab")
        .iter()
        .filter_map(|row| row["read_requests"].as_u64())
        .sum();
    assert_eq!(counted, requests);
    let arguments = ["export", "r.iolab", "--format", "json", "--series"];
    let done = run(folder.path(), &arguments).expect(0);
    let intervals: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let counted = intervals.as_array().unwrap().iter();
    let counted: u64 = counted.filter_map(|i| i["read_requests"].as_u64()).sum();
    assert_eq!(counted, requests);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    with_runs(folder.path(), &["r.iolab"]);
    for arguments in [
        &["list"][..],
        &["show", "read-size"],
        &["table", "r.iolab"],
        &["export", "r.iolab", "--format", "json", "--histogram"],
        &["export", "r.iolab", "--format", "csv", "--series"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = iolab(folder.path(), arguments)
            .stdout(writer)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert_eq!(stderr, "", "{arguments:?}");
    }
}

#[test]
fn a_dumb_terminal_gets_ascii() {
    let folder = folder();
    with_runs(folder.path(), &["r.iolab"]);
    let output = iolab(folder.path(), &["table", "r.iolab"])
        .env("TERM", "dumb")
        .output()
        .unwrap();
    assert!(output.stdout.is_ascii());
}
