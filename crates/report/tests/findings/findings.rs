//! Every rule, once where it speaks and once where it keeps silent.

use iolab_analysis::analysis::{Analysis, Flag, analyse};
use iolab_record::{RunRecord, RunStatus, ServedBy};
use iolab_report::findings::{
    Finding, below_precision, best_size, cost_of_skipping, cross_findings, dependence, drift,
    failed_trials, not_the_device, plateau, steady, two_groups, unfinished, writes_against_reads,
};
use iolab_workload::response::Response;
use iolab_workload::trial::{CacheState, Pattern};

use crate::{all_findings, text};
use iolab_synthetic::{add_cell, add_trial, around, record, serve, size_curve};

const BENT: [(&str, f64); 5] = [
    ("4KiB", 60.0),
    ("64KiB", 300.0),
    ("256KiB", 490.0),
    ("1MiB", 500.0),
    ("4MiB", 502.0),
];

fn bent() -> RunRecord {
    size_curve("read-size", &BENT)
}

#[test]
fn the_best_size_and_its_equals() {
    let found = text(&best_size(&analyse(&bent())));
    assert_eq!(
        found,
        "Highest throughput: 502 MB/s (95 % interval 497 to 507) at bs=4MiB. \
         Not distinguishable from it (overlapping median intervals): 1MiB."
    );
}

#[test]
fn a_clear_best_has_no_equals() {
    let found = text(&best_size(&analyse(&size_curve("x", &BENT[..3]))));
    assert!(
        found.ends_with("No other size's interval overlaps it."),
        "{found}"
    );
}

#[test]
fn too_few_trials_leave_the_best_open() {
    let mut record = record("x", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &[100.0, 101.0]);
    add_cell(&mut record, &["bs=8KiB"], &[300.0, 301.0]);
    let found = text(&best_size(&analyse(&record)));
    assert!(found.contains("(2 trials, no interval)"), "{found}");
    assert!(found.contains("Too few trials to say"), "{found}");
}

#[test]
fn latency_has_a_lowest() {
    let mut record = bent();
    record.experiment.response = Response::Latency;
    let found = text(&best_size(&analyse(&record)));
    assert!(
        found.starts_with("Lowest median latency: 68.3 us"),
        "{found}"
    );
    assert_eq!(plateau(&analyse(&record)), []);
}

#[test]
fn nothing_is_best_without_a_swept_size() {
    let mut record = record("x", &["threads"]);
    add_cell(&mut record, &["threads=1"], &around(10.0));
    add_cell(&mut record, &["threads=2"], &around(20.0));
    assert_eq!(best_size(&analyse(&record)), []);
    assert_eq!(plateau(&analyse(&record)), []);
}

#[test]
fn the_plateau_and_the_fall_below_it() {
    let found = text(&plateau(&analyse(&bent())));
    assert!(
        found.starts_with("From 256KiB up, throughput is within 5 % of the best (502 MB/s)"),
        "{found}"
    );
    assert!(
        found.contains("Below, it falls: 300 MB/s (95 % interval 297 to 303) at 64KiB"),
        "{found}"
    );
    assert!(
        found.contains("60.0 MB/s (95 % interval 59.4 to 60.6) at 4KiB"),
        "{found}"
    );
}

#[test]
fn a_hump_falls_on_both_sides() {
    let record = size_curve("x", &[("4KiB", 100.0), ("8KiB", 200.0), ("16KiB", 90.0)]);
    let found = text(&plateau(&analyse(&record)));
    assert!(
        found.starts_with("Only at 8KiB throughput is within 5 %"),
        "{found}"
    );
    assert!(
        found.contains("Above, it falls again: 90.0 MB/s"),
        "{found}"
    );
}

#[test]
fn a_size_that_cannot_be_told_from_the_best_belongs_to_the_plateau() {
    let mut record = bent();
    let noisy = record.cells.iter().position(|c| c.trial().bs == 256 << 10);
    let id = record.cells[noisy.expect("a size of BENT")].id;
    for (i, sample) in record.samples.iter_mut().enumerate() {
        if sample.cell == id {
            // A median of 450 MB/s whose interval reaches beyond the best.
            let mb_s = [450.0, 430.0, 600.0, 440.0, 460.0][i % 5];
            sample.elapsed_ns = (sample.bytes() as f64 * 1e3 / mb_s) as u64;
        }
    }
    let found = text(&plateau(&analyse(&record)));
    assert!(found.starts_with("From 256KiB up"), "{found}");
    assert!(found.contains("or indistinguishable from it"), "{found}");
}

#[test]
fn a_flat_curve_does_not_bend() {
    let record = size_curve("x", &[("4KiB", 100.0), ("8KiB", 101.0), ("16KiB", 100.5)]);
    assert!(
        text(&plateau(&analyse(&record)))
            .starts_with("At all sizes, 4KiB to 16KiB, throughput is within 5 % of the best")
    );
}

