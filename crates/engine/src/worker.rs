//! One thread's hot loop, monomorphised over the backend and over what is recorded of a request: no allocation, no
//! lock, no formatting, and no system call but the I/O.
//!
//! Rate at which an untimed trial looks at the clock.

mod loop_steps;
pub(crate) mod open_loop;
pub(crate) mod outcome;
pub(crate) mod request_log;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use crate::buffer::{Buffers, Slot, stamp};
use crate::request::{Action, Backend, Completion, Queue, Request};
use iolab_host::clock::Clock;
use iolab_workload::outcome::Ended;
use loop_steps::Issued;

pub(crate) use loop_steps::Common;
pub(crate) use outcome::WorkerOutcome;
pub(crate) use request_log::{Closed, Log, NoLog, NotedRequests, Timing};
pub(crate) use requests::{Plain, Requests, Varied};

/// Everything a worker needs, prepared before the clock starts.
pub(crate) struct Worker<'a, B, T, R> {
    pub(crate) backend: B,
    pub(crate) timing: T,
    pub(crate) requests: R,
    pub(crate) common: Common<'a>,
}

/// Event that a worker waits for before its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: the last request is over.
    Over,
    /// At least this many completions.
    Completions(u32),
    /// A stamp. No request is outstanding.
    Until(u64),
    /// A completion, but no longer than until this stamp.
    CompletionUntil(u64),
}

/// The turns of a worker. A turn never waits: its caller waits between two of them, for a clock and a target or in virtual time.
pub(crate) trait Turns {
    /// The trial begins at a stamp.
    fn begin(&mut self, start: u64);

    /// Takes the completed requests, and issues the ones that may be issued at the stamp `now`.
    fn turn(&mut self, now: u64, done: &mut Vec<Completion>) -> Wait;

    /// Hands over what the turns have recorded; `now` is the stamp of the last one.
    fn close(&mut self, _now: u64) {}
}

impl<'a, B: Backend, T: Timing, R: Requests> Worker<'a, B, T, R>
where
    Self: Turns,
{
    /// Carries the trial out. The parts to tear down are handed back, so that tearing down can wait.
    pub(crate) fn run(mut self) -> (WorkerOutcome, (B, Buffers)) {
        let clock = self.common.clock;
        let mut now = clock.now();
        self.begin(now);
        let mut sampling = ClockSampling::new(clock);
        let mut done = std::mem::take(&mut self.common.done);
        loop {
            if T::CLOSED && !R::VARIED {
                now = self.plain_turns(now, &mut sampling);
            }
            let waited = match self.turn(now, &mut done) {
                Wait::Over => break,
                Wait::Completions(count) => self.backend.complete(count, &mut done),
                Wait::Until(stamp) => {
                    requests::sleep_until(clock, stamp);
                    Ok(())
                }
                Wait::CompletionUntil(stamp) => {
                    let timeout = requests::time_until(clock, stamp);
                    self.backend.complete_within(timeout, &mut done)
                }
            };
            if let Err(failure) = waited {
                let common = &mut self.common;
                common.mechanism_failed(&mut self.backend, failure, &mut done);
                break;
            }
            if T::TIMED || R::VARIED {
                now = clock.now();
            } else if sampling.is_due() {
                now = clock.now();
                sampling.taken(now);
            }
        }
        self.close(now);
        self.common.end_at(clock.now());
        self.common.sync_at_end(&mut self.backend, done);
        self.into_outcome()
    }
}

impl<B: Queue, const TIMED: bool, L: Log, R: Requests> Turns
    for Worker<'_, B, Closed<TIMED, L>, R>
{
    fn begin(&mut self, start: u64) {
        self.common.begin(start);
        self.timing.begin(start);
        self.common.wake = self.common.wake.min(self.common.deadline);
    }

    #[inline(always)]
    fn turn(&mut self, now: u64, done: &mut Vec<Completion>) -> Wait {
        if now >= self.common.wake {
            self.common.wake_up(now);
        }
        for completion in done.drain(..) {
            self.finish(completion, now);
        }
        if self.common.stop.load(Ordering::Relaxed) {
            self.common.end_with(Ended::Interrupted);
        }
        loop {
            if R::VARIED
                && let Some(until) = self.common.rests_until(now)
            {
                return Wait::Until(until);
            }
            if !self.common.stopping {
                self.issue(now);
            }
            let outstanding = self.common.outstanding();
            if outstanding > 0 {
                return Wait::Completions(self.common.wait.min(outstanding as u32));
            }
            if !R::VARIED || self.common.stopping || self.common.left == 0 {
                return Wait::Over;
            }
            // Only a pause keeps it from issuing.
            self.common.resting = Some((now, self.requests.rest(now)));
        }
    }
}

