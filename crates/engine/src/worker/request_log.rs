//! The requests of a traced trial, one by one, to be joined with what the kernel traced of them.
//!
//! Recording of single requests.

use super::Request;
use crate::request::Action;
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::operation::PerOperation;
use iolab_workload::pattern::quota;
use iolab_workload::trial::TrialSpec;

/// Requests of a trial that are noted, at most: 32 MiB of them, and up to 24 MiB of the syncs that follow them.
const NOTED_MAX: u64 = 1 << 20;

/// Bytes of the request logs of all workers of a trial.
pub(crate) fn bytes(spec: &TrialSpec) -> u64 {
    if !spec.trace {
        return 0;
    }
    let of = |worker| {
        let (requests, syncs) = room(spec, worker);
        requests * size_of::<NotedRequest>() as u64 + syncs * size_of::<NotedSync>() as u64
    };
    (0..spec.threads).map(of).sum()
}

/// Requests and syncs that the log of a worker has room for.
fn room(spec: &TrialSpec, worker: u32) -> (u64, u64) {
    let requests = quota(spec, worker).min(NOTED_MAX / u64::from(spec.threads.max(1)));
    let syncs = match spec.sync.follows_writes() {
        true => requests / u64::from(spec.sync_every.max(1)),
        false => 0,
    };
    (requests, syncs)
}

/// A request that was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedRequest {
    /// Stamp of its start.
    pub started: u64,
    /// Stamp of its end.
    pub ended: u64,
    /// Offset, bytes.
    pub offset: u64,
    /// Length, bytes.
    pub len: u32,
    /// Whether it writes.
    pub writes: bool,
}

/// A sync that followed a write and was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedSync {
    /// Stamp of its start.
    pub started: u64,
    /// Stamp of its end.
    pub ended: u64,
}

/// A log of single requests: a type, so that a loop without one has no code for it.
pub(crate) trait Log {
    /// Whether anything is noted.
    const NOTES: bool;

    /// The worker begins at a stamp.
    fn begin(&mut self, _start: u64) {}

    /// Takes note of a completed request, whose latency counts from `begun`: the intended start at a rate, else `started`; and of the
    /// sync that followed it from the stamp `synced` on.
    #[inline(always)]
    fn note(&mut self, _: Request, _begun: u64, _started: u64, _ended: u64, _synced: Option<u64>) {}

    /// The log of single requests, if kept.
    fn take(&mut self) -> Option<NotedRequests> {
        None
    }

    /// The latencies over time, if kept.
    fn over_time(&self) -> Option<PerOperation<LatencyOverTime>> {
        None
    }
}

/// A log that notes nothing.
pub(crate) struct NoLog;

impl Log for NoLog {
    const NOTES: bool = false;
}

/// The first requests of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedRequests {
    /// The worker's number.
    pub worker: u32,
    /// Thread id of the worker.
    pub thread: u32,
    /// The requests, in the order of their completions.
    pub requests: Vec<NotedRequest>,
    /// The syncs that followed the requests.
    pub syncs: Vec<NotedSync>,
    /// Stamp of the start of the first request without room; all earlier ones are noted.
    pub left_out_from: Option<u64>,
}

impl NotedRequests {
    /// A log with room for the requests of worker number `worker`, which is the calling thread.
    pub(crate) fn new(spec: &TrialSpec, worker: u32) -> Self {
        let (room, room_of_syncs) = room(spec, worker);
        // Not zeros, whose memory would first be touched within the trial.
        let touched = NotedRequest {
            started: 1,
            ended: 1,
            offset: 1,
            len: 1,
            writes: true,
        };
        let sync = NotedSync {
            started: 1,
            ended: 1,
        };
        let mut requests = vec![touched; room as usize];
        requests.clear();
        let mut syncs = vec![sync; room_of_syncs as usize];
        syncs.clear();
        Self {
            worker,
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            requests,
            syncs,
            left_out_from: None,
        }
    }

