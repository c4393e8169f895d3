//! One thread's hot loop, monomorphised over the backend and over what is recorded of a request: no allocation, no
//! lock, no formatting, and no system call but the I/O.

pub(crate) mod flow;
pub(crate) mod open;
mod outcome;
mod requests;
pub(crate) mod rest;
mod syncs;
#[cfg(test)]
mod tests;
mod timing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::buffer::{Buffers, Slot, stamp};
use crate::clock_sampling::ClockSampling;
use crate::request::{Action, Backend, Completion, Request, SystemFailure};
use crate::verify::Signer;
use iolab_observe::clock::Clock;
use iolab_pattern::{derive, quota};
use iolab_spec::outcome::{Ended, FailedRequest, Tally};
use iolab_spec::series::Done;
use iolab_spec::trial::{Content, SyncPolicy, TrialSpec};

pub(crate) use outcome::WorkerOutcome;
pub(crate) use requests::{Plain, Requests, Varied};
pub(crate) use syncs::Following;
pub(crate) use timing::{Closed, Timing};

/// A worker that is ready to run.
pub(crate) trait Run {
    /// What has to be torn down.
    type Remains;

    /// Carries the trial out. What has to be torn down is handed back, so that tearing down can wait.
    fn run(self) -> (WorkerOutcome, Self::Remains);
}

/// Offset and generation that data which repeats is stamped with.
const REPEATED: (u64, u64) = (0, 0);

/// How long what is in flight is waited for once the mechanism has failed. Its memory is safe either way.
const SETTLE: Duration = Duration::from_secs(1);

/// A request on its way.
#[derive(Debug, Clone, Copy)]
struct Issued {
    /// What is still to be transferred.
    request: Request,
    started: u64,
}

/// As [`Backend::queue`], for requests beside the common way: compiled once for each backend, and not into each loop.
#[inline(never)]
fn queue_aside<B: Backend>(backend: &mut B, slot: Slot, request: Request) {
    backend.queue(slot, request);
}

/// Everything a worker needs, prepared before the clock starts.
pub(crate) struct Worker<'a, B, T, R> {
    backend: B,
    buffers: Buffers,
    timing: T,
    clock: &'a Clock,
    stop: &'a AtomicBool,
    requests: R,
    /// The request of each slot, by its number.
    issued: Vec<Issued>,
    /// Slots of the requests of one round of issuing, where data is stamped.
    fresh: Vec<u32>,
    done: Vec<Completion>,
    /// Requests still to be issued.
    left: u64,
    time_ticks: Option<u64>,
    wait: u32,
    stamps: bool,
    generation: u64,
    /// Makes stamps that can be verified, instead of those that only differ.
    signer: Option<Box<Signer>>,
    /// Whether syncs follow writes.
    syncs: bool,
    /// The syncs that follow writes; read only where there are some.
    following: Following,
    /// Whether one sync follows all writes.
    syncs_at_end: bool,
    /// Set when no further request shall be issued.
    stopping: bool,
    outcome: WorkerOutcome,
}

impl<B: Backend, const TIMED: bool, R: Requests> Run for Worker<'_, B, Closed<TIMED>, R> {
    type Remains = (B, Buffers);

    fn run(mut self) -> (WorkerOutcome, (B, Buffers)) {
        let (start, deadline) = self.begin();
        let mut wake = self.outcome.series.begin(start).min(deadline);
        let mut now = start;
        let mut looks = ClockSampling::new(self.clock);
        let mut done = std::mem::take(&mut self.done);
        loop {
            if !TIMED && !R::VARIED {
                wake = self.plain_turns(wake, deadline, &mut looks);
            }
            if !self.stopping {
                self.issue(now);
            }
            let outstanding = self.outstanding();
            if outstanding == 0 {
                if R::VARIED && self.rest(&mut now, &mut wake, deadline) {
                    continue;
                }
                break;
            }
            let wait = self.wait.min(outstanding as u32);
            if let Err(failure) = self.backend.complete(wait, &mut done) {
                self.mechanism_failed(failure, &mut done);
                break;
            }
            if TIMED || R::VARIED {
                now = self.clock.now();
            } else if looks.is_due() {
                now = self.clock.now();
                looks.taken(now);
            }
            if now >= wake {
                wake = self.wake_up(now, deadline);
            }
            for completion in done.drain(..) {
                self.finish(completion, now);
            }
            if self.stop.load(Ordering::Relaxed) {
                self.end_with(Ended::Interrupted);
            }
        }
        self.wind_up(&mut done);
        (self.outcome, (self.backend, self.buffers))
    }
}

