//! What is recorded of a request.

use crate::request::Action;

/// What is recorded of a request: a type, so that each kind of loop is compiled for itself and pays for nothing that
/// it does not record.
pub(crate) trait Timing {
    /// Whether requests are stamped and their service time is recorded.
    const TIMED: bool;

    /// Takes note of a completed request.
    #[inline(always)]
    fn completed(&mut self, _slot: u32, _action: Action, _started: u64, _now: u64) {}
}

/// The closed loop, in which a request follows as soon as one completes. `TIMED` says that each is timed.
pub(crate) struct Closed<const TIMED: bool>;

impl<const TIMED: bool> Timing for Closed<TIMED> {
    const TIMED: bool = TIMED;
}
