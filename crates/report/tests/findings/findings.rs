//! Every rule, once with a finding and once without.

use iolab_analysis::analysis::{DoubtKind, analyse};
use iolab_record::{Asked, EndedBy, Question, RunRecord, RunStatus, ServedBy};
use iolab_report::findings::conclusions;
use iolab_workload::response::Response;

use crate::{all_findings, doubts, named, text};
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
fn some_cells_from_the_page_cache() {
    let mut record = bent();
    serve(
        &mut record,
        4,
        ServedBy::PageCache,
        "nothing was read from the device",
    );
    insta::assert_snapshot!(text(&doubts(&analyse(&record))), @"1 of 5 cells: the page cache served the bytes (nothing was read from the device).");
    insta::assert_snapshot!(text(&named("best-size", &analyse(&record))), @"No I/O size is shown to give a lower throughput than another. Cannot tell (the page cache served the bytes): 1 MiB; 256 KiB; 64 KiB; and 1 more.");
    assert_eq!(doubts(&analyse(&bent())), []);
}

#[test]
fn unneeded_starting_rates_do_not_lack_results() {
    let mut record = bent();
    record.samples.retain(|sample| sample.cell != 0);
    assert_eq!(analyse(&record).cells.len(), 5);
    let levels = "p99<2ms".parse().expect("levels");
    record.experiment.asked = Some(Question::of_levels(Asked::Limit, &levels));
    assert_eq!(analyse(&record).cells.len(), 4);
    // If nothing was measured, they are the only cells, and are kept.
    record.samples.clear();
    assert_eq!(analyse(&record).cells.len(), 5);
}

#[test]
fn wide_intervals_are_reported() {
    let mut record = bent();
    let wide = [80.0, 90.0, 95.0, 100.0, 105.0, 110.0, 120.0];
    add_cell(&mut record, &["bs=16MiB"], &wide);
    insta::assert_snapshot!(text(&named("below-precision", &analyse(&record))), @"1 of 6 cells missed the 5.0 % precision goal. Widest interval with 16 MiB, after 7 trials: ±20 %, 100 MB/s (80.0 to 120 MB/s).");
    assert_eq!(named("below-precision", &analyse(&bent())), []);
}

#[test]
fn requests_too_few_for_quantile_are_not_trials() {
    let mut record = bent();
    record.experiment.response = Response::P99;
    // One trial of each cell is enough: the others would be those that were fast.
    for sample in record.samples.iter_mut().filter(|sample| sample.block == 1) {
        sample.operations.read.requests = 100;
    }
    let analysis = analyse(&record);
    insta::assert_snapshot!(text(&doubts(&analysis)), @"All cells: too few requests for an interval (a 99th percentile of latency needs 368 in a trial). Increase --time.");
    let flags = &analysis.cells[0].flags;
    assert!(flags.contains(&DoubtKind::FewRequests) && !flags.contains(&DoubtKind::FewTrials));
}

#[test]
fn failed_trials_are_reported() {
    let mut record = bent();
    add_trial(&mut record, 2, 1.0, false).ok = false;
    insta::assert_snapshot!(text(&doubts(&analyse(&record))), @"1 of 5 cells: trials failed, and are excluded.");
    assert_eq!(doubts(&analyse(&bent())), []);
}

#[test]
fn run_ended_by_the_user_is_a_doubt() {
    let mut record = bent();
    record.run.status = RunStatus::Interrupted;
    record.cells[0].ended_by = Some(EndedBy::User);
    let analysis = analyse(&record);
    let told = text(&named("unfinished", &analysis));
    let lines = conclusions(&analysis, &[]);
    let told = format!("{told}\n{}", lines[0].text);
    insta::assert_snapshot!("ended_by_the_user", told);
}

