//! The results of one worker, and its latencies over time in memory of fixed size.

use iolab_host::clock::Clock;
use iolab_workload::histogram::over_time::{
    BUCKETS, INTERVALS_MAX, IntervalLatency, LatencyOverTime, bucket,
};
use iolab_workload::histogram::{new_latency_histogram, unused_latency_histogram};
use iolab_workload::operation::{Operation, PerOperation};
use iolab_workload::outcome::{Effective, Outcome, Tally};
use iolab_workload::series::INTERVAL_NS;
use iolab_workload::trial::TrialSpec;

use super::Request;
use super::request_log::{Log, NotedRequests};
use crate::buffer::Pieces;
use crate::placement::Seen;
use crate::series::Recorder;
use crate::verify::signer::Signed;

/// The results of one worker.
#[derive(Debug)]
pub(crate) struct WorkerOutcome {
    /// Account of the worker without its series; its counters are the processor's, and if other groups run at the same time the kernel's
    /// of its thread.
    pub(crate) account: Outcome,
    /// Clock stamps: first submission, after the last completion and the final fsync.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Stretches of physical memory that its buffers lie in, if known.
    pub(crate) pieces: Option<Pieces>,
    /// Requests and bytes of the worker over time.
    pub(crate) series: Recorder,
    /// The writes that can be verified.
    pub(crate) signed: Option<Signed>,
    /// The CPUs that it was seen on; `None` in virtual time.
    pub(crate) cpus: Option<Box<Seen>>,
    /// Its requests one by one, if the trial is traced.
    pub(crate) noted: Option<NotedRequests>,
}

impl WorkerOutcome {
    /// The outcome of a worker that has done nothing yet; `timed` says whether it records latencies.
    pub(crate) fn begun(
        spec: &TrialSpec,
        timed: bool,
        clock: &Clock,
        effective: Effective,
    ) -> Self {
        let tally = |used| Tally {
            requests: 0,
            bytes: 0,
            short_transfers: 0,
            latency: match used && timed {
                true => new_latency_histogram(),
                false => unused_latency_histogram(),
            },
            waits: None,
        };
        let due = spec.limit.time;
        let due_ns = due.map(|due| u64::try_from(due.as_nanos()).unwrap_or(u64::MAX));
        Self {
            account: Outcome {
                effective,
                ..Outcome::of(used_operations(spec).map(tally))
            },
            start: 0,
            end: 0,
            pieces: None,
            series: Recorder::new(clock, INTERVAL_NS, due_ns),
            signed: None,
            cpus: None,
            noted: None,
        }
    }
}

/// Whether workers record how long requests take.
pub(crate) fn is_timed(spec: &TrialSpec) -> bool {
    spec.latency || spec.rate.is_some()
}

/// The operations with an intended start, if there is a rate. A sync starts when its write is done.
pub(crate) fn waiting_operations(spec: &TrialSpec) -> PerOperation<bool> {
    PerOperation {
        sync: false,
        ..used_operations(spec)
    }
}

/// Workers that each have room for the most intervals. More workers have less room each, so that the total stays the same.
const WORKERS_AT_ONCE: usize = 32;

/// Fewest intervals that a worker has room for.
const INTERVALS_MIN: usize = 16;

/// Bytes of the latencies over time of all workers of a trial.
pub(crate) fn latency_log_bytes(spec: &TrialSpec) -> u64 {
    let used = kept(spec).iter().filter(|(_, used)| **used).count();
    let one = room(spec) * (BUCKETS * size_of::<u32>() + size_of::<u64>());
    used as u64 * u64::from(spec.threads) * one as u64
}

/// The operations of a trial that its workers count each for itself.
pub(super) fn used_operations(spec: &TrialSpec) -> PerOperation<bool> {
    PerOperation {
        read: spec.reads(),
        write: spec.writes(),
        sync: spec.sync.follows_writes(),
        trim: spec.trims(),
    }
}

/// The operations whose latencies are kept over time.
fn kept(spec: &TrialSpec) -> PerOperation<bool> {
    used_operations(spec).map(|is_used| is_used && spec.latency_over_time)
}

/// Intervals that a worker has room for: an even number, so that neighbours can be merged.
fn room(spec: &TrialSpec) -> usize {
    let others = (spec.threads as usize).max(WORKERS_AT_ONCE);
    let room = (INTERVALS_MAX * WORKERS_AT_ONCE / others).max(INTERVALS_MIN);
    room & !1
}

/// Length of the first intervals, ns: such that all of the trial's time has room. Merging them later would pause the worker.
fn first_interval_ns(spec: &TrialSpec, room: usize) -> u64 {
    let time = spec.limit.time.unwrap_or_default();
    let mut interval_ns = INTERVAL_NS;
    // One is left for what completes after the end.
    while time.as_nanos() >= u128::from(interval_ns) * (room as u128 - 1) {
        interval_ns = interval_ns.saturating_mul(2);
    }
    interval_ns
}

/// The histograms of one operation.
#[derive(Debug)]
struct Histograms {
    /// Requests of each bucket, interval after interval.
    counts: Vec<u32>,
    /// The greatest latency of each interval, ns.
    max_ns: Vec<u64>,
}

impl Histograms {
    fn new(room: usize) -> Self {
        let mut own = Self {
            counts: vec![1; room * BUCKETS],
            max_ns: vec![1; room],
        };
        // Written to, and not only reserved: the first use inside the timed span would fault.
        own.counts.fill(0);
        own.max_ns.fill(0);
        own
    }

