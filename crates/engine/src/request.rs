//! The one interface of all backends, shaped for asynchronous I/O; a synchronous backend is one
//! whose depth is 1.
//!
//! A request's memory comes as a [`Slot`], which the backend holds until the request is complete; see
//! [`crate::buffer`] for what that guarantees.

use std::time::Duration;

use crate::buffer::Slot;
use iolab_workload::operation::Operation;
use iolab_workload::outcome::Effective;
use iolab_workload::trial::SyncCall;

/// Kind of a request. One number: the hot loop compares it several times a request, and a payload would make each of these
/// comparisons two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Trim,
    Fsync,
    Fdatasync,
}

impl Action {
    /// Whether it makes earlier writes durable.
    #[inline(always)]
    pub(crate) fn is_sync(self) -> bool {
        matches!(self, Action::Fsync | Action::Fdatasync)
    }

    /// The operation that is done when this is: a sync is the end of the write that it follows.
    #[inline(always)]
    pub(crate) fn completes(self) -> Operation {
        match self {
            Action::Read => Operation::Read,
            Action::Write | Action::Fsync | Action::Fdatasync => Operation::Write,
            Action::Trim => Operation::Trim,
        }
    }
}

impl From<SyncCall> for Action {
    fn from(call: SyncCall) -> Self {
        match call {
            SyncCall::Fsync => Action::Fsync,
            SyncCall::Fdatasync => Action::Fdatasync,
        }
    }
}

/// One request, without its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) action: Action,
    pub(crate) offset: u64,
    /// Start of the data in its buffer, bytes.
    pub(crate) at: u32,
    /// Bytes; at most [`iolab_workload::trial::BS_MAX`], so that every system call's length type holds it.
    pub(crate) len: u32,
}

/// One completion: bytes transferred, or a negated error number; the request's memory comes back with it.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) slot: Slot,
    pub(crate) result: i64,
}

/// The slots of the requests that an asynchronous backend has in flight, by their numbers.
pub(crate) struct InFlight(Vec<Option<Slot>>);

impl InFlight {
    /// Room for `depth` slots.
    pub(crate) fn new(depth: u32) -> Self {
        Self((0..depth).map(|_| None).collect())
    }

    /// Holds a slot until its request is complete.
    ///
    /// # Panics
    /// When another slot of its number is held.
    #[inline(always)]
    pub(crate) fn hold(&mut self, slot: Slot) {
        let place = &mut self.0[slot.index() as usize];
        assert!(place.is_none(), "a slot has one request at a time");
        *place = Some(slot);
    }

    /// The slot with this number, whose request is complete.
    ///
    /// # Panics
    /// When it is not held.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, number: u64) -> Slot {
        let slot = self.0[number as usize].take();
        slot.expect("a request completes once")
    }

    /// Whether no slot is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// Takes requests.
pub(crate) trait Queue {
    /// Takes a request with its memory; it may be issued now or when completions are waited for.
    fn queue(&mut self, slot: Slot, request: Request);

    /// Name of the system call that carries an action out, for messages.
    fn syscall(&self, action: Action) -> &'static str;
}

/// Issues requests, and waits for their completions.
pub(crate) trait Backend: Queue {
    /// Whether plain requests take the loop of varied ones too. Each loop is compiled for each backend, which takes its time;
    /// this is for backends whose requests go a long way.
    const VARIED_ONLY: bool = false;

    /// Issues queued requests, waits until at least `wait` requests have completed (or a signal came), and appends all
    /// completed ones. `wait` is at most the number of outstanding requests, and above zero.
    ///
    /// # Errors
    /// The system call and the error number, when the mechanism itself failed. Requests may still be in flight.
    fn complete(&mut self, wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure>;

    /// Carries a request out immediately and returns the result of its completion; `None` if requests have to be queued.
    /// Only called without outstanding requests.
    #[inline(always)]
    fn transfer(&mut self, _slot: &mut Slot, _request: Request) -> Option<i64> {
        None
    }

    /// After the mechanism failed: waits at most `timeout` for requests in flight, and appends requests that have completed
    /// or were never issued. The kernel may still use slots that it keeps. A backend that completes requests within the
    /// issuing call has none in flight.
    fn settle(&mut self, _timeout: Duration, _done: &mut Vec<Completion>) {}

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

    /// An offset in each file that a sync at the end has to reach.
    fn offset_in_each_file(&self) -> Vec<u64> {
        vec![0]
    }

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
