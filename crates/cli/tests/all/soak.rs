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
    let findings = printed.split("What matters\n").nth(1).expect("findings");
    let answer: Vec<&str> = printed.split_whitespace().take(20).collect();
    assert!(answer.join(" ").contains(", after 20.0 s ("), "{printed}");
    let first = findings.split("\n2. ").next().expect("one");
    let words: Vec<&str> = first.split_whitespace().collect();
    let first = words.join(" ");
    for part in ["after 20.0 s", "it fell to 10 %", "in its only trial"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let rows = series(folder.path());
    let requests = |row: &serde_json::Value| row["read_requests"].as_u64().expect("a number");
    let p99 = |row: &serde_json::Value| row["read_latency_p99_ns"].as_u64().expect("a number");
    // What is under way when the time is up is waited for.
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
    let iops = [
        "plot",
        "run.iolab",
        "-o",
        "-",
        "--kind",
        "course",
        "--y",
        "iops",
    ];
    assert!(
        run(folder.path(), &iops)
            .expect(2)
            .stderr
            .contains("has no course")
    );
}

#[test]
fn nothing_is_claimed_of_a_steady_model() {
    let folder = folder();
    let arguments = words!(
        "run read-random model:nvme-970pro --seed 1 --bs 4k,64k --depth 4 --soak 5s -o run.iolab"
    );
    let printed = run(folder.path(), &arguments).expect(0);
    assert!(
        !printed.stdout.contains("What matters"),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("--soak 5s sets bytes=none"));
    assert!(!printed.stderr.contains("the next one finds"));
}

#[test]
fn cells_that_write_after_each_other_are_doubted() {
    let folder = folder();
    let arguments = words!(
        "run write-random model:nvme-970pro --seed 1 --bs 4k,64k --set sync=none --soak 1s -o run.iolab"
    );
    let printed = run(folder.path(), &arguments).expect(0);
    assert!(
        printed
            .stderr
            .contains("what one leaves there, the next one finds"),
        "{}",
        printed.stderr
    );
    assert!(
        printed.stdout.contains("their order may decide"),
        "{}",
        printed.stdout
    );
    let table = run(folder.path(), &["table", "run.iolab"]).expect(0).stdout;
    assert!(table.contains("Measure one cell per run."), "{table}");
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
    assert!(refused.contains("latency_over_time=true"), "{refused}");
    assert!(
        series(folder.path())
            .iter()
            .all(|row| row["read_latency_p50_ns"].is_null())
    );
    // Of 4,000 requests a second there are too few.
    let far = ["table", "run.iolab", "--metric", "p99.999"];
    let told = run(folder.path(), &far).expect(0).stdout;
    assert!(
        told.contains("too few requests (368887 per trial"),
        "{told}"
    );
}

#[test]
fn a_latency_log_of_fio_keeps_latency_over_time() {
    let folder = folder();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nruntime=1\ntime_based\nioengine=psync\ndirect=1\n\
        write_lat_log=a\nlog_avg_msec=500\nwrite_bw_log=a\n";
    fs::write(folder.path().join("a.fio"), job).expect("written");
    let told = run(folder.path(), &["run", "a.fio", ".", "--dry-run"])
        .expect(0)
        .stdout;
    assert!(
        told.contains("write_lat_log=a: latency_over_time=true"),
        "{told}"
    );
    assert!(
        told.contains("log_avg_msec=500: nothing changes: iolab keeps intervals"),
        "{told}"
    );
    let shown = run(folder.path(), &["show", "a.fio"]).expect(0).stdout;
    assert!(shown.contains("latency_over_time = true"), "{shown}");
}
