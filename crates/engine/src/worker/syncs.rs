//! The end of a trial for a worker: its last time stamp, and the final sync.

use super::Common;
use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Request, SystemFailure};
use iolab_workload::outcome::FailedRequest;

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
        let whole = self.outcome.ended.is_whole();
        if self.syncs_at_end && self.outcome.operations.write.requests > 0 && whole {
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
            self.outcome.end_sync_ns = self.clock.ns_between(before, self.outcome.end);
            if result != 0 {
                return self.fail(FailedRequest {
                    syscall: backend.syscall(request.action),
                    offset: 0,
                    length: 0,
                    errno: -result as i32,
                });
            }
            self.outcome.operations.sync.requests += 1;
        }
    }
}
