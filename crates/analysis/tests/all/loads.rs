//! Conditions of claims about response times at requested rates.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Claim, Standing, claims};
use iolab_analysis::compare::CellVerdict;
use iolab_analysis::doubt::{DoubtKind, RatioBound};
use iolab_record::RunRecord;
use iolab_synthetic::{add_cell, around, rate_behind, rate_report, record};
use iolab_workload::response::Response;

use crate::compare;

/// Cells at pairs of a rate and the number of its 1000 requests that were never made.
fn at_rates(factors: &[&str], rates: &[(u64, u64)]) -> RunRecord {
    let mut record = record("load-latency", factors);
    record.experiment.response = Response::Latency;
    for (rate, left) in rates {
        let levels = [format!("rate={rate}"), "bs=4KiB".to_owned()];
        let levels = levels.each_ref().map(String::as_str);
        let cell = add_cell(&mut record, &levels, &around(1000.0));
        rate_report(&mut record, cell, *rate, *left);
    }
    record
}

fn load(record: &RunRecord) -> Option<Claim> {
    let mut all = claims(&[&analyse(record)]).into_iter();
    all.find(|claim| claim.kind.name == "load")
}

/// The lowest and the highest rate that was held, and whether all were. The lowest requested rate if none was
/// held.
fn held(rates: &[(u64, u64)]) -> (f64, Option<f64>, bool) {
    let load = load(&at_rates(&["rate"], rates)).expect("a load");
    let rate = |standing| load.of(standing).find_map(|point| point.rate);
    let asked = rate(Standing::HighestAsked);
    let least = rate(Standing::Main).unwrap_or_else(|| load.points[1].value);
    let most = asked.or_else(|| rate(Standing::HighestHeld));
    (least, most, asked.is_some())
}

#[test]
fn lowest_and_highest_held_rates_are_named() {
    assert_eq!(
        held(&[(2000, 0), (1000, 0), (4000, 0)]),
        (1000.0, Some(4000.0), true)
    );
    assert_eq!(
        held(&[(2000, 0), (1000, 0), (4000, 900)]),
        (1000.0, Some(2000.0), false)
    );
    assert_eq!(held(&[(2000, 900), (1000, 0)]), (1000.0, None, false));
    assert_eq!(held(&[(2000, 900), (1000, 900)]), (1000.0, None, false));
}

#[test]
fn load_needs_a_rate_alone_and_times() {
    let rates = [(1000, 0), (2000, 0)];
    assert!(load(&at_rates(&["rate"], &rates)).is_some());
    assert_eq!(load(&at_rates(&["rate", "bs"], &rates)), None);
    let mut of_throughput = at_rates(&["rate"], &rates);
    of_throughput.experiment.response = Response::Throughput;
    assert_eq!(load(&of_throughput), None);
}

/// The claim is about the storage, so disturbance in trials of the rates that it names is a doubt.
#[test]
fn disturbed_trials_of_named_rate_are_a_doubt() {
    let is_doubted = |busy: Option<i64>| {
        let mut record = at_rates(&["rate"], &[(1000, 0), (2000, 0), (4000, 0)]);
        for sample in &mut record.samples {
            if Some(sample.cell) == busy {
                sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns);
            }
        }
        !load(&record).expect("a load").doubts.is_empty()
    };
    assert_eq!(
        [None, Some(0), Some(1), Some(2)].map(is_doubted),
        [false, true, false, true]
    );
}

/// One request that is due at the end is not a shortfall, however large its share of few requests is. The
/// schedule ends before it.
#[test]
fn request_due_at_end_is_made_up() {
    let mut few = at_rates(&["rate"], &[(1000, 0)]);
    for sample in &mut few.samples {
        sample.operations.read.requests = 9;
        sample.elapsed_ns = 10_000_000;
        let report = sample.rate_report.as_mut().expect("a rate");
        (report.backlog_end, report.rate_achieved) = (1, 800.0);
    }
    let analysis = analyse(&few);
    let report = analysis.cells[0].rate_report.as_ref().expect("a rate");
    assert_eq!((report.not_held, report.span_ns), (0, 1e7));
}

