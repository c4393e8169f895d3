//! One thread's hot loop, monomorphised over the backend and over what is recorded of a request: no allocation, no
//! lock, no formatting, and no system call but the I/O.

pub(crate) mod open;
mod timing;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::{Action, Backend, Completion, Request, SystemFailure};
use crate::buffer::{Buffers, stamp};
use crate::clock::Clock;
use crate::counters::Hardware;
use crate::histogram::{new_latency_histogram, unused_latency_histogram};
use crate::looks::Looks;
use crate::outcome::{Effective, Ended, FailedRequest, Pace, Tally};
use crate::pattern::{Mix, Offsets, derive, share};
use crate::series::{Done, Recorder};
use crate::spec::{Content, SyncPolicy, TrialSpec};
use crate::verify::{Signed, Signer};

pub(crate) use timing::{Closed, Timing};

/// What one worker did.
#[derive(Debug)]
pub(crate) struct WorkerOutcome {
    pub(crate) reads: Tally,
    pub(crate) writes: Tally,
    pub(crate) syncs: u64,
    pub(crate) errors: u64,
    pub(crate) failure: Option<FailedRequest>,
    pub(crate) ended: Ended,
    /// Clock stamps: first submission, after the last completion and the final fsync.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) end_sync_ns: u64,
    pub(crate) effective: Effective,
    /// What the processor counted in this worker.
    pub(crate) hardware: Hardware,
    /// How this worker kept up with its share of a rate.
    pub(crate) pace: Option<Pace>,
    /// What it did over time.
    pub(crate) series: Recorder,
    /// The writes that can be verified.
    pub(crate) signed: Option<Signed>,
}

/// A worker that is ready to run.
pub(crate) trait Run {
    /// What has to be torn down.
    type Remains;

    /// Carries the trial out. What has to be torn down is handed back, so that tearing down can wait.
    fn run(self) -> (WorkerOutcome, Self::Remains);
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// What is still to be transferred.
    request: Request,
    started: u64,
}

/// Everything a worker needs, prepared before the clock starts.
pub(crate) struct Worker<'a, B, T> {
    // Dropped in this order: the backend refers to the buffers.
    backend: B,
    buffers: Buffers,
    timing: T,
    clock: &'a Clock,
    stop: &'a AtomicBool,
    offsets: Offsets,
    mix: Mix,
    slots: Vec<Slot>,
    /// The first `free_count` entries are free slots.
    free: Vec<u32>,
    free_count: usize,
    done: Vec<Completion>,
    /// Requests still to be issued.
    left: u64,
    time_ticks: Option<u64>,
    wait: u32,
    bs: u32,
    stamps: bool,
    generation: u64,
    /// Makes stamps that can be verified, in the place of those that only differ.
    signer: Option<Box<Signer>>,
    sync: SyncPolicy,
    /// Set when no further request shall be issued.
    stopping: bool,
    outcome: WorkerOutcome,
}

/// Requests that fall to one worker under the trial's bounds; time may end it earlier.
fn quota(spec: &TrialSpec, worker: u32) -> u64 {
    spec.requests_bound()
        .map_or(u64::MAX, |total| share(total, worker, spec.threads).1)
}