#[test]
fn two_points_are_no_curve_to_bend() {
    assert_eq!(plateau(&analyse(&size_curve("x", &BENT[..2]))), []);
}

fn strided(slow: f64) -> RunRecord {
    let mut record = record("read-stride", &["bs", "skip"]);
    for bs in ["128KiB", "1MiB"] {
        for (skip, mb_s) in [("4KiB", 400.0), ("1MiB", slow), ("4MiB", slow * 1.05)] {
            let levels = [format!("bs={bs}"), format!("skip={skip}")];
            add_cell(&mut record, &[&levels[0], &levels[1]], &around(mb_s));
        }
    }
    record
}

#[test]
fn skipping_costs() {
    let found = cost_of_skipping(&analyse(&strided(200.0)));
    assert_eq!(found.len(), 2);
    assert!(
        found[0]
            .text
            .starts_with("Skipping costs throughput with bs=128KiB: 400 MB/s"),
        "{}",
        found[0].text
    );
    assert!(
        found[0]
            .text
            .contains("200 MB/s (95 % interval 198 to 202) at 1MiB with the slowest"),
        "{}",
        found[0].text
    );
    assert!(
        found[0]
            .text
            .contains("ratio 0.500 (95 % interval 0.495 to 0.505)"),
        "{}",
        found[0].text
    );
}

#[test]
fn skipping_that_costs_nothing_is_not_accused() {
    let found = text(&cost_of_skipping(&analyse(&strided(400.0))));
    assert!(
        found.contains("No cost of larger skips is shown"),
        "{found}"
    );
    assert!(!found.contains("Skipping costs"), "{found}");
    assert_eq!(cost_of_skipping(&analyse(&bent())), []);
}

#[test]
fn cells_not_from_the_device_are_named_as_what_they_are() {
    let mut record = bent();
    for cell in 0..5 {
        serve(
            &mut record,
            cell,
            ServedBy::NotStorage,
            "a character device",
        );
    }
    let all = text(&all_findings(&analyse(&record)));
    assert!(all.contains("All cells came not from storage"), "{all}");
    assert_eq!(
        text(&best_size(&analyse(&record)))
            .matches("[not storage]")
            .count(),
        1
    );
    assert_eq!(
        text(&plateau(&analyse(&record)))
            .matches("[not storage]")
            .count(),
        3
    );
    for word in [
        "the disk's",
        "device's throughput",
        "device throughput",
        "disk throughput",
    ] {
        assert!(!all.contains(word), "{all}");
    }
}

#[test]
fn every_value_says_where_it_came_from() {
    let mut record = bent();
    serve(&mut record, 1, ServedBy::PageCache, "hot");
    let found = text(&plateau(&analyse(&record)));
    assert!(found.contains("at 64KiB [page cache], 60.0"), "{found}");
    assert_eq!(found.matches('[').count(), 1, "{found}");
}

#[test]
fn some_cells_from_the_page_cache() {
    let mut record = bent();
    serve(
        &mut record,
        4,
        ServedBy::PageCache,
        "nothing was read from the device",
    );
    assert_eq!(
        text(&not_the_device(&analyse(&record))),
        "1 of 5 cells came from the page cache, not the device (nothing was read from the device)."
    );
    assert!(text(&best_size(&analyse(&record))).contains("4MiB [page cache]"));
    assert_eq!(not_the_device(&analyse(&bent())), []);
}

#[test]
fn wide_intervals_are_told() {
    let mut record = bent();
    let wide = [80.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0];
    add_cell(&mut record, &["bs=16MiB"], &wide);
    let found = text(&below_precision(&analyse(&record)));
    assert!(
        found.starts_with(
            "1 of 6 cells missed the 5.0 % precision goal (worst: bs=16MiB, +/- 20 % after 7 trials)."
        ),
        "{found}"
    );
    assert_eq!(below_precision(&analyse(&bent())), []);
}

#[test]
fn missing_intervals_are_told() {
    let mut record = bent();
    add_cell(&mut record, &["bs=16MiB"], &[100.0, 101.0]);
    let found = text(&below_precision(&analyse(&record)));
    assert!(
        found.starts_with("1 of 6 cells has too few trials"),
        "{found}"
    );
}

#[test]
fn requests_that_are_too_few_for_a_quantile_are_not_called_trials() {
    let mut record = bent();
    record.experiment.response = Response::P99;
    for sample in &mut record.samples {
        sample.operations.read.requests = 100;
    }
    let analysis = analyse(&record);
    let found = text(&below_precision(&analysis));
    assert!(
        found.starts_with("All cells have no 95 % interval") && found.contains("368 per trial"),
        "{found}"
    );
    assert!(!found.contains("few trials"), "{found}");
    let flags = &analysis.cells[0].flags;
    assert!(flags.contains(&Flag::FewRequests) && !flags.contains(&Flag::FewTrials));
}

