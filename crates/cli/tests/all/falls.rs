//! `iolab why` for runs whose throughput falls, or whose trials show a phenomenon without two differing cells.

use std::fs;

use crate::support::words::words;
use crate::support::{folder, run};

/// Credits of requests that end after 2 s, and a rate of bytes that large requests reach before these.
const BURST: &str = "title = \"Bursts of 2 s\"\nsource = [\"made up\"]\n[model.limit]\nrequest_bytes = 262_144\n\
    requests = { sustained = 300, burst = 3000, credits = 5400 }\nbytes = { sustained = 100_000_000 }\n\
    [model.limit.inner.latency]\nread_us = 700\nwrite_us = 900\ninner.memory = 10_737_418_240\n";

#[test]
fn the_credits_behind_a_fall_are_named() {
    let folder = folder();
    fs::write(folder.path().join("burst.toml"), BURST).expect("written");
    let soak = words!(
        "run write-random model:burst.toml --seed 1 --bs 4k --depth 32 --set sync=none --soak 6s -o run.iolab --quiet"
    );
    run(folder.path(), &soak).expect(0);
    let listed = run(folder.path(), &words!("why run.iolab --list")).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
      1  throughput falls to 10 % after 23.4 MiB (12.3 MB/s to 1.23 MB/s); compared: 4.00 s with the
         first 11.8 MiB
    ");
    let short = run(folder.path(), &words!("why run.iolab --budget 30s")).expect(5);
    insta::assert_snapshot!(short.stdout, @r"
    throughput falls to 10 % after 23.4 MiB (12.3 MB/s to 1.23 MB/s); compared: 4.00 s with the first
      11.8 MiB; no suspect fits the budget; not tried: written-data, small-requests (no time within the
      budget: --budget 7min)
    ");
    let told = run(
        folder.path(),
        &words!("why run.iolab --seed 5 --budget 8min -o why.iolab --quiet"),
    );
    insta::assert_snapshot!(told.expect(0).stdout, @"
    why on model:burst.toml: cause: many small requests

    Reproduced: throughput falls to 10 % after 23.4 MiB (12.3 MB/s to 1.23 MB/s); compared: 4.00 s
      with the first 11.8 MiB; here 1.81× lower in 23 blocks.
    Cause: many small requests: 99 % of the difference is gone with bs=256KiB (1.01× lower).
    Cleared: what writes leave or use up in the storage.
    ");
}

/// A request costs 500 µs and 20 ns a byte, and times drift by a quarter within a second.
const NOISY: &str = "title = \"Noise\"\nsource = [\"made up\"]\n[model.noise]\nsigma = 0.05\ndrift_sigma = 0.25\ndrift_ms = 300\n\
    [model.noise.inner.limit]\nbytes = { sustained = 50_000_000 }\n\
    [model.noise.inner.limit.inner.latency]\nread_us = 500\nwrite_us = 500\ninner.memory = 4_294_967_296\n";

/// `iolab why` and `iolab plot` use one estimator for the parts and for the bars, even with noisy blocks.
#[test]
fn the_figure_has_the_numbers_of_the_text() {
    let folder = folder();
    fs::write(folder.path().join("noisy.toml"), NOISY).expect("written");
    let sizes = words!(
        "run read-size model:noisy.toml --seed 1 --bs 4k,64k --time 50ms -o run.iolab --quiet"
    );
    run(folder.path(), &sizes).expect(0);
    let why = words!("why run.iolab --seed 5 -o why.iolab --quiet");
    run(folder.path(), &why).expect(0);
    let json = run(folder.path(), &words!("table why.iolab --format json")).expect(0);
    let value: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let figure = run(folder.path(), &words!("plot why.iolab -o -"))
        .expect(0)
        .stdout;
    let mut compared = 0;
    for claim in value["claims"].as_array().expect("claims") {
        let suspects = claim["evidence"]["suspects"].as_array().into_iter();
        for suspect in suspects.flatten() {
            let share = suspect["share"]["share"].as_f64().expect("a share");
            assert_eq!(
                (&suspect["by_itself"], &suspect["is_reversed"]),
                (&false.into(), &false.into())
            );
            let what = match suspect["name"].as_str() {
                Some("waiting") => "could overlap or sort: ",
                Some("read-ahead") => "read-ahead of sequential reads: ",
                other => panic!("{other:?} of two sizes"),
            };
            let drawn = figure.split(what).nth(1);
            let drawn = drawn.and_then(|text| text.split(" % left").next());
            let left: f64 = drawn.expect("its bar").trim().parse().expect("a number");
            let expected = 100.0 * (1.0 - share);
            assert!(
                (left - expected).abs() < 0.06 + 0.006 * expected,
                "{left} {expected}"
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 2, "{}", json.stdout);
}