impl<B, T: Timing, R: Requests> Worker<'_, B, T, R> {
    /// The outcome of a worker that is over, and the parts to tear down.
    pub(crate) fn into_outcome(mut self) -> (WorkerOutcome, (B, Buffers)) {
        let outcome = &mut self.common.outcome;
        outcome.account.request_sizes = self.requests.sizes();
        let seen = outcome.cpus.as_ref().map(|seen| seen.cpus());
        outcome.account.cpus_used = seen.unwrap_or_default();
        outcome.noted = self.timing.log().take();
        outcome.account.latency_over_time = self.timing.log().over_time();
        (self.common.outcome, (self.backend, self.common.buffers))
    }
}

impl<B: Queue, T: Timing, R: Requests> Worker<'_, B, T, R> {
    /// Fills the free slots with new requests.
    ///
    /// The stamp of the completions before is also the start of the requests that follow them at once: a second
    /// stamp would cost more than the few nanoseconds between the two (they are part of the stored floor). Only
    /// if data had to be stamped first does a request get a start of its own.
    #[inline(always)]
    fn issue(&mut self, now: u64) {
        let mut stamped = false;
        while self.common.left > 0
            && (!R::VARIED || self.requests.may_go_on())
            && let Some(slot) = self.common.buffers.take()
        {
            stamped |= self.issue_one(slot, now);
        }
        self.start_again(stamped);
    }

    /// Queues the next request with this slot; whether its data was stamped. There is a request left.
    #[inline(always)]
    fn issue_one(&mut self, mut slot: Slot, now: u64) -> bool {
        self.common.left -= 1;
        let request = self.next_request(&mut slot);
        self.common.issued[slot.index() as usize] = Issued {
            request,
            started: now,
        };
        if T::TIMED && self.common.stamps {
            self.common.fresh.push(slot.index());
        }
        self.backend.queue(slot, request);
        request.action == Action::Write && self.common.stamps
    }

    /// Ends a round of issuing: if data was stamped, its requests get a start of their own.
    #[inline(always)]
    fn start_again(&mut self, stamped: bool) {
        if T::TIMED && stamped {
            let now = self.common.clock.now();
            for slot in &self.common.fresh {
                self.common.issued[*slot as usize].started = now;
            }
        }
        self.common.fresh.clear();
    }

    /// The next request, to be issued from this slot; a write has its data.
    #[inline(always)]
    fn next_request(&mut self, slot: &mut Slot) -> Request {
        let request = self.requests.next();
        if R::VARIED && self.requests.are_spent() {
            self.common.left = 0;
        }
        if request.action == Action::Write && self.common.stamps {
            self.stamp(slot, request);
        }
        request
    }

    /// Stamps the data of a write that is issued from this slot.
    #[inline(always)]
    fn stamp(&mut self, slot: &mut Slot, request: Request) {
        if let Some(signer) = &mut self.common.signer {
            signer.sign(slot, request.offset, self.common.buffers.home());
            return;
        }
        self.common.generation = self.common.generation.wrapping_add(1);
        let generation = self.common.generation;
        stamp(slot.part(0, request.len), request.offset, generation);
    }

    /// Counts a whole request, of which `moved` bytes were transferred last.
    #[inline(always)]
    fn count(&mut self, slot: u32, issued: Issued, moved: u64, now: u64) {
        let Issued { request, started } = issued;
        let tally = self.common.tally::<R>(request.action);
        tally.requests += 1;
        tally.bytes += moved;
        if T::TIMED {
            let latency_ns = self.common.clock.ns_between(started, now);
            let tally = self.common.tally::<R>(request.action);
            tally.latency.saturating_record(latency_ns);
            let synced = match T::Log::NOTES {
                true => self.common.synced_from(slot, request),
                false => None,
            };
            self.timing.completed(slot, request, started, now, synced);
        }
    }

    /// Takes one completion: records it when the request is whole.
    #[inline(always)]
    fn finish(&mut self, completion: Completion, now: u64) {
        let Completion { mut slot, result } = completion;
        let Issued { request, started } = self.common.issued[slot.index() as usize];
        let syncs = self.common.syncs && request.action != Action::Read;
        if result != i64::from(request.len) || syncs {
            let common = &mut self.common;
            match common.unusual(&mut self.backend, slot, result, (now, T::TIMED)) {
                Some(whole) => slot = whole,
                None => return,
            }
        }
        // Counts the transferred bytes, the kernel's result, also if it differs from the request.
        self.count(
            slot.index(),
            Issued { request, started },
            result as u64,
            now,
        );
        self.common.buffers.put(slot);
    }
}