impl<B: Backend, const TIMED: bool> Run for Worker<'_, B, Closed<TIMED>> {
    type Remains = (B, Buffers);

    fn run(mut self) -> (WorkerOutcome, (B, Buffers)) {
        let start = self.clock.now();
        let deadline = self
            .time_ticks
            .map_or(u64::MAX, |ticks| start.saturating_add(ticks));
        self.outcome.start = start;
        let mut wake = self.outcome.series.begin(start).min(deadline);
        let mut now = start;
        let mut looks = Looks::new(self.clock);
        loop {
            if !TIMED {
                wake = self.plain_turns(wake, deadline, &mut looks);
            }
            if !self.stopping {
                self.issue(now);
            }
            let outstanding = self.slots.len() - self.free_count;
            if outstanding == 0 {
                break;
            }
            if let Err(failure) = self
                .backend
                .complete(self.wait.min(outstanding as u32), &mut self.done)
            {
                self.mechanism_failed(failure);
                break;
            }
            if TIMED {
                now = self.clock.now();
            } else if looks.is_due() {
                now = self.clock.now();
                looks.taken(now);
            }
            if now >= wake {
                wake = self.wake_up(now, deadline);
            }
            for index in 0..self.done.len() {
                self.finish(self.done[index], now);
            }
            self.done.clear();
            if self.stop.load(Ordering::Relaxed) {
                self.end_with(Ended::Interrupted);
            }
        }
        self.wind_up();
        (self.outcome, (self.backend, self.buffers))
    }
}

impl<'a, B: Backend, T: Timing> Worker<'a, B, T> {
    pub(crate) fn new(
        spec: &TrialSpec,
        worker: u32,
        timing: T,
        backend: B,
        buffers: Buffers,
        clock: &'a Clock,
        stop: &'a AtomicBool,
    ) -> Self {
        let idle = |slot| Slot {
            request: Request {
                action: Action::Read,
                offset: 0,
                memory: buffers.slot(slot),
                len: 0,
            },
            started: 0,
        };
        let tally = |used| Tally {
            requests: 0,
            bytes: 0,
            short_transfers: 0,
            latency: if used && T::TIMED {
                new_latency_histogram()
            } else {
                unused_latency_histogram()
            },
            waits: None,
        };
        Self {
            slots: (0..spec.depth).map(idle).collect(),
            free: (0..spec.depth).collect(),
            free_count: spec.depth as usize,
            done: Vec::with_capacity(spec.depth as usize),
            left: quota(spec, worker),
            time_ticks: spec.limit.time.map(|t| clock.ticks(t.as_nanos() as u64)),
            wait: spec.batch.wait_for(spec.depth),
            bs: spec.bs as u32,
            stamps: spec.content == Content::Unique,
            generation: derive(spec.seed, u64::from(worker)),
            signer: None,
            sync: spec.sync,
            stopping: false,
            offsets: Offsets::new(spec, worker),
            mix: Mix::new(spec, worker),
            outcome: WorkerOutcome {
                reads: tally(spec.reads()),
                writes: tally(spec.writes()),
                syncs: 0,
                errors: 0,
                failure: None,
                ended: Ended::Done,
                start: 0,
                end: 0,
                end_sync_ns: 0,
                effective: backend.effective(),
                hardware: Hardware::default(),
                pace: None,
                series: Recorder::new(clock),
                signed: None,
            },
            backend,
            buffers,
            timing,
            clock,
            stop,
        }
    }

    /// Has every write signed, where there is a signer.
    pub(crate) fn signed_by(mut self, signer: Option<Signer>) -> Self {
        self.signer = signer.map(Box::new);
        self
    }

    /// Fills the free slots with new requests.
    ///
    /// The stamp of the completions before is also the start of the requests that follow them at once: a second
    /// stamp would cost more than the few nanoseconds between the two (they are part of the stored floor). Only
    /// where data had to be stamped first does a request get a start of its own.
    #[inline(always)]
    fn issue(&mut self, now: u64) {
        let free_before = self.free_count;
        let mut stamped = false;
        while self.free_count > 0 && self.left > 0 {
            stamped |= self.issue_one(now);
        }
        if T::TIMED && stamped {
            self.start_again(free_before);
        }
    }

    /// Puts the next request into the last free slot and queues it; whether its data was stamped. There is a free
    /// slot, and a request left.
    #[inline(always)]
    fn issue_one(&mut self, now: u64) -> bool {
        self.free_count -= 1;
        self.left -= 1;
        let slot = self.free[self.free_count];
        let request = self.next_request(slot, self.buffers.slot(slot));
        self.slots[slot as usize] = Slot {
            request,
            started: now,
        };
        self.backend.queue(slot, request);
        request.action == Action::Write && self.stamps
    }

