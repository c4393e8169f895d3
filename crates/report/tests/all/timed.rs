//! Runs whose requests all take the same time.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::{LatencyOf, Operation, PartId, RunRecord, Sample, SampleLatency};
use iolab_workload::histogram::new_latency_histogram;

/// The run of a record with its answers, where each trial has 1,000 reads of 100 µs.
pub(crate) fn analysed(record: RunRecord) -> AnalysedRun {
    let of = |sample: &Sample| {
        let mut histogram = new_latency_histogram();
        histogram.saturating_record_n(100_000, 1000);
        SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: LatencyOf::service(Operation::Read),
            histogram,
        }
    };
    let latencies: Vec<SampleLatency> = record.samples.iter().map(of).collect();
    let run = AnalysedRun::of(record).answered(latencies.into_iter().map(Ok));
    run.expect("latencies")
}
