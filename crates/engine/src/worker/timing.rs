//! Recording of single requests.

use super::request_log::{Log, NoLog};
use crate::request::Request;

/// Recording of single requests: a type, so that each kind of loop is compiled on its own and pays only for its own
/// records.
pub(crate) trait Timing {
    /// Whether requests are stamped and their service time is recorded.
    const TIMED: bool;

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
