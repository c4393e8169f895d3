//! The limited quantity of a level trial by trial.

use iolab_analysis::slo::level_values;
use iolab_record::{LatencyOf, Operation, PartId, RequestTime, SampleLatency};
use iolab_synthetic::{add_cell, around, rate_behind, record};
use iolab_workload::histogram::new_latency_histogram;

/// Requests that were due and never issued count as long as the trial, so the value of such a cell is a bound
/// and not a measured time.
#[test]
fn values_of_trials_that_fell_behind_are_bounds() {
    let mut run = record("load-latency", &["rate"]);
    for (rate, falls) in [(1000, 0), (2000, 2), (4000, 8)] {
        let cell = add_cell(&mut run, &[&format!("rate={rate}")], &around(500.0));
        rate_behind(&mut run, cell, (rate, 1), |trial| trial < falls);
    }
    let times = |sample: i64| {
        let mut histogram = new_latency_histogram();
        (0..10_000).for_each(|_| histogram.saturating_record(1_000_000));
        let of = LatencyOf {
            operation: Operation::Read,
            quantity: RequestTime::Response,
        };
        Ok(SampleLatency {
            sample,
            part: PartId::default(),
            of,
            histogram,
        })
    };
    let found = |level: &str| {
        let level = level.parse().expect("a level");
        let times = run.samples.iter().map(|sample| times(sample.id));
        level_values(&level, &run, times).expect("values")
    };
    let tail = found("p99<5ms");
    assert_eq!(tail.bounds, [2].into(), "most trials of the last");
    assert_eq!(
        found("p50<5ms").bounds,
        [].into(),
        "requests that were made"
    );
    assert_eq!(found("mean<5ms").bounds, [2].into());
    assert_eq!(found("iops>5").bounds, [].into(), "no time");
}
