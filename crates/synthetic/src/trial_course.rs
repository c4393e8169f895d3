//! Courses of throughput and latency within trials.

use iolab_record::{
    Moved, Operation, PerOperation, RequestTime, RunRecord, Sample, SampleLatencyOverTime,
    SampleSeries,
};
use iolab_workload::histogram::over_time::{BUCKETS, IntervalLatency, LatencyOverTime, bucket};
use iolab_workload::series::{Interval, Series};

/// Throughput of each trial over time: twelve intervals, faster from the eighth on.
pub fn throughput_inside(record: &RunRecord) -> Vec<SampleSeries> {
    let of = |sample: &Sample| SampleSeries {
        sample: sample.id,
        series: Series {
            intervals: (0..12)
                .map(|i| Interval {
                    start_ns: i * 100_000_000,
                    length_ns: 100_000_000,
                    done: PerOperation {
                        read: Moved {
                            bytes: (sample.throughput_mb_s() * 1e5) as u64
                                * if i < 8 { 1 } else { 2 }
                                / 2,
                            requests: 100,
                        },
                        ..PerOperation::default()
                    },
                    drive_millidegrees: None,
                })
                .collect(),
        },
    };
    record.samples.iter().map(of).collect()
}

/// Latencies of each trial over 6 s, eight times as long after the first 2 s, with a tail.
pub fn latency_inside(record: &RunRecord) -> Vec<SampleLatencyOverTime> {
    let interval = |number: u64| {
        let slower = if number < 4 { 1 } else { 8 };
        let tail = 400_000 + 45_000 * number;
        let mut counts = vec![0; BUCKETS];
        for (ns, requests) in [(80_000, 900), (100_000, 90), (tail, 10)] {
            counts[bucket(slower * ns)] += requests;
        }
        IntervalLatency::new(&counts, slower * tail)
    };
    let of = |sample: &Sample| SampleLatencyOverTime {
        sample: sample.id,
        group: 0,
        operation: Operation::Read,
        quantity: RequestTime::Service,
        latency: LatencyOverTime {
            interval_ns: 500_000_000,
            span_ns: 6_000_000_000,
            intervals: (0..12).map(interval).collect(),
        },
    };
    record.samples.iter().map(of).collect()
}