/// Distances to both sides of 16853 % of the median have no meaning.
#[test]
fn interval_wider_than_median_shows_its_ends() {
    let mut record = record("write-random", &[]);
    add_cell(&mut record, &[], &[0.025, 0.03, 0.04, 0.048, 0.09, 14.9]);
    let analysis = analyse(&record);
    let told = [
        conclusions(&analysis, &[])[0].text.clone(),
        text(&named("below-precision", &analysis)),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    write-random on /data: throughput 0.0440 MB/s (0.0250 MB/s to 14.9 MB/s), from the device; the precision goal was missed
    The only cell missed the 5.0 % precision goal. Widest interval, after 6 trials: ±33764 %, 0.0440 MB/s (0.0250 to 14.9 MB/s).
    ");
}

/// A larger size whose median is higher by chance is not the answer.
#[test]
fn first_line_names_the_simplest_of_a_tie() {
    let mut record = record("read-size", &["bs"]);
    let level = [500.0, 502.0, 498.0, 501.0, 499.0, 500.0, 503.0, 497.0];
    let higher = [504.0, 499.0, 502.0, 500.0, 503.0, 501.0, 498.0, 505.0];
    add_cell(&mut record, &["bs=4KiB"], &around(60.0));
    add_cell(&mut record, &["bs=1MiB"], &level);
    add_cell(&mut record, &["bs=64MiB"], &higher);
    let analysis = analyse(&record);
    let line = &conclusions(&analysis, &[])[0].text;
    assert!(line.contains("to 500 MB/s (1 MiB)"), "{line}");
    let best = text(&named("best-size", &analysis));
    let begin = "Best throughput: 500 MB/s with 1 MiB.";
    assert!(best.starts_with(begin), "{best}");
}

#[test]
fn run_without_measured_trial_has_a_line() {
    let line = |record: &RunRecord| conclusions(&analyse(record), &[])[0].text.clone();
    let mut record = record("read-size", &["bs"]);
    let first = add_cell(&mut record, &["bs=4KiB"], &[]);
    add_cell(&mut record, &["bs=1MiB"], &[]);
    record.run.status = RunStatus::Interrupted;
    insta::assert_snapshot!(line(&record), @"read-size on /data: no measured trial (2 warm-up trials stored); the run did not finish");
    record.cells[first].ended_by = Some(EndedBy::User);
    insta::assert_snapshot!(line(&record), @"read-size on /data: no measured trial (2 warm-up trials stored); the user ended the run");
    insta::assert_snapshot!(text(&named("unfinished", &analyse(&record))), @"The user ended the run. Without a measured trial: 2 of 2 cells. The results cover the trials completed so far.");
    for mb_s in [100.0, 120.0] {
        for cell in [0, 1] {
            add_trial(&mut record, cell, mb_s, false);
        }
    }
    insta::assert_snapshot!(text(&named("unfinished", &analyse(&record))), @"The user ended the run. The results cover the trials completed so far.");
    record.samples.truncate(2);
    record.run.status = RunStatus::Failed;
    add_trial(&mut record, first, 1.0, false).ok = false;
    record.cells[first].ended_by = None;
    insta::assert_snapshot!(line(&record), @"read-size on /data: no measured trial (2 warm-up trials stored); the run did not finish, nothing was measured in 1 of 2 cells, errors in 1 of 2 cells");
}

#[test]
fn a_finished_clean_run_has_only_results() {
    let rules: Vec<&str> = all_findings(&analyse(&bent()))
        .iter()
        .map(|f| f.kind.name)
        .collect();
    assert_eq!(rules, ["best-size"]);
}

#[test]
fn drift_names_the_steepest_cell() {
    let mut drifting = record("x", &["bs"]);
    let rising = |by: f64| -> Vec<f64> { (0..12).map(|i| 100.0 + by * f64::from(i)).collect() };
    add_cell(&mut drifting, &["bs=4KiB"], &rising(0.1));
    add_cell(&mut drifting, &["bs=8KiB"], &rising(-2.0));
    add_cell(&mut drifting, &["bs=16KiB"], &around(100.0));
    let analysis = analyse(&drifting);
    insta::assert_snapshot!(text(&named("drift", &analysis)), @"The trials of 1 of 3 cells drift over the run by up to -27 % with 8 KiB.");
    assert!(named("drift", &analyse(&bent())).is_empty());
}

#[test]
fn two_groups_of_trials_show_their_places() {
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
    insta::assert_snapshot!(text(&named("two-groups", &analyse(&record))), @"The trials of 1 of 2 cells form two groups: with 1 MiB 40 % of them around 506 MB/s, the others around 905 MB/s. The median describes neither group.");
    assert!(named("two-groups", &analyse(&bent())).is_empty());
}
