//! What is recorded of a request.

use super::request_log::{Log, NoLog, NotedRequests};
use crate::request::Request;
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::operation::PerOperation;

/// What is recorded of a request: a type, so that each kind of loop is compiled for itself and pays for nothing that
/// it does not record.
pub(crate) trait Timing {
    /// Whether requests are stamped and their service time is recorded.
    const TIMED: bool;
    /// Whether requests are noted one by one.
    const NOTES: bool;

    /// The worker begins at a stamp.
    fn begin(&mut self, start: u64);

    /// The next request is queued from this slot.
    fn queued(&mut self, slot: u32);

    /// Takes note of a completed request, and, where requests are noted, of the sync that followed it from the stamp `synced` on.
    fn completed(
        &mut self,
        slot: u32,
        request: Request,
        started: u64,
        now: u64,
        synced: Option<u64>,
    );

    /// The requests that were noted one by one.
    fn take_noted(&mut self) -> Option<NotedRequests>;

    /// The latencies over time, where they are kept.
    fn over_time(&self) -> Option<PerOperation<LatencyOverTime>>;
}

/// The closed loop, in which a request follows as soon as one completes. `TIMED` says that each is timed.
pub(crate) struct Closed<const TIMED: bool, L = NoLog>(pub(crate) L);

impl<const TIMED: bool, L: Log> Timing for Closed<TIMED, L> {
    const TIMED: bool = TIMED;
    const NOTES: bool = L::NOTES;

    fn begin(&mut self, start: u64) {
        self.0.begin(start);
    }

    #[inline(always)]
    fn queued(&mut self, slot: u32) {
        self.0.issued(slot);
    }

    #[inline(always)]
    fn completed(
        &mut self,
        slot: u32,
        request: Request,
        started: u64,
        now: u64,
        synced: Option<u64>,
    ) {
        self.0.note(slot, request, started, started, now, synced);
    }

    fn take_noted(&mut self) -> Option<NotedRequests> {
        self.0.take()
    }

    fn over_time(&self) -> Option<PerOperation<LatencyOverTime>> {
        self.0.over_time()
    }
}
