//! Syncs of a worker after a number of writes, and the end of its trial: the last time stamp, and the final sync.

use iolab_workload::outcome::FailedRequest;
use iolab_workload::trial::TrialSpec;

use super::Common;
use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Request, SystemFailure};

/// The syncs that follow writes.
pub(crate) struct Following {
    pub(super) call: Action,
    /// Number of writes per sync.
    every: u32,
    /// Writes since the last sync.
    since: u32,
    /// Stamp at which the sync of each slot was issued.
    pub(crate) started: Vec<u64>,
}

impl Following {
    pub(crate) fn new(spec: &TrialSpec) -> Self {
        let call = spec.sync.call();
        Self {
            call: call.map_or(Action::Fsync, Action::from),
            every: spec.sync_every,
            since: 0,
            started: vec![0; call.map_or(0, |_| spec.depth as usize)],
        }
    }

    /// Counts a write; whether a sync follows it.
    pub(crate) fn is_due(&mut self) -> bool {
        self.since += 1;
        if self.since < self.every {
            return false;
        }
        self.since = 0;
        true
    }
}

/// Carries out the only request there is.
#[inline(never)]
fn carry_out<B: Backend>(
    backend: &mut B,
    slot: Slot,
    request: Request,
    done: &mut Vec<Completion>,
) -> Result<Completion, SystemFailure> {
    backend.queue(slot, request);
    loop {
        backend.complete(1, done)?;
        if let Some(completion) = done.pop() {
            return Ok(completion);
        }
    }
}

impl Common<'_> {
    /// Takes the time, and makes written data durable if that is part of the trial.
    pub(super) fn wind_up<B: Backend>(&mut self, backend: &mut B, mut done: Vec<Completion>) {
        self.outcome.end = self.clock.now();
        self.see_cpu();
        let tallied = self.done();
        self.outcome.series.finish(self.outcome.end, tallied);
        self.outcome.signed = self.signer.take().map(|signer| signer.finish());
        let whole = self.outcome.account.ended.is_whole();
        if self.syncs_at_end && self.outcome.account.operations.write.requests > 0 && whole {
            self.final_sync(backend, &mut done);
        }
    }

    /// The final fsync of policy `end`, of each file in turn, without outstanding requests.
    fn final_sync<B: Backend>(&mut self, backend: &mut B, done: &mut Vec<Completion>) {
        let before = self.outcome.end;
        for offset in backend.offset_in_each_file() {
            let request = Request {
                action: Action::Fsync,
                offset,
                at: 0,
                len: 0,
            };
            let slot = self.buffers.take().expect("nothing is outstanding");
            let Completion { slot, result } = match carry_out(backend, slot, request, done) {
                Ok(completion) => completion,
                Err(failure) => return self.mechanism_failed(backend, failure, done),
            };
            self.buffers.put(slot);
            self.outcome.end = self.clock.now();
            self.outcome.account.end_sync_ns = self.clock.ns_between(before, self.outcome.end);
            if result != 0 {
                return self.fail(FailedRequest {
                    syscall: backend.syscall(request.action),
                    offset: 0,
                    length: 0,
                    errno: -result as i32,
                });
            }
            self.outcome.account.operations.sync.requests += 1;
        }
    }
}
