//! Claims about modelled disks, compared with the definitions and with runs without noise. Each run here was
//! once reported wrongly.

use std::fs;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::{
    Claim, Comparison, LevelChange, Payload, Role, Standing, choices, claims, headlines,
};

use crate::computed::CREDITS;
use crate::support::words::words;
use crate::support::{folder, run};

/// The run of a command in a folder, analysed.
fn measured(folder: &Path, arguments: &[&str]) -> AnalysedRun {
    let arguments = [&["run"], arguments, &["--seed", "3", "-o", "run.iolab"]].concat();
    run(folder, &arguments).expect(0);
    read(folder, "run.iolab")
}

fn read(folder: &Path, file: &str) -> AnalysedRun {
    AnalysedRun::of(iolab_runfile::read(&folder.join(file)).expect("a run file"))
}

fn comparisons(all: &[Claim]) -> impl Iterator<Item = &Comparison> {
    all.iter().filter_map(Claim::comparison)
}

/// The change between two levels that a claim states.
fn level_change(claim: &Claim) -> Option<&LevelChange> {
    match &claim.payload {
        Some(Payload::LevelChange(change)) => Some(change),
        _ => None,
    }
}

/// The analysed run of a command on a drive whose fast flash takes 14.8 GiB: an eighth of model:qlc-slc-cached,
/// simulated in an eighth of the time.
fn on_small_qlc(folder: &Path, arguments: &[&str]) -> AnalysedRun {
    let shown = run(folder, &words!("model show qlc-slc-cached")).expect(0);
    let mut model = shown.stdout;
    for (whole, eighth) in [
        ("blocks = 680", "blocks = 85"),
        ("fixed = 12_000_000_000", "fixed = 1_500_000_000"),
    ] {
        assert_eq!(model.matches(whole).count(), 1, "{whole}");
        model = model.replace(whole, eighth);
    }
    fs::write(folder.join("small.toml"), model).expect("a model");
    let deep = words!(
        "write-size model:small.toml --size 50G --set bs=128k --set sync=none --set backend=io_uring --depth 32"
    );
    measured(folder, &[&deep[..], arguments].concat())
}

#[test]
fn cache_that_fills_in_warm_up_comes_first() {
    let folder = folder();
    let sets = words!("--set bytes=none --time 25s --budget 400s");
    let long = on_small_qlc(folder.path(), &sets);
    let all = claims(&[long.analysis()]);
    let first = headlines(&all);
    let change = first.first().and_then(|claim| level_change(claim));
    let change = change.unwrap_or_else(|| panic!("{first:?}"));
    assert!(!change.is_of_run, "{change:?}");
    assert!(change.factor() < 0.1, "{change:?}");
    let gib = change.since.bytes / f64::from(1 << 30);
    assert!((14.0..15.5).contains(&gib), "{gib} GiB");
}

/// The experiment asks for the fastest way; no single factor answers that.
#[test]
fn ways_to_keep_requests_in_flight_are_compared() {
    let folder = folder();
    let four = measured(folder.path(), &words!("in-flight model:sata-ssd"));
    let all = claims(&[four.analysis()]);
    let first = headlines(&all);
    let [first, rest @ ..] = first.as_slice() else {
        panic!("{first:?}");
    };
    let [ways] = first.best() else {
        panic!("{first:?}");
    };
    assert!(ways.is_of_ways);
    assert!(!rest.iter().any(|claim| claim.comparison().is_some()));
    let of = |standing| {
        ways.candidates
            .iter()
            .filter(move |one| one.standing == standing)
    };
    // A model has no host: all ways with 16 requests in flight are alike, and one request at a time has a ninth.
    assert_eq!(
        (of(Standing::Near).count(), of(Standing::Worse).count()),
        (4, 1)
    );
}