    /// As [`Log::note`].
    #[inline(always)]
    pub(super) fn note(&mut self, request: Request, started: u64, ended: u64, synced: Option<u64>) {
        let is_full = self.requests.len() == self.requests.capacity()
            || (synced.is_some() && self.syncs.len() == self.syncs.capacity());
        if is_full {
            let first = self.left_out_from.unwrap_or(u64::MAX);
            self.left_out_from = Some(first.min(started));
            return;
        }
        self.requests.push(NotedRequest {
            started,
            ended: synced.unwrap_or(ended),
            offset: request.offset,
            len: request.len,
            writes: request.action != Action::Read,
        });
        if let Some(started) = synced {
            self.syncs.push(NotedSync { started, ended });
        }
    }
}

/// Recording of single requests: a type, so that each kind of loop is compiled on its own and pays only for its own
/// records.
pub(crate) trait Timing {
    /// Whether requests are stamped and their service time is recorded.
    const TIMED: bool;

    /// Whether a request follows as soon as another completes.
    const CLOSED: bool;

    /// The log of single requests.
    type Log: Log;

    fn log(&mut self) -> &mut Self::Log;

    /// The worker begins at a stamp.
    fn begin(&mut self, start: u64);

    /// Takes note of the completed request of a slot, and, where requests are noted, of the sync that followed it from the stamp `synced` on.
    fn completed(
        &mut self,
        slot: u32,
        request: Request,
        started: u64,
        now: u64,
        synced: Option<u64>,
    );
}

/// The closed loop, in which a request follows as soon as one completes. `TIMED` says that each is timed.
pub(crate) struct Closed<const TIMED: bool, L = NoLog>(pub(crate) L);

impl<const TIMED: bool, L: Log> Timing for Closed<TIMED, L> {
    const TIMED: bool = TIMED;
    const CLOSED: bool = true;

    type Log = L;

    #[inline(always)]
    fn log(&mut self) -> &mut L {
        &mut self.0
    }

    fn begin(&mut self, start: u64) {
        self.0.begin(start);
    }

    #[inline(always)]
    fn completed(
        &mut self,
        _slot: u32,
        request: Request,
        started: u64,
        now: u64,
        synced: Option<u64>,
    ) {
        self.0.note(request, started, started, now, synced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::settings;

    #[test]
    fn requests_without_room_leave_their_earliest_start() {
        let mut log = NotedRequests {
            worker: 0,
            thread: 1,
            requests: Vec::with_capacity(2),
            syncs: Vec::with_capacity(2),
            left_out_from: None,
        };
        let room = log.requests.capacity() as u64;
        let request = || Request {
            action: Action::Read,
            offset: 0,
            at: 0,
            len: 4096,
        };
        for number in 0..room {
            log.note(request(), number, 100 + number, None);
        }
        assert_eq!(log.left_out_from, None);
        // Completed in another order than they were started.
        log.note(request(), 70, 300, None);
        log.note(request(), 60, 310, None);
        log.note(request(), 80, 320, None);
        assert_eq!(log.requests.len() as u64, room);
        assert_eq!(log.left_out_from, Some(60));
    }

    #[test]
    fn a_write_ends_when_its_sync_begins() {
        let synced = "read_percent=0 sync=each depth=2 trace=true";
        let spec = settings(&format!("{synced} sync_every=2 bytes=16k"));
        let mut log = NotedRequests::new(&spec, 0);
        let write = Request {
            action: Action::Write,
            offset: 4096,
            at: 0,
            len: 4096,
        };
        let with_sync = Request {
            action: Action::Fsync,
            ..write
        };
        log.note(write, 10, 20, None);
        log.note(with_sync, 20, 60, Some(35));
        let spans = log
            .requests
            .iter()
            .map(|one| (one.started, one.ended, one.writes));
        assert_eq!(spans.collect::<Vec<_>>(), [(10, 20, true), (20, 35, true)]);
        let sync = NotedSync {
            started: 35,
            ended: 60,
        };
        assert_eq!(log.syncs, [sync]);
        // There is room for as many syncs as writes have.
        assert_eq!(NotedRequests::new(&spec, 0).syncs.capacity(), 2);
        assert_eq!(bytes(&spec), 4 * 32 + 2 * 16);
        // As much as there can be.
        let endless = format!("{synced} threads=4 time=1s");
        assert_eq!(bytes(&settings(&endless)), (32 + 16) << 20);
        assert_eq!(bytes(&settings(&format!("{endless} trace=false"))), 0);
    }
}