impl<'a, B: Backend, T: Timing, R: Requests> Worker<'a, B, T, R> {
    /// Takes the first stamp, and tells when time is over.
    #[inline(always)]
    fn begin(&mut self) -> (u64, u64) {
        let start = self.clock.now();
        let deadline = self
            .time_ticks
            .map_or(u64::MAX, |ticks| start.saturating_add(ticks));
        self.outcome.start = start;
        (start, deadline)
    }

    pub(crate) fn new(
        spec: &TrialSpec,
        worker: u32,
        (timing, requests): (T, R),
        backend: B,
        buffers: Buffers,
        clock: &'a Clock,
        stop: &'a AtomicBool,
    ) -> Self {
        let none = Issued {
            request: Request {
                action: Action::Read,
                offset: 0,
                at: 0,
                len: 0,
            },
            started: 0,
        };
        Self {
            issued: vec![none; spec.depth as usize],
            fresh: Vec::with_capacity(spec.depth as usize),
            done: Vec::with_capacity(spec.depth as usize),
            left: quota(spec, worker),
            time_ticks: spec.limit.time.map(|t| clock.ticks(t.as_nanos() as u64)),
            wait: spec.batch.wait_for(spec.depth),
            stamps: spec.writes() && spec.content == Content::Unique,
            generation: derive(spec.seed, u64::from(spec.number_of(worker))),
            signer: None,
            syncs: spec.sync.follows_writes(),
            following: Following::new(spec),
            syncs_at_end: spec.sync == SyncPolicy::End,
            stopping: false,
            requests,
            outcome: WorkerOutcome {
                cpus: Some(Box::default()),
                ..WorkerOutcome::begun(spec, T::TIMED, clock, backend.effective())
            },
            backend,
            buffers,
            timing,
            clock,
            stop,
        }
    }

    /// It starts so many ticks later than the trial.
    pub(crate) fn led_by(mut self, ticks: u64) -> Self {
        self.outcome.series.led_by(ticks);
        self
    }

    /// Has every write signed, where there is a signer.
    pub(crate) fn signed_by(mut self, signer: Option<Signer>) -> Self {
        self.signer = signer.map(Box::new);
        self
    }

    /// Requests on their way.
    #[inline(always)]
    fn outstanding(&self) -> usize {
        self.issued.len() - self.buffers.home().len()
    }

    /// Fills the free slots with new requests.
    ///
    /// The stamp of the completions before is also the start of the requests that follow them at once: a second
    /// stamp would cost more than the few nanoseconds between the two (they are part of the stored floor). Only
    /// where data had to be stamped first does a request get a start of its own.
    #[inline(always)]
    fn issue(&mut self, now: u64) {
        let mut stamped = false;
        while self.left > 0
            && (!R::VARIED || self.requests.may_go_on(now))
            && let Some(slot) = self.buffers.take()
        {
            stamped |= self.issue_one(slot, now);
        }
        self.start_again(stamped);
    }

    /// Queues the next request with this slot; whether its data was stamped. There is a request left.
    #[inline(always)]
    fn issue_one(&mut self, mut slot: Slot, now: u64) -> bool {
        self.left -= 1;
        let request = self.next_request(&mut slot);
        self.issued[slot.index() as usize] = Issued {
            request,
            started: now,
        };
        if T::TIMED && self.stamps {
            self.fresh.push(slot.index());
        }
        self.backend.queue(slot, request);
        request.action == Action::Write && self.stamps
    }

