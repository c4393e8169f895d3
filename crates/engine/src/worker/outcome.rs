//! The results of one worker.

use super::NotedRequests;
use crate::buffer::Pieces;
use crate::placement::Seen;
use crate::series::Recorder;
use crate::verify::signer::Signed;
use crate::worker::latency_log::used_operations;
use iolab_host::clock::Clock;
use iolab_workload::histogram::{new_latency_histogram, unused_latency_histogram};
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Effective, Outcome, Tally};
use iolab_workload::series::INTERVAL_NS;
use iolab_workload::trial::TrialSpec;

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