    /// Gives the requests a start of their own that were queued since there were so many free slots.
    #[inline(always)]
    fn start_again(&mut self, free_before: usize) {
        let now = self.clock.now();
        for &slot in &self.free[self.free_count..free_before] {
            self.slots[slot as usize].started = now;
        }
    }

    /// The next request, which leaves from this slot, with its data where it writes.
    #[inline(always)]
    fn next_request(&mut self, slot: u32, memory: NonNull<u8>) -> Request {
        let request = Request {
            action: if self.mix.next_is_read() {
                Action::Read
            } else {
                Action::Write
            },
            offset: self.offsets.next_offset(),
            memory,
            len: self.bs,
        };
        if request.action == Action::Write && self.stamps {
            self.stamp(slot, memory, request.offset);
        }
        request
    }

    /// Stamps the data of a write that leaves from a free slot with this memory.
    #[inline(always)]
    fn stamp(&mut self, slot: u32, memory: NonNull<u8>, offset: u64) {
        if let Some(signer) = &mut self.signer {
            // SAFETY: the memory is a free slot's, so that its `bs` bytes are nobody else's.
            unsafe { signer.sign(memory, offset, slot, &self.free[..self.free_count]) };
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        // SAFETY: as above.
        unsafe { stamp(memory, self.bs as usize, offset, self.generation) };
    }

    /// Requests of which each is over before the next one begins, without the bookkeeping that only outstanding ones
    /// need: next to a small read it would be seen. Where a request is not over at once, or not in full, the ordinary
    /// turns take it up.
    #[inline(always)]
    fn plain_turns(&mut self, mut wake: u64, deadline: u64, looks: &mut Looks) -> u64 {
        let idle = self.free_count == self.slots.len();
        if !idle || self.slots.len() > 1 || self.sync == SyncPolicy::Each {
            return wake;
        }
        let memory = self.buffers.slot(0);
        while self.left > 0 && !self.stopping {
            self.left -= 1;
            let request = self.next_request(0, memory);
            let result = self.backend.transfer(request);
            if looks.is_due() {
                let now = self.clock.now();
                looks.taken(now);
                if now >= wake {
                    wake = self.wake_up(now, deadline);
                }
            }
            if result != Some(i64::from(request.len)) {
                self.hand_over(request, result);
                break;
            }
            let tally = self.tally(request.action);
            tally.requests += 1;
            tally.bytes += u64::from(request.len);
            if self.stop.load(Ordering::Relaxed) {
                self.end_with(Ended::Interrupted);
            }
        }
        wake
    }

    /// Gives a request of the plain turns to the ordinary ones: to be issued, or as it was completed.
    #[inline(never)]
    fn hand_over(&mut self, request: Request, result: Option<i64>) {
        self.free_count = 0;
        self.slots[0] = Slot {
            request,
            started: 0,
        };
        match result {
            Some(result) => self.finish(Completion { slot: 0, result }, 0),
            None => self.backend.queue(0, request),
        }
    }

    /// Takes one completion: records it when the request is whole.
    #[inline(always)]
    fn finish(&mut self, completion: Completion, now: u64) {
        let Slot { request, started } = self.slots[completion.slot as usize];
        let syncs_each = self.sync == SyncPolicy::Each && request.action != Action::Read;
        if (completion.result != i64::from(request.len) || syncs_each) && !self.unusual(completion)
        {
            return;
        }
        let tally = self.tally(request.action);
        tally.requests += 1;
        // What was done is counted, not what was asked: the kernel's result, also where it differs.
        tally.bytes += completion.result as u64;
        if T::TIMED {
            let latency_ns = self.clock.ns_between(started, now);
            self.tally(request.action)
                .latency
                .saturating_record(latency_ns);
            self.timing
                .completed(completion.slot, request.action, started, now);
        }
        self.release(completion.slot);
    }

    #[inline(always)]
    fn tally(&mut self, action: Action) -> &mut Tally {
        match action {
            Action::Read => &mut self.outcome.reads,
            Action::Write | Action::Fsync => &mut self.outcome.writes,
        }
    }

    #[inline(always)]
    fn release(&mut self, slot: u32) {
        self.free[self.free_count] = slot;
        self.free_count += 1;
    }

    /// What is not a whole transfer: short ones go on, a write of policy `each` is followed by its fsync,
    /// errors end the trial. Returns whether the request is complete.
    #[inline(never)]
    fn unusual(&mut self, Completion { slot, result }: Completion) -> bool {
        let mut request = self.slots[slot as usize].request;
        let again = [libc::EAGAIN, libc::EINTR].map(|errno| -i64::from(errno));
        if request.action == Action::Fsync && result == 0 {
            self.outcome.syncs += 1;
            return true;
        }
        if again.contains(&result) {
            self.backend.queue(slot, request);
            return false;
        }
        if result <= 0 {
            self.fail(FailedRequest {
                syscall: self.backend.syscall(request.action),
                offset: request.offset,
                length: u64::from(request.len),
                errno: -result as i32,
            });
            self.release(slot);
            return false;
        }
        let moved = result as u32;
        if moved < request.len {
            let tally = self.tally(request.action);
            tally.short_transfers += 1;
            tally.bytes += u64::from(moved);
            request.offset += u64::from(moved);
            request.len -= moved;
            // SAFETY: `moved` is less than what was left of the buffer.
            request.memory = unsafe { request.memory.add(moved as usize) };
        } else if request.action == Action::Write && self.sync == SyncPolicy::Each {
            self.tally(request.action).bytes += u64::from(moved);
            request.action = Action::Fsync;
        } else {
            return true;
        }
        self.slots[slot as usize].request = request;
        self.backend.queue(slot, request);
        false
    }

    fn fail(&mut self, failure: FailedRequest) {
        self.outcome.errors += 1;
        self.outcome.failure.get_or_insert(failure);
        self.outcome.ended = Ended::Failed;
        self.stopping = true;
    }

    fn mechanism_failed(&mut self, failure: SystemFailure) {
        self.fail(FailedRequest {
            syscall: failure.syscall,
            offset: 0,
            length: 0,
            errno: failure.errno,
        });
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
        if now < deadline {
            return end.min(deadline);
        }
        self.end_with(Ended::Time);
        end
    }

    /// What was done so far.
    fn done(&self) -> Done {
        Done::of(&self.outcome.reads, &self.outcome.writes)
    }

    /// Takes the time, and makes written data durable where that is part of the trial.
    fn wind_up(&mut self) {
        self.outcome.end = self.clock.now();
        let done = self.done();
        self.outcome.series.finish(self.outcome.end, done);
        self.outcome.signed = self.signer.take().map(|signer| signer.finish());
        let whole = matches!(self.outcome.ended, Ended::Done | Ended::Time);
        if self.sync == SyncPolicy::End && self.outcome.writes.requests > 0 && whole {
            self.final_sync();
        }
    }

    /// The final fsync of policy `end`; nothing is outstanding any more.
    fn final_sync(&mut self) {
        let request = Request {
            action: Action::Fsync,
            len: 0,
            ..self.slots[0].request
        };
        self.backend.queue(0, request);
        let before = self.outcome.end;
        while self.done.is_empty() {
            if let Err(failure) = self.backend.complete(1, &mut self.done) {
                return self.mechanism_failed(failure);
            }
        }
        self.outcome.end = self.clock.now();
        self.outcome.end_sync_ns = self.clock.ns_between(before, self.outcome.end);
        match self.done[0].result {
            0 => self.outcome.syncs += 1,
            errno => self.fail(FailedRequest {
                syscall: self.backend.syscall(Action::Fsync),
                offset: 0,
                length: 0,
                errno: -errno as i32,
            }),
        }
    }
}
