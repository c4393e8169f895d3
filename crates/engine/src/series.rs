//! The course of a trial over time: requests and bytes per interval of the timed span.
//!
//! A worker's hot loop only compares a stamp that it has anyway with the end of the interval. The work since the last such
//! end is then the difference of its tallies, so the sums over a series are exactly the tallies.

use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::series::{INTERVALS_MAX, Interval, Series, merge_intervals};

use iolab_host::clock::Clock;

pub use iolab_workload::series::INTERVAL_NS;

/// The series of several workers together.
pub(crate) fn merged(workers: impl Iterator<Item = Recorder>, clock: &Clock) -> Series {
    workers
        .reduce(Recorder::plus)
        .map_or_else(Series::default, |all| all.series(clock))
}

/// Counts one worker's intervals, in memory of fixed size.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Stamp of the trial's start.
    start: u64,
    /// Length of an interval, ticks.
    width: u64,
    /// Length of an interval, ns. Reported instead of the ticks, whose rounding adds up to less than 4096 ticks.
    interval_ns: u64,
    /// The first intervals, at most [`INTERVALS_MAX`], for which there is memory; later ones are empty so far.
    slots: Vec<PerOperation<Moved>>,
    /// The interval under way.
    current: usize,
    /// Sum over all intervals so far.
    counted: PerOperation<Moved>,
    /// From the start to the end, ticks; known at the end.
    span: u64,
}

impl Recorder {
    /// A recorder with intervals of `interval_ns`, for a trial expected to take `due_ns`; `None` without a limit.
    pub(crate) fn new(clock: &Clock, interval_ns: u64, due_ns: Option<u64>) -> Self {
        // All intervals are reserved. The ones that the trial should need are also written to, since their first use inside
        // the timed span would fault. A thousand workers with room for all 4096 would write to 256 MiB of memory in vain.
        let mut slots = Vec::with_capacity(INTERVALS_MAX);
        let due = due_ns.map(|ns| usize::try_from(ns / interval_ns.max(1)).unwrap_or(usize::MAX));
        let written = due.map_or(INTERVALS_MAX, |due| {
            due.saturating_add(2).min(INTERVALS_MAX)
        });
        slots.resize(written, PerOperation::default());
        Self {
            start: 0,
            width: clock.ticks(interval_ns).max(1),
            interval_ns,
            slots,
            current: 0,
            counted: PerOperation::default(),
            span: 0,
        }
    }

    /// Starts the worker's clock at a stamp; returns the end of the first interval, a stamp.
    pub(crate) fn begin(&mut self, start: u64) -> u64 {
        self.start = start;
        self.end_of_current()
    }

    /// Credits `done`, the sum up to `now`, to the current interval and enters the one that holds `now`; returns its end.
    /// Requests that completed at `now` itself must not be counted in `done` yet.
    pub(crate) fn turn_to(&mut self, now: u64, done: PerOperation<Moved>) -> u64 {
        let slot = &mut self.slots[self.current];
        *slot = slot.plus(done.since(self.counted));
        self.counted = done;
        let since_start = now.saturating_sub(self.start);
        while since_start / self.width >= INTERVALS_MAX as u64 {
            self.double();
        }
        self.current = (since_start / self.width) as usize;
        if self.current >= self.slots.len() {
            // Within the reserved memory.
            self.slots.resize(self.current + 1, PerOperation::default());
        }
        self.end_of_current()
    }

    /// Notes all that was done when the last request was completed.
    pub(crate) fn finish(&mut self, now: u64, done: PerOperation<Moved>) {
        self.turn_to(now, done);
        self.span = now.saturating_sub(self.start);
    }

    /// From the trial's start to the worker's end, ns; known at the end.
    pub(crate) fn span_ns(&self, clock: &Clock) -> u64 {
        clock.ns_between(0, self.span)
    }

    fn end_of_current(&self) -> u64 {
        let end = (self.current as u64 + 1).saturating_mul(self.width);
        self.start.saturating_add(end)
    }

