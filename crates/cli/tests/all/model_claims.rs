//! What is claimed of modelled disks, against what their definitions and the numbers of a run without noise say. Each run here was once
//! reported wrongly.

use std::fs;
use std::path::Path;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::CellAnalysis;
use iolab_analysis::claim::{
    ChangePlace, Claim, Comparison, Contrast, Difference, Effect, Role, Standing, State, choices,
    claims, headlines, two_groups,
};
use iolab_analysis::timeline::Levels;

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
    all.iter().filter_map(|claim| match claim {
        Claim::Comparison(comparison) => Some(comparison),
        _ => None,
    })
}

/// Factor and level of a cell as text, for messages and for finding an effect.
fn at(effect: &Effect) -> String {
    let held = effect.held.iter();
    let held: Vec<String> = held
        .map(|(name, level)| format!("{name}={level}"))
        .collect();
    held.join(" ")
}

/// A policy of syncs is one of the writes: reads have none.
#[test]
fn a_policy_of_syncs_is_said_of_the_writes_alone() {
    let folder = folder();
    let sets =
        words!("write-vs-read model:sata-ssd --set bs=4k --set sync=none,odsync --set time=250ms");
    measured(folder.path(), &sets);
    let table = words!("table run.iolab --format json");
    let table = run(folder.path(), &table).expect(0).stdout;
    let table: serde_json::Value = serde_json::from_str(&table).expect("JSON");
    let claims = table["claims"].as_array().expect("claims").iter();
    let sentences = claims.filter_map(|claim| claim["sentence"].as_str());
    let of_syncs: Vec<&str> = sentences.filter(|one| one.contains("sync=")).collect();
    insta::assert_snapshot!(of_syncs.join("\n"), @r"
    Random writes (sync=odsync) give 0.122 times (0.122 to 0.123) the IOPS of random reads at depth=1 (1226 IOPS against 10013 IOPS). Random writes (sync=none) give 4.22 times (4.22 to 4.24) the IOPS of random reads at depth=1 (42289 IOPS against 10013 IOPS). Of 4 comparisons: 1 higher, 2 lower, 1 equivalent within 5 %.
    sync=odsync gives 1/34.5 (1/34.5 to 1/34.5) of the IOPS of sync=none at depth=1 (1226 IOPS against 42289 IOPS). Of 2 comparisons: 2 lower.
    depth=32 gives 23.3 times (23.3 to 23.3) the IOPS of depth=1 at workload=WR, sync=odsync (28526 IOPS against 1226 IOPS). Of 3 comparisons with depth=1: 3 higher.
    ");
}

#[test]
fn reads_of_a_grid_are_not_reported_as_writes() {
    let folder = folder();
    let sets = words!("disk-grid model:sata-ssd --set bs=4k,64k --threads 1,2");
    let grid = measured(folder.path(), &sets);
    let all = claims(&[grid.analysis()]);
    let random = |reads: u8| {
        let of = move |one: &&Comparison| {
            one.contrast
                == Contrast::Pattern {
                    read_percent: reads,
                }
        };
        comparisons(&all).find(of).expect("both were measured")
    };
    // The model reads at random more slowly where one request waits for another, and writes into a cache alike.
    let reads = random(100);
    for place in ["bs=4KiB threads=1", "bs=64KiB threads=1"] {
        let effect = reads.effects.iter().find(|one| at(one) == place);
        assert_eq!(
            effect.expect(place).difference,
            Difference::Lower,
            "{place}"
        );
    }
    let writes = random(0).effects.iter();
    assert!(
        writes.clone().count() == 4
            && writes
                .clone()
                .all(|e| e.difference == Difference::Equivalent)
    );
    // Threads help in most settings and cost in one: both stand in one claim.
    let threads = comparisons(&all).find(|one| matches!(one.contrast, Contrast::Ordered { .. }));
    let threads = threads.expect("two levels");
    assert!(threads.of(Difference::Higher).count() >= 5);
    assert_eq!(threads.of(Difference::Lower).count(), 1);
}

/// What writes leave in the cache of a drive is written out before others read: between writes reads are as fast as by themselves. The drive of
/// this model would else write small blocks for longer than a trial lasts.
#[test]
fn reads_beside_writes_are_as_fast_as_reads_alone() {
    let sizes = "disk-grid model:sata-7200 --set bs=4k,64k --threads 1";
    let medians = |more: &[&str]| -> Vec<f64> {
        let folder = folder();
        let sets: Vec<&str> = sizes.split(' ').chain(more.iter().copied()).collect();
        let run = measured(folder.path(), &sets);
        let analysis = run.analysis();
        assert_eq!(analysis.reads_after_writes(), 0);
        let reads = analysis.cells.iter();
        let reads = reads.filter(|cell| !cell.cell.trial().writes());
        let throughput = reads.map(|cell| cell.response.expect("measured").median);
        throughput.collect()
    };
    let (beside, alone) = (medians(&[]), medians(&["--set", "workload=RS,RR"]));
    assert_eq!((beside.len(), alone.len()), (4, 4));
    for (beside, alone) in beside.iter().zip(&alone) {
        let ratio = beside / alone;
        assert!((0.8..1.25).contains(&ratio), "{beside} MB/s, {alone} MB/s");
    }
}

/// A skip that is waited for costs; a skip after which no rotation is lost gains.
#[test]
fn skips_that_gain_are_claimed_as_skips_that_cost() {
    let folder = folder();
    let sets = words!("write-stride model:sata-7200 --set bs=128k,256k");
    let skips = measured(folder.path(), &sets);
    let all = claims(&[skips.analysis()]);
    let skip = comparisons(&all).next().expect("skips are compared");
    let most = |difference| skip.of(difference).map(Effect::size).fold(0.0, f64::max);
    assert!(most(Difference::Higher) > 3.0_f64.ln(), "{skip:?}");
    assert!(most(Difference::Lower) > 0.0);
}

#[test]
fn a_saturated_device_has_as_many_requests_in_flight_as_asked() {
    let folder = folder();
    let sets = words!(
        "write-random model:nvme-970pro --set bs=4k --set sync=none --set backend=io_uring --depth 1,32,128 --budget 20 --time 50ms"
    );
    let deep = measured(folder.path(), &sets);
    let all = claims(&[deep.analysis()]);
    assert!(
        !all.iter().any(|claim| matches!(claim, Claim::TooFew(_))),
        "{all:?}"
    );
    let asked: Vec<f64> = deep
        .analysis()
        .cells
        .iter()
        .filter_map(|cell| Some(cell.concurrency?.in_flight? / cell.concurrency?.asked as f64))
        .collect();
    assert!(
        asked.len() == 3 && asked.iter().all(|share| *share > 0.95),
        "{asked:?}"
    );
}

/// The run of a command on a drive whose fast flash takes 14.8 GiB: an eighth of model:qlc-slc-cached, which is computed in an eighth
/// of the time.
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

/// 1800 MB/s as long as 14.8 GiB of fast flash last, and 101 MB/s afterwards.
#[test]
fn a_drive_whose_cache_is_not_full_yet_is_not_steady() {
    let folder = folder();
    let short = on_small_qlc(folder.path(), &words!("--time 40s --budget 400s"));
    let states = claims(&[short.analysis()]);
    let early = |claim: &Claim| matches!(claim, Claim::Steady(steady) if matches!(steady.state, State::NotWrittenOver { .. }));
    assert!(states.iter().any(early), "{states:?}");
}

#[test]
fn a_cache_that_fills_up_in_the_warm_up_comes_first() {
    let folder = folder();
    let sets = words!("--set bytes=none --time 25s --budget 400s");
    let long = on_small_qlc(folder.path(), &sets);
    let all = claims(&[long.analysis()]);
    let first = headlines(&all);
    let Some(Claim::Change(change)) = first.first() else {
        panic!("{first:?}");
    };
    assert!(matches!(
        change.place,
        ChangePlace::InWarmUp | ChangePlace::WithinTrials { .. }
    ));
    assert!(change.factor < 0.1, "{change:?}");
    let gib = change.after_bytes / f64::from(1 << 30);
    assert!((14.0..15.5).contains(&gib), "{gib} GiB");
}

/// Two or three trials are too few to tell levels between them; the course inside one and its neighbours tell.
#[test]
fn a_cache_that_fills_up_inside_one_of_few_trials_is_a_change_of_the_run() {
    for time in ["2500ms", "7500ms"] {
        let folder = folder();
        let sets = [&words!("--set bytes=none --budget 11s --time")[..], &[time]].concat();
        let few = on_small_qlc(folder.path(), &sets);
        assert!(few.analysis().cells[0].n < 6);
        let all = claims(&[few.analysis()]);
        let Some(Claim::Change(change)) = headlines(&all).first().copied().cloned() else {
            panic!("{all:?}");
        };
        let is_of_run = |place| {
            matches!(
                place,
                ChangePlace::OverRun {
                    levels: Levels::Time { .. },
                    ..
                }
            )
        };
        assert!(is_of_run(change.place), "{change:?}");
        assert!(change.factor < 0.1, "{change:?}");
        let gib = change.after_bytes / f64::from(1 << 30);
        assert!((14.0..15.5).contains(&gib), "{gib} GiB");
        let changes = all.iter().filter(|claim| matches!(claim, Claim::Change(_)));
        assert_eq!(changes.count(), 1, "{all:?}");
    }
}

/// Half of the trials of each cell lie before the cache is full: their median is that of no trial.
#[test]
fn a_median_between_two_levels_is_called_that() {
    let folder = folder();
    let halves = measured(folder.path(), &words!("write-stride model:qlc-slc-cached"));
    let all = claims(&[halves.analysis()]);
    let change = all.iter().find_map(|claim| match claim {
        Claim::Change(change) => Some(change),
        _ => None,
    });
    assert!(
        change.is_some_and(|change| change.factor < 0.2),
        "{change:?}"
    );
    let split = two_groups(halves.analysis(), 0, |_| true);
    let split = split.expect("three of six trials at each level");
    // But for the cell in whose trial the cache fills up.
    let is_between = |cell: &&CellAnalysis| {
        let median = cell.response.expect("measured").median;
        let mut values = cell.values.iter();
        !values.any(|value| (value / median).ln().abs() < 0.05)
    };
    let between = halves.analysis().cells.iter().filter(is_between);
    let untold = between.filter(|cell| !split.cells.iter().any(|id| id.cell == cell.cell.id));
    assert!(untold.count() <= 1);
    let best = all.iter().find_map(|claim| match claim {
        Claim::Best(curves) => Some(curves),
        _ => None,
    });
    let told = best.into_iter().flatten().flat_map(|best| &best.candidates);
    let mut told = told.filter(|one| split.cells.contains(&one.cell));
    assert!(told.all(|one| one.groups.is_some()));
}

/// The experiment asks which way is fastest; no factor by itself answers that.
#[test]
fn ways_of_keeping_requests_in_flight_are_compared_with_each_other() {
    let folder = folder();
    let four = measured(folder.path(), &words!("in-flight model:sata-ssd"));
    let all = claims(&[four.analysis()]);
    let first = headlines(&all);
    let [Claim::Ways(ways), rest @ ..] = first.as_slice() else {
        panic!("{first:?}");
    };
    assert!(
        !rest
            .iter()
            .any(|claim| matches!(claim, Claim::Comparison(_)))
    );
    let of = |standing| {
        ways.candidates
            .iter()
            .filter(move |one| one.standing == standing)
    };
    // A model has no host: all ways with 16 in flight are alike, and one at a time is a ninth.
    assert_eq!(
        (of(Standing::Near).count(), of(Standing::Worse).count()),
        (4, 1)
    );
}

/// A stall says nothing of how good a size can be.
#[test]
fn a_size_that_stalls_at_a_hundredth_of_the_best_is_worse() {
    let folder = folder();
    let volume = measured(folder.path(), &words!("write-size model:cloud-volume"));
    let all = claims(&[volume.analysis()]);
    let best = all.iter().find_map(|claim| match claim {
        Claim::Best(curves) => curves.first(),
        _ => None,
    });
    let best = best.expect("one curve");
    let far = |bs: u64| best.candidates.iter().find(|one| one.bs == bs);
    for bs in [4 << 10, 16 << 10] {
        assert_eq!(
            far(bs).map(|one| one.standing),
            Some(Standing::Worse),
            "{best:?}"
        );
    }
}

#[test]
fn a_study_says_nothing_twice_and_only_what_it_found() {
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
    // What is called simple is close to the best.
    let simplest = choices(&analyses);
    let close = simplest
        .iter()
        .filter_map(|choice| choice.simplest.as_ref());
    for (_, estimate) in close {
        let (low, _) = estimate.interval.expect("an interval");
        assert!(low >= 0.95, "{estimate:?}");
    }
    // Each run by itself makes the claims that the study makes of it.
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

/// One trial of each cell ranks nothing.
#[test]
fn one_trial_ranks_no_size() {
    let folder = folder();
    let sets = words!("read-size model:sata-ssd --set trials_max=1 --set trials_min=1");
    let once = measured(folder.path(), &sets);
    let all = claims(&[once.analysis()]);
    assert!(once.analysis().cells.iter().all(|cell| cell.n == 1));
    assert!(headlines(&all).is_empty(), "{:?}", headlines(&all));
}

/// Half of 60 s of trials are at 3000 requests a second, the others at 300: bursts last for 20 s.
#[test]
fn credits_that_run_out_are_a_change_for_reads_and_writes_alike() {
    for (experiment, sync) in [("write-random", "sync=none"), ("read-random", "sync=none")] {
        let folder = folder();
        fs::write(folder.path().join("credits.toml"), CREDITS).expect("a model");
        let sets = words!(
            "--set backend=io_uring --set bs=4k --depth 32 --time 1s --set bytes=none --set trials_min=40 --budget 200s"
        );
        let model = [experiment, "model:credits.toml", "--set", sync];
        let run = measured(folder.path(), &[&model[..], &sets].concat());
        let all = claims(&[run.analysis()]);
        let Some(Claim::Change(change)) = headlines(&all).first().copied().cloned() else {
            panic!("{all:?}");
        };
        assert!(
            matches!(change.place, ChangePlace::OverRun { .. }),
            "{change:?}"
        );
        assert!((change.factor - 0.1).abs() < 0.01, "{change:?}");
        let seconds = change.after_ns as f64 / 1e9;
        assert!((19.0..21.0).contains(&seconds), "{experiment}: {seconds} s");
    }
}

/// A disk that stalls every 15 s keeps a maximum at no rate, whichever rates the stalls hit.
#[test]
fn stalls_at_any_rate_leave_no_limit_of_a_maximum() {
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
    insta::assert_snapshot!(answer.join("\n"), @r"
    load-latency on model:rare.toml: cannot tell the limit: the level failed at one rate and held at a
      higher one.
    ");
}