impl<B: Backend, T: Timing, R: Requests> Worker<'_, B, T, R> {
    /// Requests of which each is over before the next one begins, without the bookkeeping that only outstanding ones
    /// need: next to a small read it would be seen. If a request is not over at once, or not in full, the ordinary
    /// turns take it up.
    #[inline(never)]
    fn plain_turns(&mut self, mut now: u64, sampling: &mut ClockSampling) -> u64 {
        if self.common.issued.len() > 1 || self.common.syncs {
            return now;
        }
        let Some(mut slot) = self.common.buffers.take() else {
            return now;
        };
        while self.common.left > 0 && !self.common.stopping {
            self.common.left -= 1;
            let request = self.next_request(&mut slot);
            let stamped = request.action == Action::Write && self.common.stamps;
            let started = match T::TIMED && stamped {
                true => self.common.clock.now(),
                false => now,
            };
            let Some(result) = self.backend.transfer(&mut slot, request) else {
                self.common.issued[slot.index() as usize] = Issued { request, started };
                self.backend.queue(slot, request);
                return now;
            };
            if T::TIMED || sampling.is_due() {
                now = self.common.clock.now();
                if !T::TIMED {
                    sampling.taken(now);
                }
                if now >= self.common.wake {
                    self.common.wake_up(now);
                }
            }
            if result != i64::from(request.len) {
                self.common.issued[slot.index() as usize] = Issued { request, started };
                self.finish(Completion { slot, result }, now);
                return now;
            }
            self.count(
                slot.index(),
                Issued { request, started },
                request.len.into(),
                now,
            );
            if self.common.stop.load(Ordering::Relaxed) {
                self.common.end_with(Ended::Interrupted);
            }
        }
        self.common.buffers.put(slot);
        now
    }
}

/// Decides when a worker with untimed requests looks at the clock, for its time bound and for its current interval.
/// Requests that finish faster than the clock can be read are grouped in growing groups, so that the clock takes a
/// negligible share of their time. After a slow request the worker looks each time.
#[derive(Debug)]
pub(crate) struct ClockSampling {
    /// Turns until the next look.
    left: u32,
    every: u32,
    last: u64,
    /// Looks closer together than this come too often, in ticks.
    gap: u64,
}

impl ClockSampling {
    /// A stamp is 10 to 30 ns: once in 10 us it costs at most 0.3 %.
    const GAP_NS: u64 = 10_000;
    /// Limits the delay that a sudden slowness of the target can add to a trial.
    const TURNS_MAX: u32 = 64;

    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            left: 1,
            every: 1,
            last: 0,
            gap: clock.ticks(Self::GAP_NS),
        }
    }

    /// Whether to look after this turn.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Decides from the stamp just taken when to look again.
    pub(crate) fn taken(&mut self, now: u64) {
        self.every = if now.saturating_sub(self.last) < self.gap {
            (self.every * 2).min(Self::TURNS_MAX)
        } else {
            (self.every / 2).max(1)
        };
        self.last = now;
        self.left = self.every;
    }
}

#[cfg(test)]
mod clock_sampling_tests {
    use super::*;

    /// Turns until the next look.
    fn turns(sampling: &mut ClockSampling) -> u32 {
        (1..)
            .find(|_| sampling.is_due())
            .expect("a look is due some time")
    }

    #[test]
    fn samples_fast_requests_in_groups_slow_ones_singly() {
        let clock = Clock::calibrate();
        let mut sampling = ClockSampling::new(&clock);
        let gap = clock.ticks(ClockSampling::GAP_NS);
        let mut now = 10 * gap;
        assert_eq!(turns(&mut sampling), 1, "the first turn shows the pace");
        sampling.taken(now);
        for _ in 0..10 {
            turns(&mut sampling);
            now += gap / 2;
            sampling.taken(now);
        }
        assert_eq!(turns(&mut sampling), ClockSampling::TURNS_MAX);
        for _ in 0..10 {
            now += 2 * gap;
            sampling.taken(now);
        }
        assert_eq!(turns(&mut sampling), 1);
    }
}