    /// Makes each interval twice as long: two neighbours become one.
    fn double(&mut self) {
        let half = self.slots.len().div_ceil(2);
        for slot in 0..half {
            let second = self.slots.get(2 * slot + 1).copied().unwrap_or_default();
            self.slots[slot] = self.slots[2 * slot].plus(second);
        }
        self.slots[half..].fill(PerOperation::default());
        self.current /= 2;
        self.width = self.width.saturating_mul(2);
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Two workers together, with the longer of their intervals.
    fn plus(mut self, mut other: Self) -> Self {
        while self.width < other.width {
            self.double();
        }
        while other.width < self.width {
            other.double();
        }
        if self.slots.len() < other.slots.len() {
            self.slots
                .resize(other.slots.len(), PerOperation::default());
        }
        // Later intervals are empty.
        for (sum, part) in self.slots.iter_mut().zip(&other.slots[..=other.current]) {
            *sum = sum.plus(*part);
        }
        self.current = self.current.max(other.current);
        self.span = self.span.max(other.span);
        self
    }

    fn series(&self, clock: &Clock) -> Series {
        let slots = self.slots[..=self.current].iter().zip(0..);
        let mut intervals: Vec<Interval> = slots
            .map(|(done, number)| Interval {
                start_ns: self.interval_ns.saturating_mul(number),
                length_ns: self.interval_ns,
                done: *done,
                drive_millidegrees: None,
            })
            .collect();
        end_at(&mut intervals, self.span_ns(clock));
        Series { intervals }
    }
}

/// Ends a series with its trial.
fn end_at(intervals: &mut Vec<Interval>, span_ns: u64) {
    let Some(mut last) = intervals.pop() else {
        return;
    };
    let rest = span_ns.saturating_sub(last.start_ns);
    if 2 * rest < last.length_ns
        && let Some(before) = intervals.pop()
    {
        last = merge_intervals(&[before, last]);
    }
    last.length_ns = span_ns.saturating_sub(last.start_ns).max(1);
    intervals.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn reads(requests: u64) -> PerOperation<Moved> {
        PerOperation {
            read: Moved {
                requests,
                bytes: requests * 4096,
            },
            ..PerOperation::default()
        }
    }

    /// A recorder that sees one request at each of these stamps, and ends at the last.
    fn recorded(clock: &Clock, start: u64, stamps: &[u64]) -> Recorder {
        due(clock, start, stamps, None)
    }

    /// The recorder of a trial that is expected to take `due_ns`.
    fn due(clock: &Clock, start: u64, stamps: &[u64], due_ns: Option<u64>) -> Recorder {
        let mut recorder = Recorder::new(clock, INTERVAL_NS, due_ns);
        let mut end = recorder.begin(start);
        let mut done = 0;
        for &stamp in stamps {
            if stamp >= end {
                end = recorder.turn_to(stamp, reads(done));
            }
            assert!(stamp < end, "a stamp lies within the interval entered");
            done += 1;
        }
        recorder.finish(stamps.last().copied().unwrap_or(start), reads(done));
        recorder
    }

    fn requests(series: &Series) -> Vec<u64> {
        let intervals = series.intervals.iter();
        intervals.map(|i| i.done.read.requests).collect()
    }

    #[test]
    fn a_request_counts_in_its_completion_interval() {
        let clock = Clock::of_rate(1.0);
        let at = [10, 99, 100, 101, 350].map(|ms| 7 + ms * MS);
        let series = recorded(&clock, 7, &at).series(&clock);
        assert_eq!(requests(&series), [2, 2, 0, 1]);
        let last = series.intervals[3];
        assert_eq!((last.start_ns, last.length_ns), (300 * MS, 50 * MS));
    }

    #[test]
    fn a_short_rest_belongs_to_the_interval_before() {
        let clock = Clock::of_rate(1.0);
        let series = recorded(&clock, 0, &[50 * MS, 150 * MS, 201 * MS]).series(&clock);
        assert_eq!(requests(&series), [1, 2]);
        assert_eq!(series.intervals[1].end_ns(), 201 * MS);
        let short = recorded(&clock, 0, &[MS]).series(&clock);
        assert_eq!(requests(&short), [1]);
        assert_eq!(short.intervals[0].length_ns, MS);
    }

    #[test]
    fn intervals_grow_to_limit_their_number() {
        let clock = Clock::of_rate(1.0);
        let stamps: Vec<u64> = (0..10_000).map(|i| i * INTERVAL_NS).collect();
        let series = recorded(&clock, 0, &stamps).series(&clock);
        assert_eq!(series.intervals.len(), 2500);
        assert!(requests(&series).iter().all(|n| *n == 4));
        assert_eq!(series.intervals[0].length_ns, 4 * INTERVAL_NS);
        // An hour without a completion, and a clock that went to its end.
        for far in [3_600_000 * MS, u64::MAX / 2] {
            let series = recorded(&clock, 0, &[MS, far]).series(&clock);
            assert!(series.intervals.len() <= INTERVALS_MAX);
            assert_eq!(series.total(), reads(2));
        }
    }

    #[test]
    fn an_idle_worker_has_one_empty_interval() {
        let clock = Clock::of_rate(1.0);
        let series = recorded(&clock, 5, &[]).series(&clock);
        assert_eq!(requests(&series), [0]);
        let none = merged(std::iter::empty(), &clock);
        assert_eq!(none, Series::default());
    }

    proptest! {
        #[test]
        fn sums_are_kept_and_intervals_follow_each_other(
            gaps in prop::collection::vec(prop::collection::vec(0u64..90_000_000_000, 0..60), 1..4),
            ns_per_tick in 0.2f64..5.0,
        ) {
            let clock = Clock::of_rate(ns_per_tick);
            let count: usize = gaps.iter().map(Vec::len).sum();
            let workers = gaps.iter().enumerate().map(|(worker, gaps)| {
                let start = 1000 * worker as u64;
                let stamps: Vec<u64> = gaps
                    .iter()
                    .scan(start, |at, gap| {
                        *at += gap;
                        Some(*at)
                    })
                    .collect();
                due(&clock, start, &stamps, (worker > 0).then_some(INTERVAL_NS))
            });
            let series = merged(workers, &clock);
            prop_assert_eq!(series.total(), reads(count as u64));
            prop_assert!(!series.intervals.is_empty() && series.intervals.len() <= INTERVALS_MAX);
            let mut end = 0;
            for interval in &series.intervals {
                prop_assert_eq!(interval.start_ns, end);
                prop_assert!(interval.length_ns > 0);
                end = interval.end_ns();
            }
            for most in [1, 7, 5000] {
                let folded = series.clone().folded(most);
                prop_assert!(folded.intervals.len() <= most);
                prop_assert_eq!(folded.total(), series.total());
                prop_assert_eq!(folded.intervals.last().map(Interval::end_ns), Some(end));
            }
        }
    }
}
