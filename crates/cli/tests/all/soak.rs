//! `iolab run --soak`: one long trial from its beginning, and latency over its time.

use std::fs;
use std::path::Path;

use crate::computed::CREDITS;
use crate::support::words::words;
use crate::support::{folder, run};

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

#[test]
fn the_end_of_the_credits_comes_first() {
    let folder = folder();
    let printed = credits(folder.path());
    let findings = printed.split("\n1. ").nth(1).expect("findings");
    insta::assert_snapshot!(printed.lines().next().expect("an answer"), @"read-random on model:credits.toml: throughput 12.3 MB/s, after 20.0 s (234 MiB read) 1.23 MB/s,");
    insta::assert_snapshot!(findings.split("\n2. ").next().expect("one"), @"
    Within a trial throughput fell 10.0×: 12.3 MB/s, then 1.23 MB/s from 20.0 s (234 MiB read) on.
       Shorter or longer trials would give other results.
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
