//! Claims in words: each kind if it is shown, if nothing is, and if it could be false.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_analysis::claim::of_runs;
use iolab_record::{RunRecord, ServedBy};
use iolab_report::findings::{Finding, choices, cross_findings};
use iolab_synthetic::{add_cell, add_trial, around, record, serve, size_curve};
use iolab_workload::trial::{Pattern, SyncPolicy};

use crate::{named, text};

/// A run with a cell of eight trials for each of these levels.
fn run(factors: &[&str], cells: &[(&str, f64)]) -> RunRecord {
    let mut record = record("made-up", factors);
    for (levels, mb_s) in cells {
        let levels: Vec<&str> = levels.split(' ').collect();
        add_cell(&mut record, &levels, &around(*mb_s));
    }
    record
}

/// A side that owes more time to a cache may owe its advantage to it.
#[test]
fn owed_time_can_turn_a_difference() {
    let of = |owed: [u64; 2]| {
        let cells = ["idle=0s read_percent=0", "idle=1s read_percent=0"];
        let mut record = run(
            &["idle", "read_percent"],
            &[(cells[0], 20.0), (cells[1], 200.0)],
        );
        for cell in &mut record.cells {
            cell.spec.trial.sync = SyncPolicy::None;
        }
        for sample in &mut record.samples {
            sample.region.owed_sync_ns = Some(sample.elapsed_ns * owed[sample.cell as usize]);
        }
        text(&named("effect", &analyse(&record)))
    };
    for (owed, bound) in [
        ([0, 0], ""),
        ([0, 5], "at most "),
        ([20, 20], ""),
        ([20, 100], "at most "),
        ([100, 0], "at least "),
    ] {
        let shown = format!(
            "Throughput with idle 1 s is {bound}10.0× higher than with no idle (200 MB/s against 20.0 MB/s)."
        );
        assert_eq!(of(owed), shown, "{owed:?}");
    }
    insta::assert_snapshot!(of([0, 20]), @"No difference in throughput is shown between idle 1 s and no idle. Cannot tell (results exclude the time to store what was left in a cache of the storage (2000 % of a trial)).");
    assert!(of([1, 30]).contains("Cannot tell"));
}

/// A level that the sentence leaves out would seem to differ from the equivalent ones.
#[test]
fn all_equivalent_levels_are_named_together() {
    let waits = |levels: &[(&str, f64)]| run(&["idle"], levels);
    let levels = |record: &RunRecord| text(&named("effect", &analyse(record)));
    let alike = waits(&[("idle=0s", 20.0), ("idle=1s", 20.0), ("idle=10s", 20.1)]);
    insta::assert_snapshot!(levels(&alike), @"No difference in throughput is shown between idle 1 s or 1 more and no idle. Equivalent within 5 %: idle 1 s; idle 10 s.");
    let one_alike = waits(&[("idle=0s", 20.0), ("idle=1s", 20.0), ("idle=10s", 40.0)]);
    insta::assert_snapshot!(levels(&one_alike), @"Throughput with idle 10 s is 2.00× higher than with no idle (40.0 MB/s against 20.0 MB/s). Equivalent within 5 %: idle 1 s.");
    // Two sizes for each wait.
    let mut grid = record("made-up", &["idle", "bs"]);
    for idle in ["0s", "1s", "5s", "10s"] {
        for bs in ["4KiB", "64KiB"] {
            let levels = [format!("idle={idle}"), format!("bs={bs}")];
            let levels = levels.each_ref().map(String::as_str);
            add_cell(&mut grid, &levels, &around(20.0));
        }
    }
    insta::assert_snapshot!(levels(&grid), @"No difference in throughput is shown between idle 1 s or 2 more and no idle. Equivalent within 5 %: idle 1 s, 4 KiB; idle 1 s, 64 KiB; idle 5 s, 4 KiB; and 3 more.");
}

/// A run that has both patterns compares them itself; two runs with one pattern each are compared together.
#[test]
fn comparison_within_a_run_is_not_repeated() {
    let sequential = analyse(&run(&["pattern"], &[("pattern=seq", 100.0)]));
    let across = |random: &RunRecord| of_runs(&[&analyse(random), &sequential]).across.len();
    let both = [("pattern=seq", 100.0), ("pattern=rand", 50.0)];
    assert_eq!(across(&run(&["pattern"], &both)), 0);
    assert_eq!(across(&run(&["pattern"], &both[1..])), 1);
}

/// A size that is near may still be shown to be worse, and is then not listed among the possibly best ones.
#[test]
fn near_sizes_and_candidates_for_best_are_distinguished() {
    let mut sizes = record("read-size", &["bs"]);
    add_cell(&mut sizes, &["bs=64KiB"], &[300.0; 8]);
    add_cell(&mut sizes, &["bs=1MiB"], &[495.0; 8]);
    let mut scattered = [450.0; 8];
    scattered[3] = 501.0;
    add_cell(&mut sizes, &["bs=16MiB"], &scattered);
    add_cell(&mut sizes, &["bs=64MiB"], &[500.0; 8]);
    let best = &named("best-size", &analyse(&sizes))[0].text;
    insta::assert_snapshot!(best, @"Best throughput: 500 MB/s with 64 MiB. Within 5 % of it: 1 MiB. Not shown to differ: 16 MiB. Worse: 1.67× lower with 64 KiB.");
}

