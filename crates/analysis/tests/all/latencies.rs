//! The latencies of a cell, summed over its trials.

use iolab_analysis::trial_values::{of_cells, of_groups};
use iolab_record::{LatencyOf, Operation, PartId, RunRecord, SampleLatency};
use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_workload::{Kind, Result};

use iolab_synthetic::{around, size_curve};

/// Service times of reads.
const READS: LatencyOf = LatencyOf::service(Operation::Read);

fn of(values: &[u64]) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    values
        .iter()
        .for_each(|ns| histogram.saturating_record(*ns));
    histogram
}

/// A histogram for each sample, with one request that took as many microseconds as the number of the sample.
fn numbered(record: &RunRecord) -> Vec<Result<SampleLatency>> {
    let of = |sample: i64| SampleLatency {
        sample,
        part: PartId::default(),
        of: READS,
        histogram: of(&[1000 * sample as u64]),
    };
    let samples = record.samples.iter();
    samples.map(|sample| Ok(of(sample.id))).collect()
}

#[test]
fn the_measured_trials_of_a_cell_are_together() {
    let mut record = size_curve("read-size", &[("4KiB", 100.0), ("8KiB", 110.0)]);
    let trials = around(100.0).len();
    let warmups = record.samples.iter().filter(|s| s.warmup).count();
    record.samples.last_mut().unwrap().ok = false;
    let mut latencies = numbered(&record);
    latencies.push(Ok(SampleLatency {
        sample: 1 << 40,
        part: PartId::default(),
        of: READS,
        histogram: of(&[1]),
    }));
    let cells = of_cells(&record, latencies).unwrap();
    let counts: Vec<(i64, u64)> = cells
        .iter()
        .map(|((cell, _), h)| (*cell, h.len()))
        .collect();
    let all = record.samples.len() - warmups - 1;
    assert_eq!(counts.len(), 2);
    assert_eq!(counts.iter().map(|(_, n)| n).sum::<u64>(), all as u64);
    assert_eq!(counts[0].1, trials as u64);
    let first = record.samples.iter().find(|s| s.ok && !s.warmup).unwrap();
    assert_eq!(
        cells[&(first.cell, READS)].min(),
        of(&[1000 * first.id as u64]).min()
    );
}

#[test]
fn foreign_latencies_are_clamped_and_overflow_is_error() {
    let record = size_curve("read-size", &[("4KiB", 100.0)]);
    let sample = record.samples.iter().find(|s| s.ok && !s.warmup).unwrap();
    let one = |histogram| {
        [Ok(SampleLatency {
            sample: sample.id,
            part: PartId::default(),
            of: READS,
            histogram,
        })]
    };
    let mut long = LatencyHistogram::new_with_bounds(1, 1 << 50, 3).unwrap();
    long.record_n(1 << 45, 3).unwrap();
    let cells = of_cells(&record, one(long)).unwrap();
    assert_eq!(cells[&(sample.cell, READS)].len(), 3);
    assert!(cells[&(sample.cell, READS)].max() < 1 << 43);
    let mut many = new_latency_histogram();
    many.record_n(1000, i64::MAX as u64).unwrap();
    let twice = [one(many.clone()), one(many)].into_iter().flatten();
    assert_eq!(of_cells(&record, twice).unwrap_err().kind(), Kind::Failed);
    let broken = [Err(iolab_workload::Error::usage("damaged"))];
    assert_eq!(of_cells(&record, broken).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn groups_of_a_cell_are_apart() {
    let record = size_curve("read-size", &[("4KiB", 100.0)]);
    let sample = record.samples.iter().find(|s| s.is_measured()).unwrap();
    let one = |(group, ns): (u32, u64)| {
        Ok(SampleLatency {
            sample: sample.id,
            part: PartId {
                group,
                ..PartId::default()
            },
            of: READS,
            histogram: of(&[ns]),
        })
    };
    let latencies = || [(1, 1000), (2, 9000), (2, 8000)].map(one);
    let groups = of_groups(&record, latencies()).unwrap();
    let counts: Vec<(u32, u64)> = groups
        .iter()
        .map(|((_, group, _), h)| (*group, h.len()))
        .collect();
    assert_eq!(counts, [(1, 1), (2, 2)]);
    let cells = of_cells(&record, latencies()).unwrap();
    assert_eq!(cells[&(sample.cell, READS)].len(), 3);
}