    #[inline(always)]
    fn record(&mut self, interval: usize, ns: u64) {
        let count = &mut self.counts[interval * BUCKETS + bucket(ns)];
        *count = count.saturating_add(1);
        let max = &mut self.max_ns[interval];
        *max = (*max).max(ns);
    }

    /// Makes two neighbouring intervals one.
    fn double(&mut self) {
        let half = self.max_ns.len() / 2;
        for interval in 0..half {
            self.max_ns[interval] = self.max_ns[2 * interval].max(self.max_ns[2 * interval + 1]);
            for bucket in 0..BUCKETS {
                let first = self.counts[2 * interval * BUCKETS + bucket];
                let second = self.counts[(2 * interval + 1) * BUCKETS + bucket];
                self.counts[interval * BUCKETS + bucket] = first.saturating_add(second);
            }
        }
        self.max_ns[half..].fill(0);
        self.counts[half * BUCKETS..].fill(0);
    }

    fn intervals(&self, count: usize) -> Vec<IntervalLatency> {
        let counts = self.counts.chunks_exact(BUCKETS).zip(&self.max_ns);
        let intervals = counts.map(|(counts, max)| IntervalLatency::new(counts, *max));
        intervals.take(count).collect()
    }
}

/// Latencies of one worker over time, in the same intervals as its series.
#[derive(Debug)]
pub(crate) struct LatencyLog<'a> {
    clock: &'a Clock,
    /// Stamp of the trial's start.
    start: u64,
    /// Length of an interval, ticks.
    width: u64,
    /// Length of an interval, ns.
    interval_ns: u64,
    room: usize,
    /// The interval under way.
    current: usize,
    /// End of the current interval, a stamp.
    end: u64,
    histograms: PerOperation<Option<Histograms>>,
}

impl<'a> LatencyLog<'a> {
    /// The log of a worker of this trial; `None` if the trial keeps none.
    pub(crate) fn new(spec: &TrialSpec, clock: &'a Clock) -> Option<Self> {
        let room = room(spec);
        let interval_ns = first_interval_ns(spec, room);
        spec.latency_over_time.then(|| Self {
            clock,
            start: 0,
            width: clock.ticks(interval_ns).max(1),
            interval_ns,
            room,
            current: 0,
            end: 0,
            histograms: kept(spec).map(|kept| kept.then(|| Histograms::new(room))),
        })
    }

    /// The worker begins at a stamp.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
        self.end = self.start.saturating_add(self.width);
        self.turn_to(start);
    }

    /// Counts a request of this operation that completed at `ended`, and whose latency counts from `begun`, both stamps.
    #[inline(always)]
    pub(crate) fn record(&mut self, operation: Operation, begun: u64, ended: u64) {
        if ended >= self.end {
            self.turn_to(ended);
        }
        if let Some(histograms) = &mut self.histograms[operation] {
            let ns = self.clock.ns_between(begun, ended);
            histograms.record(self.current, ns);
        }
    }

    /// Enters the interval that holds a stamp.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, now: u64) {
        let since = now.saturating_sub(self.start);
        while since / self.width >= self.room as u64 {
            self.histograms
                .as_mut()
                .map(|own| own.as_mut().map(Histograms::double));
            self.width = self.width.saturating_mul(2);
            self.interval_ns = self.interval_ns.saturating_mul(2);
        }
        self.current = (since / self.width) as usize;
        let end = (self.current as u64 + 1).saturating_mul(self.width);
        self.end = self.start.saturating_add(end);
    }

    /// The counted latencies, for the operations that the trial has.
    pub(crate) fn counted(&self) -> PerOperation<LatencyOverTime> {
        self.histograms.as_ref().map(|own| LatencyOverTime {
            interval_ns: self.interval_ns,
            span_ns: self.interval_ns.saturating_mul(self.current as u64 + 1),
            intervals: own
                .as_ref()
                .map_or_else(Vec::new, |own| own.intervals(self.current + 1)),
        })
    }
}

/// Notes of a worker that keeps any.
pub(crate) struct Notes<'a> {
    /// The requests one by one, of a traced trial.
    pub(crate) requests: Option<NotedRequests>,
    /// Latencies of the worker's requests over time.
    pub(crate) over_time: Option<LatencyLog<'a>>,
}

impl Log for Notes<'_> {
    const NOTES: bool = true;

    fn begin(&mut self, start: u64) {
        if let Some(over_time) = &mut self.over_time {
            over_time.begin(start);
        }
    }

    #[inline(always)]
    fn note(
        &mut self,
        request: Request,
        begun: u64,
        started: u64,
        ended: u64,
        synced: Option<u64>,
    ) {
        if let Some(requests) = &mut self.requests {
            requests.note(request, started, ended, synced);
        }
        if let Some(over_time) = &mut self.over_time {
            over_time.record(request.action.completes(), begun, ended);
            if let Some(synced) = synced {
                over_time.record(Operation::Sync, synced, ended);
            }
        }
    }

    fn take(&mut self) -> Option<NotedRequests> {
        self.requests.take()
    }

    fn over_time(&self) -> Option<PerOperation<LatencyOverTime>> {
        self.over_time.as_ref().map(LatencyLog::counted)
    }
}
