//! `iolab run --soak`: one long trial from its beginning, and latency over its time.

use std::fs;
use std::path::Path;

use crate::computed::CREDITS;
use crate::support::words::words;
use crate::support::{dry_run, folder, run};

/// A soak of 60 s on a volume whose credits end after 20 s.
fn credits(folder: &Path) -> String {
    fs::write(folder.join("credits.toml"), CREDITS).expect("written");
    let arguments = words!(
        "run read-random model:credits.toml --seed 1 --bs 4k --depth 32 --size 10GiB --soak 60s -o run.iolab"
    );
    run(folder, &arguments).expect(0).stdout
}

/// Rows of `export --series` as names with values.
fn series(folder: &Path) -> Vec<serde_json::Value> {
    let printed = run(
        folder,
        &["export", "run.iolab", "--series", "--format", "json"],
    )
    .expect(0);
    serde_json::from_str(&printed.stdout).expect("rows")
}

/// What is noted of a run, a line each.
fn notes(stderr: &str) -> String {
    let notes = stderr.lines().filter(|line| line.starts_with("note: "));
    notes.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_end_of_the_credits_comes_first() {
    let folder = folder();
    let printed = credits(folder.path());
    let findings = printed.split("\n1. ").nth(1).expect("findings");
    insta::assert_snapshot!(printed.lines().next().expect("an answer"), @"read-random on model:credits.toml: throughput 12.3 MB/s, after 20.0 s (234 MiB read) 1.23 MB/s,");
    insta::assert_snapshot!(findings.split("\n2. ").next().expect("one"), @r"
    Within the only trial throughput fell to 10 %, from 12.3 MB/s to 1.23 MB/s, after 20.0 s (234 MiB
       read). Typical causes: a cache that fills up, an exhausted burst credit or throttling. Shorter or
       longer trials would give other results.
    ");
    let rows = series(folder.path());
    let requests = |row: &serde_json::Value| row["read_requests"].as_u64().expect("a number");
    let p99 = |row: &serde_json::Value| row["read_latency_p99_ns"].as_u64().expect("a number");
    // 300 intervals of 200 ms, and one for the requests in flight when the time is up.
    assert_eq!(rows.len(), 301);
    assert!(
        rows[..300]
            .iter()
            .all(|row| row["length_ns"] == 200_000_000)
    );
    assert!(p99(&rows[299]) > 9 * p99(&rows[50]) && requests(&rows[50]) > 9 * requests(&rows[299]));
    assert!(rows.iter().all(|row| row["write_latency_p99_ns"].is_null()));
    let samples = run(folder.path(), &["export", "run.iolab", "--format", "json"]).expect(0);
    let samples: Vec<serde_json::Value> = serde_json::from_str(&samples.stdout).expect("rows");
    assert_eq!((samples.len(), &samples[0]["warmup"]), (1, &false.into()));
    let all: u64 = rows.iter().map(requests).sum();
    assert_eq!(samples[0]["read_requests"], all);
    for arguments in [
        &["--kind", "course", "--y", "p99"][..],
        &["--kind", "course", "--y", "max"],
        &["--kind", "heat-latency"],
    ] {
        let figure = [&["plot", "run.iolab", "-o", "-"][..], arguments].concat();
        assert!(
            run(folder.path(), &figure)
                .expect(0)
                .stdout
                .contains("<svg")
        );
    }
    let iops = words!("plot run.iolab -o - --kind course --y iops");
    insta::assert_snapshot!(run(folder.path(), &iops).expect(2).stderr, @r"
    error: iops has no course inside a trial
      set --y throughput, latency, p90, p99, p99.9 or max
    ");
}

#[test]
fn of_a_steady_model_only_the_change_that_would_have_shown_is_told() {
    let folder = folder();
    let arguments = words!(
        "run read-random model:nvme-970pro --seed 1 --bs 4k,64k --depth 4 --soak 5s -o run.iolab"
    );
    let printed = run(folder.path(), &arguments).expect(0);
    let told = printed.stdout.split("\n1. ").nth(1);
    insta::assert_snapshot!(told.expect("a finding"), @r"
    No lasting change of throughput was found within the trials of 2 cells; a fall to 77 %, or a rise
       to 1.30 times, that lasts for a quarter of a trial would have been. A change at a constant pace,
       even one by a factor of 20 over a whole trial, would not.
    ");
    insta::assert_snapshot!(notes(&printed.stderr), @r"
    note: --depth 4 sets backend=io_uring for all levels: the default backend has one request in flight (--set backend=... chooses another)
    note: --soak 5s sets bytes=none: bytes=1GiB ends trials before their time
    note: cells use the same storage one after the other, without a warm-up: what one leaves there, the next one finds; measure one cell per run
    ");
}

#[test]
fn cells_that_write_after_each_other_are_doubted() {
    let folder = folder();
    let arguments = words!(
        "run write-random model:nvme-970pro --seed 1 --bs 4k,64k --set sync=none --soak 1s -o run.iolab"
    );
    let printed = run(folder.path(), &arguments).expect(0);
    insta::assert_snapshot!(notes(&printed.stderr), @r"
    note: --soak 1s sets bytes=none: bytes=1GiB ends trials before their time
    note: cells use the same storage one after the other, without a warm-up: what one leaves there, the next one finds; measure one cell per run
    ");
    run(folder.path(), &["table", "run.iolab"]).expect(0);
}

#[test]
fn latency_over_time_is_asked_for_where_none_is_kept() {
    let folder = folder();
    let arguments = words!(
        "run read-random model:nvme-970pro --bs 4k --time 1s --set trials_max=1 -o run.iolab"
    );
    run(folder.path(), &arguments).expect(0);
    let heat = ["plot", "run.iolab", "-o", "-", "--kind", "heat-latency"];
    let refused = run(folder.path(), &heat).expect(2).stderr;
    insta::assert_snapshot!(refused, @r"
    error: no trial keeps its latency over time
      measure with --soak TIME, or with --set latency_over_time=true; --kind course shows throughput
    ");
    assert!(
        series(folder.path())
            .iter()
            .all(|row| row["read_latency_p50_ns"].is_null())
    );
    // Of 4,000 requests a second there are too few.
    let far = ["table", "run.iolab", "--metric", "p99.999"];
    let told = run(folder.path(), &far).expect(0).stdout;
    let why = told.lines().find(|line| line.contains("needed"));
    insta::assert_snapshot!(why.expect("no curve").trim(), @"too few requests (368887 per trial are needed)");
}

#[test]
fn a_latency_log_of_fio_keeps_latency_over_time() {
    let folder = folder();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nruntime=1\ntime_based\nioengine=psync\ndirect=1\n\
        write_lat_log=a\nlog_avg_msec=500\nwrite_bw_log=a\n";
    fs::write(folder.path().join("a.fio"), job).expect("written");
    insta::assert_snapshot!(dry_run(folder.path(), &["run", "a.fio", "."]));
    let shown = run(folder.path(), &["show", "a.fio"]).expect(0).stdout;
    assert!(
        shown.lines().any(|line| line == "latency_over_time = true"),
        "{shown}"
    );
}