#[test]
fn failed_trials_are_told() {
    let mut record = bent();
    add_trial(&mut record, 2, 1.0, false).ok = false;
    assert!(text(&failed_trials(&analyse(&record))).starts_with("1 of 5 cells"));
    assert_eq!(failed_trials(&analyse(&bent())), []);
}

#[test]
fn an_unfinished_run_says_so() {
    let mut record = bent();
    assert_eq!(unfinished(&analyse(&record)), []);
    record.run.status = RunStatus::Interrupted;
    add_cell(&mut record, &["bs=16MiB"], &[]);
    let found = text(&unfinished(&analyse(&record)));
    assert!(
        found.starts_with("The run was interrupted: 1 of 6 cells has no measured trial."),
        "{found}"
    );
}

fn random(points: &[(&str, f64)]) -> RunRecord {
    let mut record = size_curve("read-random", points);
    for cell in &mut record.cells {
        cell.spec.trial.pattern = Pattern::Rand;
    }
    record
}

/// What is said of random against sequential, of all that these runs say together.
fn of_patterns(analyses: &[Analysis]) -> Vec<Finding> {
    let mut findings = cross_findings(analyses);
    findings.retain(|finding| finding.rule.name == "random-against-sequential");
    findings
}

#[test]
fn random_is_held_against_sequential() {
    let slow: Vec<(&str, f64)> = vec![
        ("4KiB", 15.0),
        ("64KiB", 150.0),
        ("256KiB", 480.0),
        ("1MiB", 500.0),
    ];
    let found = text(&of_patterns(&[analyse(&bent()), analyse(&random(&slow))]));
    assert!(
        found.starts_with(
            "Random against sequential read throughput: 0.250 (95 % interval 0.247 to 0.253) at 4KiB \
             (15.0 MB/s against 60.0 MB/s), 1.00 (95 % interval 0.990 to 1.01) at 1MiB (500 MB/s against 500 MB/s)."
        ),
        "{found}"
    );
    assert!(
        found.ends_with(
            "Random is slower at 4KiB, 64KiB, 256KiB; at the other sizes no cost is shown."
        ),
        "{found}"
    );
}

#[test]
fn only_sizes_that_differ_beyond_their_intervals_are_named() {
    // Behind at 4 KiB, even at 64 KiB, behind at 256 KiB, ahead at 1 MiB, even at 4 MiB.
    let uneven: Vec<(&str, f64)> = vec![
        ("4KiB", 30.0),
        ("64KiB", 300.0),
        ("256KiB", 400.0),
        ("1MiB", 520.0),
        ("4MiB", 502.0),
    ];
    let found = text(&of_patterns(&[analyse(&bent()), analyse(&random(&uneven))]));
    assert!(
        found.ends_with("Random is slower at 4KiB, 256KiB; at the other sizes no cost is shown."),
        "{found}"
    );
    let even = text(&of_patterns(&[analyse(&bent()), analyse(&random(&BENT))]));
    assert!(
        even.ends_with("No cost of random access is shown at any size."),
        "{even}"
    );
}

#[test]
fn of_many_curves_the_best_speaks() {
    let found = best_size(&analyse(&strided(200.0)));
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .text
            .starts_with("Highest throughput with skip=4KiB: 40"),
        "{}",
        found[0].text
    );
}

#[test]
fn random_that_never_catches_up() {
    let slow: Vec<(&str, f64)> = BENT
        .iter()
        .map(|(size, mb_s)| (*size, mb_s / 2.0))
        .collect();
    let found = text(&of_patterns(&[analyse(&bent()), analyse(&random(&slow))]));
    assert!(
        found.ends_with("Random is slower at every size."),
        "{found}"
    );
}

#[test]
fn runs_that_differ_in_more_than_the_pattern_are_not_compared() {
    let mut other = random(&BENT);
    for cell in &mut other.cells {
        cell.spec.trial.cache = CacheState::Cold;
    }
    assert_eq!(of_patterns(&[analyse(&bent()), analyse(&other)]), []);
    let mut elsewhere = random(&BENT);
    elsewhere.run.target = "/elsewhere".to_owned();
    assert_eq!(of_patterns(&[analyse(&bent()), analyse(&elsewhere)]), []);
    assert_eq!(of_patterns(&[analyse(&bent()), analyse(&bent())]), []);
}

#[test]
fn a_ratio_of_memory_to_disk_says_so() {
    let mut cached = random(&BENT);
    for cell in 0..5 {
        serve(&mut cached, cell, ServedBy::PageCache, "hot");
    }
    let found = text(&of_patterns(&[analyse(&bent()), analyse(&cached)]));
    assert!(
        found.contains("random [page cache], sequential [device]"),
        "{found}"
    );
}

