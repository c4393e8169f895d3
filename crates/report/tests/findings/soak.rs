//! One trial from its beginning: all of its levels, a decline without a step, and the text if it has neither. Rounds of writes
//! before the first trial.

use iolab_analysis::analysis::analyse;
use iolab_record::{PreparationKind, PreparationStep, RunRecord};
use iolab_report::findings::conclusions;
use iolab_synthetic::Scenario;

use crate::named;
use crate::timeline::{noise, only, over_time, writing};

/// A trial of `intervals` intervals of 100 ms, with noise of 5 %. `mb` gives the MB written in each, by its
/// position in the trial from 0 to 1.
fn soak(intervals: usize, mb: impl Fn(f64) -> f64) -> RunRecord {
    let mut record = writing(&["1MiB"], 1, |_, _| 500.0);
    let bytes: Vec<u64> = (0..intervals)
        .map(|at| (1e6 * mb(at as f64 / intervals as f64) * noise(at, 0.05)) as u64)
        .collect();
    over_time(&mut record, 1, &bytes);
    // Without the warm-up that `writing` begins with.
    record.samples.retain(|sample| !sample.warmup);
    record
}

/// The names of the claims about the course of a soak.
fn names(record: &RunRecord) -> Vec<&'static str> {
    let analysis = analyse(record);
    ["level-within-trials", "gradual-change", "no-level-change"]
        .into_iter()
        .filter(|name| !named(name, &analysis).is_empty())
        .collect()
}

/// The only finding of a name, and the first line.
fn said(name: &str, record: &RunRecord) -> String {
    let analysis = analyse(record);
    let first = conclusions(&analysis, &[])[0].text.clone();
    format!("{}\n{first}", only(named(name, &analysis)))
}

