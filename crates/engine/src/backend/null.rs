//! `null`: every request completes at once and in full. It shows what iolab itself costs.

use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Queue, Request, SystemFailure};

pub(crate) struct Null {
    /// Each request's memory and its result. A completion as a whole would be copied by one wide load, which has to wait
    /// for the two stores before it: that is a sixth of all that a request costs here.
    queued: Vec<(Slot, u32)>,
}

impl Null {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            queued: Vec::with_capacity(depth as usize),
        }
    }
}

impl Queue for Null {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let result = match request.action {
            Action::Read | Action::Write | Action::Trim => request.len,
            Action::Fsync | Action::Fdatasync => 0,
        };
        self.queued.push((slot, result));
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

impl Backend for Null {
    #[inline(always)]
    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        let queued = self.queued.drain(..);
        done.extend(queued.map(|(slot, result)| Completion {
            slot,
            result: i64::from(result),
        }));
        Ok(())
    }

    #[inline(always)]
    fn transfer(&mut self, _slot: &mut Slot, request: Request) -> Option<i64> {
        Some(i64::from(request.len))
    }
}