#[test]
fn study_repeats_nothing_and_reports_only_findings() {
    let folder = folder();
    let study = words!("study model:sata-ssd --suite quick --seed 5 -o ssd");
    let printed = run(folder.path(), &study).expect(0).stdout;
    assert!(printed.lines().count() <= 40, "{printed}");
    let names = [
        "read-size", "read-random", "write-size", "write-random", "disk-grid",
    ];
    let found = names.iter().map(|name| format!("ssd/{name}.iolab"));
    let found = found.filter(|file| folder.path().join(file).exists());
    let runs: Vec<AnalysedRun> = found.map(|file| read(folder.path(), &file)).collect();
    assert!(runs.len() > 1);
    let analyses: Vec<_> = runs.iter().map(AnalysedRun::analysis).collect();
    let all = claims(&analyses);
    let first = headlines(&all);
    assert!(first.iter().all(|claim| claim.role() <= Role::Equivalence));
    for (place, claim) in first.iter().enumerate() {
        let again = first[place + 1..].iter();
        assert!(
            !again
                .clone()
                .any(|other| (other.kind(), other.runs()) == (claim.kind(), claim.runs()))
        );
    }
    // The simplest choice is close to the best.
    let simplest = choices(&analyses);
    for choice in &simplest {
        let best = choice.of(Standing::Main).next().expect("the best").value;
        let mut close = choice.of(Standing::Near);
        assert!(close.all(|one| one.value >= 0.95 * best), "{choice:?}");
    }
    // Each run alone has the same claims as in the study.
    for (place, run) in runs.iter().enumerate() {
        let alone = claims(&[run.analysis()]);
        let within = comparisons(&all).filter(|one| {
            one.effects
                .iter()
                .all(|e| e.other.run == place && e.base.run == place)
        });
        let mine = comparisons(&alone).map(|one| {
            one.effects
                .iter()
                .map(|e| (e.other.cell, e.difference))
                .collect::<Vec<_>>()
        });
        let in_study = within.map(|one| {
            one.effects
                .iter()
                .map(|e| (e.other.cell, e.difference))
                .collect::<Vec<_>>()
        });
        assert_eq!(mine.collect::<Vec<_>>(), in_study.collect::<Vec<_>>());
    }
}

/// In 60 s of trials, half of the time has 3000 requests per second, the rest 300: bursts last 20 s.
#[test]
fn exhausted_credits_are_a_change_of_both_directions() {
    for (experiment, sync) in [("write-random", "sync=none"), ("read-random", "sync=none")] {
        let folder = folder();
        fs::write(folder.path().join("credits.toml"), CREDITS).expect("a model");
        let sets = words!(
            "--set backend=io_uring --set bs=4k --depth 32 --time 1s --set bytes=none --set trials_min=40 --budget 200s"
        );
        let model = [experiment, "model:credits.toml", "--set", sync];
        let run = measured(folder.path(), &[&model[..], &sets].concat());
        let all = claims(&[run.analysis()]);
        let first = headlines(&all).first().copied();
        let change = first.and_then(level_change);
        let change = change.unwrap_or_else(|| panic!("{all:?}"));
        assert!(change.is_of_run, "{change:?}");
        assert!((change.factor() - 0.1).abs() < 0.01, "{change:?}");
        let seconds = change.since.ns as f64 / 1e9;
        assert!((19.0..21.0).contains(&seconds), "{experiment}: {seconds} s");
    }
}

/// A disk that stalls every 15 s keeps a maximum at no rate, whatever rates the stalls hit.
#[test]
fn stalls_at_any_rate_leave_maximum_without_limit() {
    let folder = folder();
    let model = "title = 'rare long stalls'\nsource = ['made up']\n\
        [model.stall]\nstall_ms = 300.0\nmean_ms = 15000.0\n\
        inner.latency = { read_us = 200.0, write_us = 200.0, inner.memory = 10737418240 }\n";
    fs::write(folder.path().join("rare.toml"), model).expect("written");
    let search = words!(
        "run load-latency model:rare.toml --slo max<10ms --budget 8s --seed 3 -o rare.iolab"
    );
    let said = run(folder.path(), &search).expect(5).stdout;
    let answer: Vec<&str> = said.lines().take(2).collect();
    insta::assert_snapshot!(answer.join("\n"), @"
    load-latency on model:rare.toml: cannot tell the limit: the level failed at one rate and held at a
    higher one.
    ");
}