/// One slow trial of the best size hides in nine blocks what each of them shows. The text names the blocks that
/// are needed.
#[test]
fn lower_sizes_state_the_blocks_that_show_it() {
    let curve = |least: f64, trials: usize| {
        let mut sizes = record("read-size", &["bs"]);
        add_cell(&mut sizes, &["bs=2KiB"], &vec![least; trials]);
        for (place, size) in (0..).zip(["4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]) {
            let level = 463.0 - f64::from(place % 4);
            add_cell(&mut sizes, &[&format!("bs={size}")], &vec![level; trials]);
        }
        let mut best = vec![550.0; trials];
        best[1] = 470.0;
        add_cell(&mut sizes, &["bs=1MiB"], &best);
        analyse(&sizes)
    };
    let told = [curve(463.0, 9), curve(50.0, 9), curve(50.0, 11)];
    let told = told.map(|run| named("best-size", &run)[0].text.clone());
    insta::assert_snapshot!(told.join("\n"), @"
    No I/O size is shown to give a lower throughput than another. Worse in each block: 128 KiB; 64 KiB; 32 KiB; and 4 more. Measured for an interval: 9 of 11 blocks.
    Best throughput: 550 MB/s with 1 MiB. Worse in each block: 128 KiB; 64 KiB; 32 KiB; and 3 more. Measured for an interval: 9 of 11 blocks. Worse: 11.0× lower with 2 KiB.
    Best throughput: 550 MB/s with 1 MiB. Worse: 1.19× lower with 128 KiB; 1.19× lower with 64 KiB; 1.20× lower with 32 KiB; and 4 more.
    ");
}

fn random(points: &[(&str, f64)]) -> RunRecord {
    let mut record = size_curve("read-random", points);
    for cell in &mut record.cells {
        cell.spec.trial.pattern = Pattern::Rand;
    }
    record
}

fn of_both(first: &RunRecord, second: &RunRecord) -> Vec<Finding> {
    let analyses: [Analysis; 2] = [analyse(first), analyse(second)];
    cross_findings(&analyses)
}

#[test]
fn runs_that_differ_only_in_pattern_are_compared() {
    let curve = [("4KiB", 60.0), ("64KiB", 300.0), ("1MiB", 500.0)];
    let slow = [("4KiB", 15.0), ("64KiB", 299.0), ("1MiB", 501.0)];
    let both = of_both(&size_curve("read-size", &curve), &random(&slow));
    insta::assert_snapshot!(text(&both));
    // Another depth is a different question, and another target a different disk.
    let mut deep = random(&slow);
    deep.cells
        .iter_mut()
        .for_each(|cell| cell.spec.trial.depth = 8);
    let mut elsewhere = random(&slow);
    elsewhere.run.target = "/elsewhere".to_owned();
    for other in [deep, elsewhere] {
        let found = of_both(&size_curve("read-size", &curve), &other);
        let is_compared = |finding: &Finding| finding.kind.name == "effect";
        assert!(both.iter().any(is_compared) && !found.iter().any(is_compared));
    }
}

#[test]
fn simpler_setting_is_offered_only_if_near() {
    let near = [("4KiB", 60.0), ("256KiB", 498.0), ("4MiB", 502.0)];
    let far = [("4KiB", 60.0), ("256KiB", 134.0), ("4MiB", 502.0)];
    let said = |points: &[(&str, f64)]| {
        let analysis = analyse(&size_curve("read-size", points));
        text(&choices(&[&analysis]))
    };
    insta::assert_snapshot!(format!("{}\n{}", said(&near), said(&far)));
    let mut once = size_curve("x", &near);
    once.samples.retain(|sample| sample.block <= 1);
    assert!(
        choices(&[&analyse(&once)]).is_empty(),
        "one trial shows no choice"
    );
    let mut cached = size_curve("x", &near);
    for cell in 0..3 {
        serve(&mut cached, cell, ServedBy::PageCache, "memory");
    }
    assert!(
        choices(&[&analyse(&cached)]).is_empty(),
        "memory is no storage"
    );
}

#[test]
fn steady_state_needs_an_overwritten_region() {
    let of = |region: u64| {
        let mut writes = record("write-size", &["bs"]);
        let cell = add_cell(&mut writes, &["bs=4KiB", "read_percent=0"], &around(100.0));
        writes.cells[cell].spec.trial.region = region;
        writes
    };
    // Each trial writes 1000 blocks of 4 KiB.
    let of_rule = |name: &str, writes: &RunRecord| text(&named(name, &analyse(writes)));
    insta::assert_snapshot!(of_rule("not-written-over", &of(1 << 30)), @"Not shown to have settled: 1 of 1 writing cell. The last 5 trials are alike, but only 1.5 % of the region was overwritten before them with 4 KiB. --precondition overwrites it first.");
    let mut restless = of(4 << 20);
    for mb_s in [50.0, 100.0, 60.0, 140.0, 90.0] {
        add_trial(&mut restless, 0, mb_s, false);
    }
    insta::assert_snapshot!(of_rule("not-steady", &restless), @"Not settled: 1 of 1 writing cell. The last 5 trials with 4 KiB spread over 102 % (20 % allowed) with a slope of 55 % (10 % allowed). The cause is scatter, not a shown slope: longer trials may reach it.");
    let mut falling = of(4 << 20);
    for mb_s in [90.0, 75.0, 60.0] {
        add_trial(&mut falling, 0, mb_s, false);
    }
    insta::assert_snapshot!(of_rule("not-steady", &falling), @"Not settled: 1 of 1 writing cell. The last 5 trials with 4 KiB spread over 47 % (20 % allowed) with a slope of 49 % (10 % allowed). More trials, --settle or --precondition may reach it.");
}
