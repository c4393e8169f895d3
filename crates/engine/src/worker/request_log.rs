//! The requests of a traced trial, one by one, to be joined with what the kernel traced of them.

use super::Request;
use crate::request::Action;
use iolab_workload::trial::TrialSpec;

/// Requests of a trial that are noted, at most: 32 MiB of them.
const NOTED_MAX: u64 = 1 << 20;

/// A request that was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotedRequest {
    /// Stamps.
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) writes: bool,
}

/// What is noted of single requests: a type, so that a loop that notes none has no code for it.
pub(crate) trait Log {
    /// Takes note of a completed request.
    fn note(&mut self, request: Request, started: u64, ended: u64);

    /// What was noted.
    fn take(&mut self) -> Option<NotedRequests>;
}

/// Nothing is noted.
pub(crate) struct NoLog;

impl Log for NoLog {
    #[inline(always)]
    fn note(&mut self, _request: Request, _started: u64, _ended: u64) {}

    fn take(&mut self) -> Option<NotedRequests> {
        None
    }
}

/// The first requests of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotedRequests {
    /// The worker's number.
    pub(crate) worker: u32,
    /// Its thread.
    pub(crate) thread: u32,
    pub(crate) requests: Vec<NotedRequest>,
    /// Requests for which there was no room.
    pub(crate) left_out: u64,
}

impl NotedRequests {
    /// Room for those of worker number `worker`, which is the calling thread and has at most `quota` of them.
    pub(crate) fn new(spec: &TrialSpec, worker: u32, quota: u64) -> Self {
        let room = quota.min(NOTED_MAX / u64::from(spec.threads.max(1)));
        // Not zeros, whose memory would first be touched within the trial.
        let touched = NotedRequest {
            started: 1,
            ended: 1,
            offset: 1,
            len: 1,
            writes: true,
        };
        let mut requests = vec![touched; room as usize];
        requests.clear();
        Self {
            worker,
            thread: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            requests,
            left_out: 0,
        }
    }
}

impl Log for NotedRequests {
    #[inline(always)]
    fn note(&mut self, request: Request, started: u64, ended: u64) {
        if self.requests.len() == self.requests.capacity() {
            self.left_out += 1;
            return;
        }
        self.requests.push(NotedRequest {
            started,
            ended,
            offset: request.offset,
            len: request.len,
            writes: request.action == Action::Write,
        });
    }

    fn take(&mut self) -> Option<NotedRequests> {
        Some(Self {
            requests: std::mem::take(&mut self.requests),
            ..*self
        })
    }
}
