//! One thread's hot loop, monomorphised over the backend and over what is recorded of a request: no allocation, no
//! lock, no formatting, and no system call but the I/O.
//!
//! Rate at which an untimed trial looks at the clock.

pub(crate) mod latency_log;
mod loop_steps;
pub(crate) mod open_loop;
pub(crate) mod outcome;
pub(crate) mod request_log;
mod requests;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering;

use crate::buffer::{Buffers, Slot, stamp};
use crate::request::{Action, Backend, Completion, Request};
use iolab_host::clock::Clock;
use iolab_workload::outcome::Ended;
use loop_steps::Issued;
use request_log::Log;

pub(crate) use loop_steps::{Common, Following};
pub(crate) use outcome::WorkerOutcome;
pub(crate) use request_log::{Closed, NoLog, NotedRequests, Timing};
pub(crate) use requests::{Plain, Requests, Varied};

/// A worker that is ready to run.
pub(crate) trait Run {
    /// The parts to tear down after the run.
    type Remains;

    /// Carries the trial out. The parts to tear down are handed back, so that tearing down can wait.
    fn run(self) -> (WorkerOutcome, Self::Remains);
}

/// Everything a worker needs, prepared before the clock starts.
pub(crate) struct Worker<'a, B, T, R> {
    pub(crate) backend: B,
    pub(crate) timing: T,
    pub(crate) requests: R,
    pub(crate) common: Common<'a>,
}

impl<B: Backend, const TIMED: bool, L: Log, R: Requests> Run
    for Worker<'_, B, Closed<TIMED, L>, R>
{
    type Remains = (B, Buffers);

    fn run(mut self) -> (WorkerOutcome, (B, Buffers)) {
        let (start, deadline) = self.common.begin();
        self.timing.begin(start);
        let mut wake = self.common.outcome.series.begin(start).min(deadline);
        let mut now = start;
        let mut sampling = ClockSampling::new(self.common.clock);
        let mut done = std::mem::take(&mut self.common.done);
        loop {
            if !R::VARIED {
                self.plain_turns((&mut now, &mut wake), deadline, &mut sampling);
            }
            if !self.common.stopping {
                self.issue(now);
            }
            let outstanding = self.common.outstanding();
            if outstanding == 0 {
                if R::VARIED && self.rest(&mut now, &mut wake, deadline) {
                    continue;
                }
                break;
            }
            let wait = self.common.wait.min(outstanding as u32);
            if let Err(failure) = self.backend.complete(wait, &mut done) {
                let common = &mut self.common;
                common.mechanism_failed(&mut self.backend, failure, &mut done);
                break;
            }
            if TIMED || R::VARIED {
                now = self.common.clock.now();
            } else if sampling.is_due() {
                now = self.common.clock.now();
                sampling.taken(now);
            }
            if now >= wake {
                wake = self.common.wake_up(now, deadline);
            }
            for completion in done.drain(..) {
                self.finish(completion, now);
            }
            if self.common.stop.load(Ordering::Relaxed) {
                self.common.end_with(Ended::Interrupted);
            }
        }
        self.wind_up(done)
    }
}

impl<B: Backend, T: Timing, R: Requests> Worker<'_, B, T, R> {
    /// Takes the time, makes written data durable if the trial asks for it, and returns the outcome.
    fn wind_up(mut self, done: Vec<Completion>) -> (WorkerOutcome, (B, Buffers)) {
        self.common.wind_up(&mut self.backend, done);
        self.common.outcome.account.request_sizes = self.requests.sizes();
        let seen = self.common.outcome.cpus.as_ref().map(|seen| seen.cpus());
        self.common.outcome.account.cpus_used = seen.unwrap_or_default();
        self.common.outcome.noted = self.timing.log().take();
        self.common.outcome.account.latency_over_time = self.timing.log().over_time();
        (self.common.outcome, (self.backend, self.common.buffers))
    }

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

    /// Requests of which each is over before the next one begins, without the bookkeeping that only outstanding ones
    /// need: next to a small read it would be seen. If a request is not over at once, or not in full, the ordinary
    /// turns take it up.
    #[inline(never)]
    fn plain_turns(
        &mut self,
        (now, wake): (&mut u64, &mut u64),
        deadline: u64,
        sampling: &mut ClockSampling,
    ) {
        if self.common.issued.len() > 1 || self.common.syncs {
            return;
        }
        let Some(mut slot) = self.common.buffers.take() else {
            return;
        };
        while self.common.left > 0 && !self.common.stopping {
            self.common.left -= 1;
            let request = self.next_request(&mut slot);
            let stamped = request.action == Action::Write && self.common.stamps;
            let started = match T::TIMED && stamped {
                true => self.common.clock.now(),
                false => *now,
            };
            let Some(result) = self.backend.transfer(&mut slot, request) else {
                self.common.issued[slot.index() as usize] = Issued { request, started };
                return self.backend.queue(slot, request);
            };
            if T::TIMED || sampling.is_due() {
                *now = self.common.clock.now();
                if !T::TIMED {
                    sampling.taken(*now);
                }
                if *now >= *wake {
                    *wake = self.common.wake_up(*now, deadline);
                }
            }
            if result != i64::from(request.len) {
                self.common.issued[slot.index() as usize] = Issued { request, started };
                return self.finish(Completion { slot, result }, *now);
            }
            self.count(
                slot.index(),
                Issued { request, started },
                request.len.into(),
                *now,
            );
            if self.common.stop.load(Ordering::Relaxed) {
                self.common.end_with(Ended::Interrupted);
            }
        }
        self.common.buffers.put(slot);
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
    /// Pauses, if that is what keeps a worker without outstanding requests from issuing one; whether there is more to
    /// issue after that.
    fn rest(&mut self, now: &mut u64, wake: &mut u64, deadline: u64) -> bool {
        if self.common.stopping || self.common.left == 0 {
            return false;
        }
        let until = self.requests.rest(*now);
        self.common.rest_until(until, now, wake, deadline)
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
