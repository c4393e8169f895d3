//! The one interface of all backends, shaped for asynchronous I/O; a synchronous backend is one
//! whose depth is 1.

pub(crate) mod io_uring;
pub(crate) mod libaio;
pub(crate) mod mmap;
pub(crate) mod null;
pub(crate) mod synchronous;

use std::ptr::NonNull;
use std::time::Duration;

use crate::outcome::Effective;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Fsync,
}

/// One request. The memory stays valid and unshared until its completion is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) offset: u64,
    pub(crate) memory: NonNull<u8>,
    /// Bytes; at most [`crate::spec::BS_MAX`], so that every system call's length type holds it.
    pub(crate) len: u32,
}

/// One completion: bytes transferred, or a negated error number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) slot: u32,
    pub(crate) result: i64,
}

/// Issues requests. Each of its slots holds at most one request at a time.
pub(crate) trait Backend {
    /// Takes a request; it may be issued now or with the next [`Backend::complete`].
    fn queue(&mut self, slot: u32, request: Request);

    /// Issues what is queued, waits until at least `wait` requests have completed (or a signal came), and
    /// appends all that have. `wait` is at most the number of outstanding requests, and above zero.
    ///
    /// # Errors
    /// The system call and the error number, when the mechanism itself failed; requests in flight are lost.
    fn complete(&mut self, wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure>;

    /// Carries a request out here and now, and gives what a completion would bear; `None` where requests have to be
    /// queued. Only called while none is outstanding.
    #[inline(always)]
    fn transfer(&mut self, _request: Request) -> Option<i64> {
        None
    }

    /// Issues what is queued and waits until at least one request has completed, but no longer than `timeout` (zero:
    /// only looks); appends all that have completed. At least one is outstanding. What completes its requests within
    /// the call that issues them needs no timeout.
    ///
    /// # Errors
    /// As [`Backend::complete`].
    fn complete_within(
        &mut self,
        _timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), SystemFailure> {
        self.complete(1, done)
    }

    /// Name of the system call behind an action, for messages.
    fn syscall(&self, action: Action) -> &'static str;

    /// Settings in force.
    fn effective(&self) -> Effective {
        Effective::default()
    }
}

/// A system call that failed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemFailure {
    pub(crate) syscall: &'static str,
    pub(crate) errno: i32,
}
