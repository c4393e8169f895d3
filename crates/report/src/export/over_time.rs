//! Trials over time: throughput and latency of the same intervals.

use iolab_record::{Interval, Operation, PerOperation, SampleLatencyOverTime, Series};
use iolab_workload::histogram::over_time::{IntervalLatency, LatencyOverTime};
use iolab_workload::series::merge_intervals;

use super::{Field, field};

/// The quantiles of each operation with their shares of the requests.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];

/// Activity of a trial in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CourseInterval {
    /// Requests and bytes.
    pub(super) done: Interval,
    /// Latencies by operation; empty without requests, and if none are kept.
    pub(super) latency: PerOperation<IntervalLatency>,
}

/// The intervals of a trial with their latencies, in the longer intervals of throughput and latency.
pub(super) fn joined(series: &Series, latency: &[SampleLatencyOverTime]) -> Vec<CourseInterval> {
    let of = |operation: Operation| {
        let own = latency.iter().filter(|one| one.operation == operation);
        let groups = own.map(|one| one.latency.clone());
        groups.reduce(LatencyOverTime::plus).unwrap_or_default()
    };
    let kept = PerOperation::from_fn(of);
    let longest = kept
        .iter()
        .map(|(_, own)| own)
        .max_by_key(|own| own.interval_ns);
    let Some(longest) = longest.filter(|own| !own.intervals.is_empty()) else {
        let intervals = series.intervals.iter().map(|done| CourseInterval {
            done: *done,
            ..CourseInterval::default()
        });
        return intervals.collect();
    };
    let rows = (0..longest.intervals.len()).filter_map(|number| {
        let (start, end) = longest.bounds_ns(number);
        let is_last = number + 1 == longest.intervals.len();
        let own = series
            .intervals
            .iter()
            .filter(|interval| interval.start_ns >= start && (interval.start_ns < end || is_last));
        let own: Vec<Interval> = own.copied().collect();
        Some(CourseInterval {
            done: (!own.is_empty()).then(|| merge_intervals(&own))?,
            latency: kept.as_ref().map(|one| {
                let interval = one.intervals.get(number);
                interval.cloned().unwrap_or_default()
            }),
        })
    });
    rows.collect()
}

/// The latency columns of an interval: `read_latency_p50_ns` and so on, empty without requests.
pub(super) fn fields(interval: &CourseInterval) -> Vec<Field> {
    let all = interval.latency.iter();
    all.flat_map(|(operation, latency)| {
        QUANTILES.map(|(name, share)| {
            let name = format!("{operation}_latency_{name}_ns");
            field(&name, latency.quantile_ns(share))
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use iolab_record::{Moved, RequestTime};
    use iolab_workload::histogram::over_time::{BUCKETS, bucket};

    use super::*;

    #[test]
    fn rows_have_the_longer_intervals_and_all_data() {
        let interval = |number: u64, length_ns| Interval {
            start_ns: 100 * number,
            length_ns,
            done: PerOperation {
                read: Moved {
                    requests: 1,
                    bytes: 4096,
                },
                ..PerOperation::default()
            },
            drive_millidegrees: None,
        };
        let mut intervals: Vec<Interval> = (0..5).map(|n| interval(n, 100)).collect();
        intervals.push(interval(5, 140));
        let series = Series { intervals };
        let one = |ns: u64| {
            let mut counts = vec![0; BUCKETS];
            counts[bucket(ns)] = 3;
            IntervalLatency::new(&counts, ns)
        };
        let latency = LatencyOverTime {
            interval_ns: 200,
            span_ns: 640,
            intervals: vec![one(1000), one(2000), one(3000)],
        };
        let latency = [SampleLatencyOverTime {
            sample: 1,
            group: 0,
            operation: Operation::Read,
            quantity: RequestTime::Service,
            latency,
        }];
        let rows = joined(&series, &latency);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                let done = row.done;
                (
                    done.start_ns,
                    done.end_ns(),
                    done.done.read.requests,
                    row.latency.read.max_ns,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [(0, 200, 2, 1000), (200, 400, 2, 2000), (400, 640, 2, 3000)]
        );
        let bare = joined(&series, &[]);
        assert_eq!(bare.len(), 6);
        assert!(bare.iter().all(|row| row.latency.read.total() == 0));
    }
}