#[test]
fn every_level_is_reported_with_its_beginning() {
    let slow_range = |at: f64| {
        if (0.2..0.85).contains(&at) {
            21.0
        } else {
            105.0
        }
    };
    let two_cliffs = |at: f64| match at {
        _ if at < 0.25 => 82.0,
        _ if at < 0.55 => 33.0,
        _ => 12.0,
    };
    let recovering = |at: f64| {
        if (at * 5.0).fract() < 0.5 {
            100.0
        } else {
            25.0
        }
    };
    let told = [
        said("level-within-trials", &soak(200, slow_range)),
        said("level-within-trials", &soak(200, two_cliffs)),
        said("level-within-trials", &soak(200, recovering)),
    ];
    insta::assert_snapshot!(told.join("\n\n"), @"
    Within a trial throughput rose 5.00× with 1 MiB: 210 MB/s, then 1050 MB/s from 17.0 s (6.45 GiB written) on. All levels: 1048 MB/s; 210 MB/s from 4.00 s (3.90 GiB written) on; 1050 MB/s from 17.0 s (6.45 GiB written) on. Shorter or longer trials would give other results.
    write-size on /data: throughput 210 MB/s to 1050 MB/s over time (1 MiB), from the device; fewer trials than the 6 that an interval needs

    Within a trial throughput fell 2.75× with 1 MiB: 330 MB/s, then 120 MB/s from 11.0 s (5.66 GiB written) on. All levels: 818 MB/s; 330 MB/s from 5.00 s (3.81 GiB written) on; 120 MB/s from 11.0 s (5.66 GiB written) on. Shorter or longer trials would give other results.
    write-size on /data: throughput 120 MB/s to 818 MB/s over time (1 MiB), from the device; fewer trials than the 6 that an interval needs

    Within a trial throughput rose 4.03× with 1 MiB: 249 MB/s, then 1005 MB/s from 4.00 s (2.32 GiB written) on. All levels: 999 MB/s; 249 MB/s from 2.00 s (1.86 GiB written) on; 1005 MB/s from 4.00 s (2.32 GiB written) on; and 7 more. Shorter or longer trials would give other results.
    write-size on /data: throughput 249 MB/s to 1005 MB/s over time (1 MiB), from the device; fewer trials than the 6 that an interval needs
    ");
}

#[test]
fn decline_without_a_step_is_reported() {
    let decline = |at: f64| 41.0 / (1.0 + 6.0 * (at - 0.08_f64).max(0.0));
    let told = [
        said("gradual-change", &soak(190, decline)),
        said("gradual-change", &soak(190, |at| 50.0 * (1.0 + at))),
        said(
            "level-within-trials",
            &soak(190, |at| match at < 0.08 {
                true => 41.0,
                false => 4.0 * 4.0_f64.powf((at * 3.0).fract()),
            }),
        ),
        said(
            "gradual-change",
            &soak(190, |at| 50.0 * 1.5_f64.powf((2.0 * at - 1.0).abs())),
        ),
    ];
    insta::assert_snapshot!(told.join("\n\n"), @"
    Within a trial throughput gradually fell 6.14× with 1 MiB. First tenth: 407 MB/s. Last tenth: 66.2 MB/s. Shorter or longer trials would give other results.
    write-size on /data: throughput 407 MB/s in the first tenth of the trial, 66.2 MB/s in the last (1 MiB), from the device; fewer trials than the 6 that an interval needs

    Within a trial throughput gradually rose 1.84× with 1 MiB. First tenth: 527 MB/s. Last tenth: 971 MB/s. Shorter or longer trials would give other results.
    write-size on /data: throughput 527 MB/s in the first tenth of the trial, 971 MB/s in the last (1 MiB), from the device; fewer trials than the 6 that an interval needs

    Within a trial throughput fell 4.81× with 1 MiB: 408 MB/s, then 84.7 MB/s from 1.60 s (622 MiB written) on. Shorter or longer trials would give other results.
    write-size on /data: throughput 408 MB/s, after 1.60 s (622 MiB written) 84.7 MB/s (1 MiB), from the device; fewer trials than the 6 that an interval needs

    Within a trial throughput varied with 1 MiB. Lowest tenth: 522 MB/s. Highest tenth: 722 MB/s. Shorter or longer trials would give other results.
    write-size on /data: throughput 522 MB/s to 722 MB/s over time (1 MiB), from the device; fewer trials than the 6 that an interval needs
    ");
    assert_eq!(names(&soak(190, decline)), ["gradual-change"]);
}

#[test]
fn no_change_states_the_detectable_change() {
    let flat = soak(200, |_| 100.0);
    assert_eq!(names(&flat), ["no-level-change"]);
    let collected = soak(200, |at| 100.0 * (1.0 - 0.6 * (at * 25.0).fract()));
    assert_eq!(names(&collected), ["no-level-change"]);
    let told = [
        only(named("no-level-change", &analyse(&flat))),
        only(named("no-level-change", &analyse(&collected))),
        only(named("no-level-change", &analyse(&soak(30, |_| 100.0)))),
    ];
    insta::assert_snapshot!(told.join("\n\n"), @"
    No lasting change of throughput was found within a trial with 1 MiB. Least step for a quarter of a trial that would have been found in each cell: 1.30×. Least steady drift over a trial that would have been found in each cell: 1.30×.

    No lasting change of throughput was found within a trial with 1 MiB. Least step for a quarter of a trial that would have been found in each cell: 5.00×. Least steady drift over a trial that would have been found in each cell: 5.00×.

    No lasting change of throughput was found within a trial with 1 MiB. Least step for a quarter of a trial that would have been found in each cell: 1.30×.
    ");
}

#[test]
fn rounds_of_writes_name_the_least_steady_target() {
    let rounds = |name: &str, targets: &[(Option<&str>, f64)]| {
        let sets = ["bs=4k", "sync=none", "precondition=steady"];
        let (mut record, _) = Scenario::of("write-random", &sets).run(1);
        for round in 1..=5_u32 {
            let steps = targets.iter().map(|(target, grows)| PreparationStep {
                at_utc: record.run.started_utc.clone(),
                kind: PreparationKind::Round,
                number: round,
                ok: true,
                bs: Some(4096),
                target: target.map(str::to_owned),
                requests: (1e6 * (1.0 + grows * f64::from(round))) as u64,
                elapsed_ns: 60_000_000_000,
                ..PreparationStep::default()
            });
            let steps: Vec<PreparationStep> = steps.collect();
            record.preparation.extend(steps);
        }
        only(named(name, &analyse(&record)))
    };
    let told = [
        rounds("steady-rounds", &[(None, 0.0)]),
        rounds(
            "rounds-not-steady",
            &[(Some("/a"), 0.0), (Some("/b\u{1b}"), 1.0)],
        ),
    ];
    insta::assert_snapshot!(told.join("\n\n"), @r"
    Steady by the limits asked after 5 rounds of random writes before the first trial: over the last 5 rounds, IOPS on /data ranges over 0.0 % (20 % allowed) of its mean with a slope of 0.0 % (10 % allowed).

    NOT steady after 5 rounds of random writes before the first trial: over the last 5 rounds, IOPS on /b\u{1b} ranges over 100 % (20 % allowed) of its mean with a slope of 100 % (10 % allowed). At least as steady: 1 other target. More rounds=N in --precondition may reach it.
    ");
}
