//! What a trial did over time: requests and bytes per interval of the timed span.

use crate::outcome::Tally;

/// Most intervals of a trial: where more would be needed, they get twice as long.
pub const INTERVALS_MAX: usize = 4096;

/// Requests and bytes of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Reads completed.
    pub read_requests: u64,
    /// Bytes read, also by requests that were never completed in full.
    pub read_bytes: u64,
    /// Writes completed; under the sync policy `each` with their `fsync`.
    pub write_requests: u64,
    /// Bytes written, also by requests that were never completed in full.
    pub write_bytes: u64,
}

impl Done {
    /// What the tallies of both directions hold.
    pub fn of(reads: &Tally, writes: &Tally) -> Self {
        Self {
            read_requests: reads.requests,
            read_bytes: reads.bytes,
            write_requests: writes.requests,
            write_bytes: writes.bytes,
        }
    }

    /// Both together. Sums beyond 2^64 stay there.
    pub fn plus(self, other: Self) -> Self {
        Self {
            read_requests: self.read_requests.saturating_add(other.read_requests),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            write_requests: self.write_requests.saturating_add(other.write_requests),
            write_bytes: self.write_bytes.saturating_add(other.write_bytes),
        }
    }

    /// What came to an earlier state to make it this one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_requests: self.read_requests - earlier.read_requests,
            read_bytes: self.read_bytes - earlier.read_bytes,
            write_requests: self.write_requests - earlier.write_requests,
            write_bytes: self.write_bytes - earlier.write_bytes,
        }
    }

    /// Bytes of both directions.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }
}

/// One interval of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// From the start of the timed span, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// What was completed within it.
    pub done: Done,
}

impl Interval {
    /// Where it ends, from the start of the timed span, ns.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// Throughput of both directions together, MB/s (10^6 bytes per second).
    pub fn throughput_mb_s(&self) -> f64 {
        self.done.bytes() as f64 * 1e3 / self.length_ns.max(1) as f64
    }
}

/// A trial over time: intervals that follow each other without a gap, from the start of the timed span to the last
/// completion. A final `fsync` lies behind them.
///
/// All but the last are equally long: 100 ms, or the least doubling of it with which there are no more than 4096. A
/// rest shorter than half of that belongs to the last. Each worker's intervals count from its own start; the starts of
/// several lie as far apart as `elapsed_ns` and `all_active_ns` of the outcome tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Series {
    /// In the order of time; none for a program.
    pub intervals: Vec<Interval>,
}

impl Series {
    /// What all intervals hold together.
    pub fn total(&self) -> Done {
        self.intervals
            .iter()
            .fold(Done::default(), |sum, interval| sum.plus(interval.done))
    }

    /// The same with at most `most` intervals (at least 1): neighbours are taken together, two at a time.
    pub fn folded(mut self, most: usize) -> Self {
        while self.intervals.len() > most.max(1) {
            let pairs = self.intervals.chunks(2);
            self.intervals = pairs.map(together).collect();
        }
        self
    }
}

/// Neighbouring intervals as one.
pub fn together(neighbours: &[Interval]) -> Interval {
    let sum = |a: Interval, b: &Interval| Interval {
        start_ns: a.start_ns,
        length_ns: a.length_ns.saturating_add(b.length_ns),
        done: a.done.plus(b.done),
    };
    neighbours[1..].iter().fold(neighbours[0], sum)
}