/// Whether each rate is called held, for cells by setting, rate, and 99th percentile of the service time, ms. A
/// schedule of half a second is issued in time, and the storage works on it for `worked_ms`.
fn absorbed(cells: &[(&str, u64, u64)], worked_ms: impl Fn(u64, usize) -> u64) -> Vec<bool> {
    let mut record = record("load-latency", &["rate", "bs"]);
    record.experiment.response = Response::Latency;
    for (bs, rate, p99_ms) in cells {
        let levels = [format!("rate={rate}"), format!("bs={bs}")];
        let levels = levels.each_ref().map(String::as_str);
        let cell = add_cell(&mut record, &levels, &around(1000.0));
        rate_report(&mut record, cell, *rate, 0);
        let own = record
            .samples
            .iter_mut()
            .filter(|one| one.cell == cell as i64);
        for (trial, sample) in own.enumerate() {
            sample.operations.read.requests = rate / 2;
            sample.elapsed_ns = worked_ms(*rate, trial) * 1_000_000;
            let latency = sample.operations.read.latency.as_mut().expect("times");
            latency[Response::P99] = Some((p99_ms * 1_000_000) as f64);
        }
    }
    let analysis = analyse(&record);
    let is_held = |flags: &[DoubtKind]| !flags.contains(&DoubtKind::RateNotHeld);
    analysis
        .cells
        .iter()
        .map(|cell| is_held(&cell.flags))
        .collect()
}

/// Storage took requests into free slots in time, and completed them long after the end, slower than without
/// load.
#[test]
fn storage_finishing_late_is_judged_by_lowest_rate() {
    let beyond = |rate: u64, _: usize| if rate > 50 { 900 } else { 510 };
    assert_eq!(
        absorbed(&[("4KiB", 20, 5), ("4KiB", 100, 5)], beyond),
        [true, false]
    );
    assert_eq!(
        absorbed(&[("4KiB", 100, 800), ("4KiB", 20, 5)], beyond),
        [false, true]
    );
    // Large requests take long by themselves.
    let large = [("4KiB", 20, 5), ("1MiB", 20, 500), ("1MiB", 100, 500)];
    assert_eq!(absorbed(&large, beyond), [true, true, true]);
    // A single trial may end with a slow request.
    let once = |_: u64, trial: usize| if trial == 3 { 900 } else { 510 };
    assert_eq!(
        absorbed(&[("4KiB", 20, 5), ("4KiB", 100, 5)], once),
        [true, true]
    );
}

/// A run with a median response time, ms, at a rate that all trials hold except the trials of `behind`.
fn at_rate(ms: u64, behind: impl Fn(usize) -> bool) -> RunRecord {
    let mut record = record("load-latency", &["rate"]);
    record.experiment.response = Response::Latency;
    let cell = add_cell(&mut record, &["rate=1000"], &around(1000.0));
    rate_behind(&mut record, cell, (1000, ms), behind);
    record
}

/// Times of this side grow with the length of a trial: it is worse, by an amount that its trials do not show.
#[test]
fn side_behind_its_rate_makes_ratio_a_bound() {
    let compared = |base: &RunRecord, new: &RunRecord| {
        let found = compare::of(base, new, None).expect("alike");
        let cell = &found.cells[0];
        (cell.verdict, cell.estimate.expect("times").bound)
    };
    let held = |ms| at_rate(ms, |_| false);
    let behind = |ms| at_rate(ms, |_| true);
    let open = CellVerdict::CannotTell(DoubtKind::RateNotHeld);
    assert_eq!(compared(&held(1), &held(9)), (CellVerdict::Slower, None));
    assert_eq!(
        compared(&held(1), &behind(9)),
        (CellVerdict::Slower, Some(RatioBound::AtLeast))
    );
    assert_eq!(
        compared(&behind(9), &held(1)),
        (CellVerdict::Faster, Some(RatioBound::AtMost))
    );
    assert_eq!(compared(&behind(9), &behind(1)), (open, None));
    // In longer trials this side could be the worse one.
    assert_eq!(compared(&behind(1), &held(9)).0, open);
    assert_eq!(compared(&behind(1), &held(1)).0, open);
    // The median trial held the rate.
    let once = at_rate(9, |trial| trial == 3);
    assert_eq!(compared(&held(1), &once), (CellVerdict::Slower, None));
}
