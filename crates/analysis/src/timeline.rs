//! Throughput over time: within the trials of a cell and over the whole run, and where its level changes permanently.

mod inside_trials;
mod over_run;
mod within;

pub use over_run::{Access, Levels, RunShift, over_run};
pub use within::{Profile, ThroughputPoint, TrialShift, in_warm_ups, profile, within_trials};

use std::collections::BTreeMap;

use iolab_stats::Lasting;

use iolab_record::{Cell, Interval, Moved, PerOperation, RunRecord, Series};

/// Fewest trials or intervals that two levels can be reported in.
const VALUES_MIN: usize = 8;
/// Least change that is reported: to four fifths, or to five quarters.
const FACTOR_MIN: f64 = 1.25;
/// Level of the test, over all series of a run that are looked at in one way.
const ALPHA: f64 = 0.01;

/// Where throughput changes its level.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Over the run: of the cells that write, then of those that only read.
    pub over_run: Vec<RunShift>,
    /// Within the trials, at most one shift of a cell.
    pub within: Vec<TrialShift>,
    /// Within the warm-up of a cell that writes, where its measured trials stay at the later level.
    pub in_warm_ups: Vec<TrialShift>,
}

impl Timeline {
    /// Of a run.
    pub fn of(record: &RunRecord) -> Self {
        let over_run = over_run(record);
        let mut within = within_trials(record);
        // One trial with a change, which the others show to be one of the run.
        let is_of_run = |shift: &RunShift, cell| {
            matches!(shift.levels, Levels::Time { .. }) && shift.cell == cell
        };
        within.retain(|own| !over_run.iter().any(|shift| is_of_run(shift, own.cell)));
        Self {
            over_run,
            within,
            in_warm_ups: in_warm_ups(record),
        }
    }
}

/// One interval of a run, or a whole trial where its intervals are not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The sample.
    pub sample: i64,
    /// Its cell.
    pub cell: i64,
    /// Whether the trial is a warm-up.
    pub warmup: bool,
    /// From the start of the run, ns; only the timed spans of the trials count.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Bytes that the trials had written at its start.
    pub written_bytes: u64,
    /// Bytes that the trials had read at its start.
    pub read_bytes: u64,
    /// What was done in it.
    pub done: PerOperation<Moved>,
}

impl Moment {
    /// MB/s, both directions together.
    pub fn throughput_mb_s(&self) -> f64 {
        self.interval().throughput_mb_s()
    }

    fn interval(&self) -> Interval {
        Interval {
            start_ns: self.start_ns,
            length_ns: self.length_ns,
            done: self.done,
        }
    }
}

/// The whole run in the order of time, warm-ups and failed trials included.
pub fn moments(record: &RunRecord) -> Vec<Moment> {
    let known: BTreeMap<i64, &Series> = record
        .series
        .iter()
        .map(|one| (one.sample, &one.series))
        .collect();
    let (mut start_ns, mut written_bytes, mut read_bytes) = (0_u64, 0_u64, 0_u64);
    let mut all = Vec::new();
    for sample in &record.samples {
        let whole = [Interval {
            start_ns: 0,
            length_ns: sample.elapsed_ns,
            done: sample.operations.moved(),
        }];
        let intervals = known.get(&sample.id).map(|s| s.intervals.as_slice());
        for interval in intervals.unwrap_or(&whole) {
            all.push(Moment {
                sample: sample.id,
                cell: sample.cell,
                warmup: sample.warmup,
                start_ns: start_ns.saturating_add(interval.start_ns),
                length_ns: interval.length_ns,
                written_bytes,
                read_bytes,
                done: interval.done,
            });
            written_bytes = written_bytes.saturating_add(interval.done.write.bytes);
            read_bytes = read_bytes.saturating_add(interval.done.read.bytes);
        }
        start_ns = start_ns.saturating_add(sample.elapsed_ns);
    }
    all
}

/// Whether the throughput of a cell is its own: iolab issues its requests, as fast as they are answered.
fn is_free(cell: &Cell) -> bool {
    cell.program().is_none() && cell.trial().rate.is_none()
}

/// What a shift in one of `series` series of `n` values must be.
fn lasting(n: usize, series: usize) -> Lasting {
    Lasting {
        length: (n / 20).max(VALUES_MIN / 2),
        shift: FACTOR_MIN.ln(),
        alpha: ALPHA / series.max(1) as f64,
    }
}

/// Values per group, so that there are no more than `most` groups.
fn group_size(values: usize, most: usize) -> usize {
    values.div_ceil(most).max(1)
}
