//! Findings about cells with a rate.

use iolab_analysis::analysis::{Analysis, DoubtKind, analyse};
use iolab_analysis::claim::{Difference, comparisons};
use iolab_record::{LatencySummary, RunRecord};
use iolab_workload::response::Response;
use iolab_workload::trial::Arrivals;

use crate::named;
use iolab_synthetic::{add_cell, around, rate_report, record};

/// Cells at pairs of a rate and the number of its 1000 requests that were never made.
fn loaded(rates: &[(u64, u64)]) -> RunRecord {
    let mut record = record("load-latency", &["rate"]);
    record.experiment.response = Response::Latency;
    for (rate, left) in rates {
        let cell = add_cell(&mut record, &[&format!("rate={rate}")], &around(1000.0));
        rate_report(&mut record, cell, *rate, *left);
    }
    record
}

fn flagged(analysis: &Analysis) -> Vec<bool> {
    let has = |flags: &[DoubtKind]| flags.contains(&DoubtKind::RateNotHeld);
    analysis.cells.iter().map(|c| has(&c.flags)).collect()
}

#[test]
fn latency_is_response_time_next_to_service_time() {
    let analysis = analyse(&loaded(&[(1000, 0)]));
    let cell = &analysis.cells[0];
    let response = cell.latency.expect("recorded");
    let rate_report = cell.rate_report.as_ref().expect("open loop");
    let (service, lateness) = (
        rate_report.service.expect("kept"),
        rate_report.lateness.expect("kept"),
    );
    let ns = |of: LatencySummary, quantile| of[quantile].expect("kept");
    let (p99, max) = (Response::P99, Response::Max);
    assert!((ns(response, p99) / ns(service, p99) - 1.5).abs() < 1e-3);
    assert!((ns(lateness, max) / ns(service, max) - 0.5).abs() < 1e-3);
    let median = cell.response.expect("eight trials").median;
    assert!((median - ns(response, Response::Latency)).abs() < 1.0);
}

#[test]
fn missed_rate_is_flagged_and_reported() {
    let analysis = analyse(&loaded(&[
        (1000, 0),
        (2000, 20),
        (4000, 600),
        (8000, 1_000_000),
    ]));
    assert_eq!(flagged(&analysis), [false, false, true, true]);
    let found = named("rate-not-held", &analysis);
    insta::assert_snapshot!(found[0].text, @"2 of 4 cells: requests fell behind the requested rate, so that response times grow with the length of a trial (7.99 of 8000 per second in the median trial; missed in 8 of 8 trials). Lower the rate (--rate) until it is held.");
}

/// A suspended machine is not disturbance by others.
#[test]
fn rate_missed_during_sleep_is_not_disturbed() {
    let mut record = loaded(&[(8000, 1_000_000)]);
    let last = record.samples.last_mut().expect("a trial");
    last.counters.pressure.suspended_ns = Some(3_000_000_000);
    let found = named("rate-not-held", &analyse(&record));
    insta::assert_snapshot!(found[0].text, @"The only cell: requests fell behind the requested rate, so that response times grow with the length of a trial (7.99 of 8000 per second in the median trial; missed in 8 of 8 trials).");
}

#[test]
fn waiting_for_intended_start_is_not_tool_bound() {
    for (left, bound) in [(0, false), (500, true)] {
        let mut record = loaded(&[(1000, left)]);
        for sample in &mut record.samples {
            sample.counters.usage.user_ns = sample.elapsed_ns;
        }
        let analysis = analyse(&record);
        let flags = &analysis.cells[0].flags;
        assert_eq!(flags.contains(&DoubtKind::ToolBound), bound, "{left}");
    }
}

/// A side that missed its rate is worse than one that held it, however long the trials were. Two sides are not
/// compared if both missed it.
#[test]
fn times_are_compared_if_a_side_held() {
    let difference = |left: [u64; 2]| {
        let mut record = record("load", &["threads"]);
        record.experiment.response = Response::Latency;
        for (threads, (mb_s, left)) in [1, 2]
            .into_iter()
            .zip([1000.0, 200.0].into_iter().zip(left))
        {
            let levels = ["rate=1000".to_owned(), format!("threads={threads}")];
            let levels = levels.each_ref().map(String::as_str);
            let cell = add_cell(&mut record, &levels, &around(mb_s));
            rate_report(&mut record, cell, 1000, left);
        }
        let analysis = analyse(&record);
        let found = comparisons(&analysis, 0);
        found[0].points[0].difference()
    };
    assert_eq!(difference([0, 0]), Difference::Higher);
    assert_eq!(difference([0, 999]), Difference::Higher);
    assert_eq!(difference([999, 999]), Difference::CannotTell);
}

/// Cells at these rates, in trials of 500 ms, on storage that completes 50 requests per second and takes all at
/// once.
fn absorbed(rates: &[u64], arrivals: Arrivals) -> Analysis {
    let mut record = record("load-latency", &["rate"]);
    record.experiment.response = Response::Latency;
    for rate in rates {
        let cell = add_cell(&mut record, &[&format!("rate={rate}")], &around(1000.0));
        rate_report(&mut record, cell, *rate, 0);
        record.cells[cell].spec.trial.arrivals = arrivals;
        for sample in record.samples.iter_mut().filter(|s| s.cell == cell as i64) {
            let requests = rate / 2;
            sample.operations.read.requests = requests;
            sample.elapsed_ns = 500_000_000_u64.max(requests * 20_000_000);
        }
    }
    analyse(&record)
}

#[test]
fn trial_too_short_for_overload_holds_nothing() {
    // 32 requests in 500 ms: chance may double their number.
    let analysis = absorbed(&[20, 64], Arrivals::Poisson);
    assert_eq!(flagged(&analysis), [false, false]);
    insta::assert_snapshot!(named("load", &analysis)[0].text, @"Median response time: 1.57 ms (1.56 to 1.59 ms) at 20.0/s, p99 4.72 ms. At the highest rate that is not shown to be too high: 1.57 ms (1.56 to 1.59 ms) at 64.0/s; p99 4.72 ms. Overload that does not show in such trials, at most, and their length (increase --time): 28 %; 500 ms.");
}
