//! The results of one worker.

use super::NotedRequests;
use crate::arena::Pieces;
use crate::placement::Seen;
use crate::series::Recorder;
use crate::spare_histograms::SpareHistograms;
use crate::verify::signer::Signed;
use iolab_host::clock::Clock;
use iolab_workload::counters::{Counters, Hardware};
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::histogram::unused_latency_histogram;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Effective, Ended, FailedRequest, RateReport, Tally};
use iolab_workload::request_sizes::RequestSizes;
use iolab_workload::trial::TrialSpec;

/// The results of one worker.
#[derive(Debug)]
pub(crate) struct WorkerOutcome {
    pub(crate) operations: PerOperation<Tally>,
    pub(crate) errors: u64,
    pub(crate) failure: Option<FailedRequest>,
    pub(crate) ended: Ended,
    /// Clock stamps: first submission, after the last completion and the final fsync.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) end_sync_ns: u64,
    /// Time in which it paused.
    pub(crate) paused_ns: u64,
    pub(crate) effective: Effective,
    /// The processor's counters of this worker.
    pub(crate) hardware: Hardware,
    /// The kernel's counters of its thread, if other groups run at the same time.
    pub(crate) thread: Counters,
    /// Stretches of physical memory that its buffers lie in, if known.
    pub(crate) pieces: Option<Pieces>,
    /// How this worker kept up with its share of a rate.
    pub(crate) rate_report: Option<RateReport>,
    /// Its course over time.
    pub(crate) series: Recorder,
    /// The writes that can be verified.
    pub(crate) signed: Option<Signed>,
    /// How many requests of each size there were, if sizes were drawn.
    pub(crate) sizes: RequestSizes,
    /// Time in which it was ready to run and waited for a CPU, ns; `None` if that is not counted.
    pub(crate) run_delay_ns: Option<u64>,
    /// The CPUs that it was seen on; `None` in virtual time.
    pub(crate) cpus: Option<Box<Seen>>,
    /// Its requests one by one, if the trial is traced.
    pub(crate) noted: Option<NotedRequests>,
    /// Its latencies over time, if they are kept.
    pub(crate) over_time: Option<PerOperation<LatencyOverTime>>,
}

impl WorkerOutcome {
    /// The outcome of a worker that has done nothing yet; `timed` says whether it records latencies.
    pub(crate) fn begun(
        spec: &TrialSpec,
        timed: bool,
        clock: &Clock,
        effective: Effective,
        histograms: &SpareHistograms,
    ) -> Self {
        let tally = |used| Tally {
            requests: 0,
            bytes: 0,
            short_transfers: 0,
            latency: match used && timed {
                true => histograms.take(),
                false => unused_latency_histogram(),
            },
            waits: None,
        };
        let due = spec.limit.time;
        let due_ns = due.map(|due| u64::try_from(due.as_nanos()).unwrap_or(u64::MAX));
        Self {
            operations: used_operations(spec).map(tally),
            errors: 0,
            failure: None,
            ended: Ended::Done,
            start: 0,
            end: 0,
            end_sync_ns: 0,
            paused_ns: 0,
            effective,
            hardware: Hardware::default(),
            thread: Counters::default(),
            pieces: None,
            rate_report: None,
            series: Recorder::new(clock, spec.series_ns, due_ns),
            signed: None,
            sizes: RequestSizes::default(),
            run_delay_ns: None,
            cpus: None,
            noted: None,
            over_time: None,
        }
    }
}

/// The operations of a trial that its workers count each for itself.
fn used_operations(spec: &TrialSpec) -> PerOperation<bool> {
    PerOperation {
        read: spec.reads(),
        write: spec.writes(),
        sync: spec.sync.follows_writes(),
        trim: spec.trims(),
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

/// Histograms that the workers of a trial record into.
pub(crate) fn histogram_count(spec: &TrialSpec) -> usize {
    let count = |of: PerOperation<bool>| of.iter().filter(|(_, is_used)| **is_used).count();
    let service = match is_timed(spec) {
        true => count(used_operations(spec)),
        false => 0,
    };
    let waits = match spec.rate {
        // Histograms of the response, and of the lateness.
        Some(_) => 2 * count(waiting_operations(spec)),
        None => 0,
    };
    spec.threads as usize * (service + waits)
}
