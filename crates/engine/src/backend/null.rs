//! `null`: every request completes at once and in full. It shows what iolab itself costs.

use super::{Action, Backend, Completion, Request, SystemFailure};
use crate::buffer::Slot;

pub(crate) struct Null {
    queued: Vec<Completion>,
}

impl Null {
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            queued: Vec::with_capacity(depth as usize),
        }
    }
}

impl Backend for Null {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        let result = match request.action {
            Action::Read | Action::Write => i64::from(request.len),
            Action::Fsync => 0,
        };
        self.queued.push(Completion { slot, result });
    }

    #[inline(always)]
    #[expect(
        clippy::extend_with_drain,
        reason = "append would call memmove, which costs more than all the rest for one completion"
    )]
    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        done.extend(self.queued.drain(..));
        Ok(())
    }

    #[inline(always)]
    fn transfer(&mut self, _slot: &mut Slot, request: Request) -> Option<i64> {
        Some(i64::from(request.len))
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}