    /// Ends a round of issuing: where data was stamped, its requests get a start of their own.
    #[inline(always)]
    fn start_again(&mut self, stamped: bool) {
        if T::TIMED && stamped {
            let now = self.clock.now();
            for slot in &self.fresh {
                self.issued[*slot as usize].started = now;
            }
        }
        self.fresh.clear();
    }

    /// The next request, which leaves from this slot, with its data where it writes.
    #[inline(always)]
    fn next_request(&mut self, slot: &mut Slot) -> Request {
        let request = self.requests.next();
        if R::VARIED && self.requests.are_spent() {
            self.left = 0;
        }
        if request.action == Action::Write && self.stamps {
            self.stamp(slot, request);
        }
        request
    }

    /// Stamps the data of a write that leaves from this slot.
    #[inline(always)]
    fn stamp(&mut self, slot: &mut Slot, request: Request) {
        if let Some(signer) = &mut self.signer {
            signer.sign(slot, request.offset, self.buffers.home());
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let (offset, generation) = match R::VARIED && self.requests.repeats() {
            true => REPEATED,
            false => (request.offset, self.generation),
        };
        stamp(slot.part(0, request.len), offset, generation);
    }

    /// Requests of which each is over before the next one begins, without the bookkeeping that only outstanding ones
    /// need: next to a small read it would be seen. Where a request is not over at once, or not in full, the ordinary
    /// turns take it up.
    #[inline(always)]
    fn plain_turns(&mut self, mut wake: u64, deadline: u64, looks: &mut ClockSampling) -> u64 {
        if self.issued.len() > 1 || self.syncs {
            return wake;
        }
        let Some(mut slot) = self.buffers.take() else {
            return wake;
        };
        while self.left > 0 && !self.stopping {
            self.left -= 1;
            let request = self.next_request(&mut slot);
            let result = self.backend.transfer(&mut slot, request);
            if looks.is_due() {
                let now = self.clock.now();
                looks.taken(now);
                if now >= wake {
                    wake = self.wake_up(now, deadline);
                }
            }
            if result != Some(i64::from(request.len)) {
                self.hand_over(slot, request, result);
                return wake;
            }
            let tally = self.tally(request.action);
            tally.requests += 1;
            tally.bytes += u64::from(request.len);
            if self.stop.load(Ordering::Relaxed) {
                self.end_with(Ended::Interrupted);
            }
        }
        self.buffers.put(slot);
        wake
    }

    /// Gives a request of the plain turns to the ordinary ones: to be issued, or as it was completed.
    #[inline(never)]
    fn hand_over(&mut self, slot: Slot, request: Request, result: Option<i64>) {
        self.issued[slot.index() as usize] = Issued {
            request,
            started: 0,
        };
        match result {
            Some(result) => self.finish(Completion { slot, result }, 0),
            None => self.backend.queue(slot, request),
        }
    }

    /// Takes one completion: records it when the request is whole.
    #[inline(always)]
    fn finish(&mut self, completion: Completion, now: u64) {
        let Completion { mut slot, result } = completion;
        let Issued { request, started } = self.issued[slot.index() as usize];
        let syncs = self.syncs && request.action != Action::Read;
        if result != i64::from(request.len) || syncs {
            match self.unusual(slot, result, now) {
                Some(whole) => slot = whole,
                None => return,
            }
        }
        let tally = self.tally(request.action);
        tally.requests += 1;
        // What was done is counted, not what was asked: the kernel's result, also where it differs.
        tally.bytes += result as u64;
        if T::TIMED {
            let latency_ns = self.clock.ns_between(started, now);
            self.tally(request.action)
                .latency
                .saturating_record(latency_ns);
            self.timing
                .completed(slot.index(), request.action, started, now);
        }
        self.buffers.put(slot);
    }

    #[inline(always)]
    fn tally(&mut self, action: Action) -> &mut Tally {
        match action {
            Action::Read => &mut self.outcome.reads,
            Action::Trim if R::VARIED => &mut self.outcome.trims,
            _ => &mut self.outcome.writes,
        }
    }

    /// What is not a whole transfer: short ones go on, a write is followed by its sync where the policy says so, errors
    /// end the trial. Gives the slot of a request that is complete.
    #[inline(never)]
    fn unusual(&mut self, slot: Slot, result: i64, now: u64) -> Option<Slot> {
        let mut request = self.issued[slot.index() as usize].request;
        let again = [libc::EAGAIN, libc::EINTR].map(|errno| -i64::from(errno));
        if request.action.is_sync() && result == 0 {
            self.outcome.syncs += 1;
            if T::TIMED {
                let started = self.following.started[slot.index() as usize];
                let latency_ns = self.clock.ns_between(started, now);
                self.outcome.sync_latency.saturating_record(latency_ns);
            }
            return Some(slot);
        }
        if again.contains(&result) {
            queue_aside(&mut self.backend, slot, request);
            return None;
        }
        if result <= 0 {
            self.fail(FailedRequest {
                syscall: self.backend.syscall(request.action),
                offset: request.offset,
                length: u64::from(request.len),
                errno: -result as i32,
            });
            self.buffers.put(slot);
            return None;
        }
        let moved = result as u32;
        if moved < request.len {
            let tally = self.tally(request.action);
            tally.short_transfers += 1;
            tally.bytes += u64::from(moved);
            request.offset += u64::from(moved);
            request.at += moved;
            request.len -= moved;
        } else if request.action == Action::Write && self.syncs && self.following.is_due() {
            self.tally(request.action).bytes += u64::from(moved);
            request.action = self.following.call;
            // The stamp of the write's completion: what lies between that and the call counts as part of the sync.
            self.following.started[slot.index() as usize] = now;
        } else {
            return Some(slot);
        }
        self.issued[slot.index() as usize].request = request;
        queue_aside(&mut self.backend, slot, request);
        None
    }

    fn fail(&mut self, failure: FailedRequest) {
        self.outcome.errors += 1;
        self.outcome.failure.get_or_insert(failure);
        self.outcome.ended = Ended::Failed;
        self.stopping = true;
    }

    /// The backend itself has failed. Requests may be in flight: they are waited for, so that their memory can be
    /// given back. What does not come back keeps its memory for good.
    #[cold]
    #[inline(never)]
    fn mechanism_failed(&mut self, failure: SystemFailure, done: &mut Vec<Completion>) {
        self.fail(FailedRequest {
            syscall: failure.syscall,
            offset: 0,
            length: 0,
            errno: failure.errno,
        });
        self.backend.settle(SETTLE, done);
        for completion in done.drain(..) {
            self.buffers.put(completion.slot);
        }
    }

    fn end_with(&mut self, why: Ended) {
        if !self.stopping && self.left > 0 {
            self.outcome.ended = why;
        }
        self.stopping = true;
    }

    /// Enters the interval of the series that holds `now`, and ends the trial when its time is up; gives the stamp
    /// at which there is something to do again. To be called before what completed at `now` is tallied.
    #[cold]
    #[inline(never)]
    fn wake_up(&mut self, now: u64, deadline: u64) -> u64 {
        let end = self.outcome.series.turn_to(now, self.done());
        self.see_cpu();
        if now < deadline {
            return end.min(deadline);
        }
        self.end_with(Ended::Time);
        end
    }

    /// Notes the CPU that this runs on.
    fn see_cpu(&mut self) {
        if let Some(seen) = &mut self.outcome.cpus {
            seen.look();
        }
    }

    /// What was done so far.
    fn done(&self) -> Done {
        let outcome = &self.outcome;
        Done::of(&outcome.reads, &outcome.writes, &outcome.trims)
    }
}