#[test]
fn a_finished_clean_run_has_only_results() {
    let rules: Vec<&str> = all_findings(&analyse(&bent()))
        .iter()
        .map(|f| f.rule.name)
        .collect();
    assert_eq!(rules, ["best-size", "plateau", "latency-tail"]);
}

#[test]
fn a_drift_is_told_with_the_cell_where_it_is_steepest() {
    let mut drifting = record("x", &["bs"]);
    let rising = |by: f64| -> Vec<f64> { (0..12).map(|i| 100.0 + by * f64::from(i)).collect() };
    add_cell(&mut drifting, &["bs=4KiB"], &rising(0.1));
    add_cell(&mut drifting, &["bs=8KiB"], &rising(-2.0));
    add_cell(&mut drifting, &["bs=16KiB"], &around(100.0));
    let analysis = analyse(&drifting);
    let found = text(&drift(&analysis));
    assert!(
        found.starts_with("In 2 of 3 cells the trials drift"),
        "{found}"
    );
    assert!(
        found.contains("most in bs=8KiB by -2.2 % per trial"),
        "{found}"
    );
    assert!(dependence(&analysis).is_empty(), "drift is told once");
    assert!(drift(&analyse(&bent())).is_empty());
}

#[test]
fn trials_that_resemble_the_ones_before_are_told() {
    let waves = |period: usize| -> Vec<f64> {
        (0..30)
            .map(
                |i| if (i / period).is_multiple_of(2) { 100.0 } else { 101.0 } + f64::from(i as u8 % 3) / 10.0,
            )
            .collect()
    };
    let mut record = record("x", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &waves(5));
    let analysis = analyse(&record);
    assert!(drift(&analysis).is_empty());
    let found = text(&dependence(&analysis));
    assert!(
        found.starts_with("In the only cell trials depend on earlier ones"),
        "{found}"
    );
    assert!(dependence(&analyse(&bent())).is_empty());
}

#[test]
fn two_groups_of_trials_are_told_with_their_places() {
    let mut record = record("x", &["bs"]);
    let values: Vec<f64> = (0..40u8)
        .map(|i| {
            f64::from(u32::from(i) * 7 % 11)
                + if u32::from(i) * 13 % 10 < 4 {
                    500.0
                } else {
                    900.0
                }
        })
        .collect();
    add_cell(&mut record, &["bs=1MiB"], &values);
    add_cell(&mut record, &["bs=2MiB"], &around(900.0));
    let found = text(&two_groups(&analyse(&record)));
    assert!(
        found.contains("In 1 of 2 cells the trials form two groups"),
        "{found}"
    );
    assert!(found.contains("40 % of them around 50"), "{found}");
    assert!(two_groups(&analyse(&bent())).is_empty());
}

#[test]
fn the_steady_state_of_writes_is_reported_either_way() {
    let falling: Vec<f64> = (0..8).map(|i| 900.0 / f64::from(1 + i)).collect();
    let of = |cells: &[&[f64]], read_percent| {
        let mut record = record("x", &["bs"]);
        for (values, bs) in cells.iter().zip(["4KiB", "8KiB"]) {
            let levels = [format!("bs={bs}"), format!("read_percent={read_percent}")];
            add_cell(&mut record, &levels.each_ref().map(String::as_str), values);
        }
        text(&steady(&analyse(&record)))
    };
    let level = around(500.0);
    let all = of(&[&level, &level], 0);
    assert!(all.starts_with("All cells reached a steady state"), "{all}");
    let some = of(&[&level, &falling], 0);
    assert!(
        some.contains("reached in 1 of 2 cells that write, and NOT reached in 1; in bs=8KiB"),
        "{some}"
    );
    assert_eq!(of(&[&level, &falling], 100), "", "reads are not judged");
    assert_eq!(of(&[&level[..4]], 0), "", "four trials are no window");
}

#[test]
fn random_writes_are_held_against_reads() {
    let mut record = record("write-vs-read", &["workload", "depth"]);
    for (levels, mb_s) in [
        (["workload=RR", "depth=1"], 40.0),
        (["workload=RR", "depth=32"], 400.0),
        (["workload=WR", "depth=1"], 80.0),
        (["workload=WR", "depth=32"], 400.0),
    ] {
        add_cell(&mut record, &levels, &around(mb_s));
    }
    let found = text(&writes_against_reads(&analyse(&record)));
    assert!(
        found.starts_with("Throughput of random writes over that of random reads: 2.00 times"),
        "{found}"
    );
    assert!(
        found.ends_with("The writes are faster in 1 of the 2 settings compared, slower in 0, and in 1 no difference is shown."),
        "{found}"
    );
    assert!(writes_against_reads(&analyse(&bent())).is_empty());
}
