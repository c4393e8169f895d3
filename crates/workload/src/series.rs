//! Time series of a trial: requests and bytes per interval of the timed span.

use serde::{Deserialize, Serialize};

use crate::operation::{Moved, PerOperation};
use crate::response::mb_s;

/// Length of an interval, unless the trial is too long for it, ns.
pub const INTERVAL_NS: u64 = 100_000_000;

/// Most intervals of a trial; longer trials have longer intervals, doubled as often as needed.
pub const INTERVALS_MAX: usize = 4096;

/// One interval of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interval {
    /// From the start of the timed span, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Requests and bytes completed within it.
    pub done: PerOperation<Moved>,
    /// Highest temperature of the drive that was read within it, thousandths of a degree Celsius; `None` if none was read.
    pub drive_millidegrees: Option<u64>,
}

/// A temperature of the drive, read in mid-trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemperatureReading {
    /// When, from the start of the trial, ns.
    pub at_ns: u64,
    /// Thousandths of a degree Celsius; of several drives the hottest.
    pub millidegrees: u64,
}

impl Interval {
    /// Its end, from the start of the timed span, ns.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// Throughput of all operations, MB/s (10^6 bytes per second).
    pub fn throughput_mb_s(&self) -> f64 {
        mb_s(self.done.bytes(), self.length_ns)
    }
}

/// Consecutive intervals of a trial from the start of the timed span to the last completion; the final `fsync` is not included.
///
/// All but the last have the same length: 100 ms, doubled until there are at most 4096. A remainder shorter than half an interval
/// is part of the last one. Each worker's intervals start with that worker; the difference of `elapsed_ns` and `all_active_ns` of
/// the outcome bounds how far these starts are apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Series {
    /// In the order of time; empty for a program.
    pub intervals: Vec<Interval>,
}

impl Series {
    /// Sum over all intervals.
    pub fn total(&self) -> PerOperation<Moved> {
        self.intervals
            .iter()
            .fold(PerOperation::default(), |sum, interval| {
                sum.plus(interval.done)
            })
    }

    /// Notes temperatures in the intervals in which they were read.
    pub fn note_temperatures(&mut self, readings: &[TemperatureReading]) {
        for reading in readings {
            let after = self
                .intervals
                .partition_point(|interval| interval.start_ns <= reading.at_ns);
            let within = self.intervals[..after]
                .last_mut()
                .filter(|interval| reading.at_ns < interval.end_ns());
            if let Some(interval) = within {
                interval.drive_millidegrees =
                    interval.drive_millidegrees.max(Some(reading.millidegrees));
            }
        }
    }

    /// Merges neighbours into intervals of at least this length; a remainder shorter than half of that is part of the last.
    #[must_use]
    pub fn coarsened(&self, length_ns: u64) -> Self {
        let first = self
            .intervals
            .first()
            .map_or(0, |interval| interval.length_ns);
        let count = (length_ns / first.max(1)).max(1) as usize;
        let mut intervals: Vec<Interval> =
            self.intervals.chunks(count).map(merge_intervals).collect();
        if let [.., before, rest] = &mut intervals[..]
            && 2 * rest.length_ns < length_ns
            && count > 1
        {
            *before = merge_intervals(&[*before, *rest]);
            intervals.pop();
        }
        Self { intervals }
    }

    /// Merges neighbours until an interval has at least this many requests on average and there are at most `most` of them (at
    /// least 1). A request counts where it completes: with few of them in an interval its throughput is what happened to end there.
    #[must_use]
    pub fn of_requests(&self, least: u64, most: usize) -> Self {
        let enough = self.total().requests() / least.max(1);
        let count = self.intervals.len().min(most).max(1) as u64;
        let merged = self
            .intervals
            .len()
            .div_ceil(count.min(enough).max(1) as usize);
        let first = self.intervals.first();
        let length_ns = first.map_or(0, |interval| interval.length_ns);
        self.coarsened(length_ns.saturating_mul(merged as u64))
    }

    /// Sum interval by interval, in the intervals of the series with the longer ones.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let length = |series: &Self| series.intervals.first().map_or(0, |first| first.length_ns);
        let longer = length(&self).max(length(&other));
        let (a, b) = (self.coarsened(longer), other.coarsened(longer));
        let (mut sum, part) = match a.intervals.len() >= b.intervals.len() {
            true => (a, b),
            false => (b, a),
        };
        let last = sum.intervals.len().saturating_sub(1);
        for (number, (sum, part)) in sum.intervals.iter_mut().zip(part.intervals).enumerate() {
            sum.done = sum.done.plus(part.done);
            sum.drive_millidegrees = sum.drive_millidegrees.max(part.drive_millidegrees);
            // The last interval of a series may be longer than the others.
            if number == last {
                sum.length_ns = sum.length_ns.max(part.length_ns);
            }
        }
        sum
    }

    /// Merges pairs of neighbours until there are at most `most` intervals (at least 1).
    pub fn folded(mut self, most: usize) -> Self {
        while self.intervals.len() > most.max(1) {
            let pairs = self.intervals.chunks(2);
            self.intervals = pairs.map(merge_intervals).collect();
        }
        self
    }
}

/// Merges consecutive intervals into one.
pub fn merge_intervals(neighbours: &[Interval]) -> Interval {
    let sum = |a: Interval, b: &Interval| Interval {
        start_ns: a.start_ns,
        length_ns: a.length_ns.saturating_add(b.length_ns),
        done: a.done.plus(b.done),
        drive_millidegrees: a.drive_millidegrees.max(b.drive_millidegrees),
    };
    neighbours[1..].iter().fold(neighbours[0], sum)
}
