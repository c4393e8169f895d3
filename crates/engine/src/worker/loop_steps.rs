//! The steps common to every loop of a worker, compiled once. They know neither what is recorded of a request nor which
//! requests there are, and take the backend as an argument.
//!
//! Syncs of a worker after a number of writes, and the end of its trial: the last time stamp, and the final sync.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Requests, Varied, WorkerOutcome, requests};
use crate::buffer::{Buffers, Slot};
use crate::request::{Action, Backend, Completion, Queue, Request, SystemFailure};
use crate::verify::signer::Signer;
use iolab_host::clock::Clock;
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::{Ended, FailedRequest, Failure, Tally};
use iolab_workload::pattern::{derive, quota};
use iolab_workload::trial::{SyncPolicy, TrialSpec};

/// Longest wait for requests in flight once the mechanism has failed. Their memory is safe either way.
const SETTLE: Duration = Duration::from_secs(1);

/// Results of the kernel after which a request is issued again.
const AGAIN: [i64; 2] = [-(libc::EAGAIN as i64), -(libc::EINTR as i64)];

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issued {
    /// The part that is still to be transferred.
    pub(super) request: Request,
    pub(super) started: u64,
}

/// Everything of a worker except backend, timing and requests.
pub(crate) struct Common<'a> {
    pub(super) buffers: Buffers,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a AtomicBool,
    /// The request of each slot, by its number.
    pub(super) issued: Vec<Issued>,
    /// Slots of the requests of one round of issuing, if data is stamped.
    pub(super) fresh: Vec<u32>,
    pub(super) done: Vec<Completion>,
    /// Requests still to be issued.
    pub(super) left: u64,
    time_ticks: Option<u64>,
    /// Stamp at which the time is up.
    pub(super) deadline: u64,
    /// The next stamp at which there is something to do, whatever completes.
    pub(super) wake: u64,
    /// Beginning and end of the pause under way, stamps.
    pub(super) resting: Option<(u64, u64)>,
    /// Time before the end of a pause at which sleeping stops, ticks.
    lead: u64,
    pub(super) wait: u32,
    pub(super) stamps: bool,
    pub(super) generation: u64,
    /// Makes verifiable stamps, instead of stamps that only differ.
    pub(crate) signer: Option<Box<Signer>>,
    /// Whether syncs follow writes.
    pub(super) syncs: bool,
    /// The syncs that follow writes; read only if there are some.
    following: Following,
    /// Whether one sync follows all writes.
    syncs_at_end: bool,
    /// Set when no further request shall be issued.
    pub(super) stopping: bool,
    pub(crate) outcome: WorkerOutcome,
}

impl<'a> Common<'a> {
    pub(crate) fn new(
        spec: &TrialSpec,
        worker: u32,
        begun: WorkerOutcome,
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
            deadline: u64::MAX,
            wake: u64::MAX,
            resting: None,
            lead: clock.ticks(requests::LEAD_NS),
            wait: spec.batch.wait_for(spec.depth),
            stamps: spec.writes() && spec.compressible < 100,
            generation: derive(spec.seed, u64::from(spec.number_of(worker))),
            signer: None,
            syncs: spec.sync.follows_writes(),
            following: Following::new(spec),
            syncs_at_end: spec.sync == SyncPolicy::End,
            stopping: false,
            outcome: WorkerOutcome {
                cpus: Some(Box::default()),
                ..begun
            },
            buffers,
            clock,
            stop,
        }
    }

    /// In virtual time: sleeps end exactly, and no data is written.
    pub(crate) fn in_virtual_time(mut self) -> Self {
        self.lead = 0;
        self.stamps = false;
        self.outcome.cpus = None;
        self
    }

    /// Begins at a stamp.
    pub(super) fn begin(&mut self, start: u64) {
        (self.outcome.start, self.outcome.end) = (start, start);
        self.deadline = self
            .time_ticks
            .map_or(u64::MAX, |ticks| start.saturating_add(ticks));
        self.wake = self.outcome.series.begin(start);
    }

    /// The request of a slot.
    pub(crate) fn request_of(&self, slot: u32) -> Request {
        self.issued[slot as usize].request
    }

    /// Requests on their way.
    #[inline(always)]
    pub(super) fn outstanding(&self) -> usize {
        self.issued.len() - self.buffers.home().len()
    }

    #[inline(always)]
    pub(super) fn tally<R: Requests>(&mut self, action: Action) -> &mut Tally {
        match action {
            Action::Read => &mut self.outcome.account.operations.read,
            Action::Trim if R::VARIED => &mut self.outcome.account.operations.trim,
            _ => &mut self.outcome.account.operations.write,
        }
    }

    /// Stamp at which the sync after this request of a slot began; `None` if no sync followed.
    #[inline(always)]
    pub(super) fn synced_from(&self, slot: u32, request: Request) -> Option<u64> {
        let started = &self.following.started;
        started
            .get(slot as usize)
            .copied()
            .filter(|_| request.action.is_sync())
    }

    /// Handles a result that is not a whole transfer: short transfers go on, a write is followed by its sync if the policy
    /// says so, errors end the trial. Returns the slot of a completed request.
    #[inline(never)]
    pub(super) fn unusual<B: Queue>(
        &mut self,
        backend: &mut B,
        slot: Slot,
        result: i64,
        (now, timed): (u64, bool),
    ) -> Option<Slot> {
        let mut request = self.issued[slot.index() as usize].request;
        if request.action.is_sync() && result == 0 {
            let syncs = &mut self.outcome.account.operations.sync;
            syncs.requests += 1;
            if timed {
                let started = self.following.started[slot.index() as usize];
                let latency_ns = self.clock.ns_between(started, now);
                syncs.latency.saturating_record(latency_ns);
            }
            return Some(slot);
        }
        if AGAIN.contains(&result) {
            backend.queue(slot, request);
            return None;
        }
        if result <= 0 {
            self.fail(FailedRequest {
                syscall: backend.syscall(request.action),
                offset: request.offset,
                length: u64::from(request.len),
                errno: -result as i32,
            });
            self.buffers.put(slot);
            return None;
        }
        let moved = result as u32;
        if moved < request.len {
            let tally = self.tally::<Varied>(request.action);
            tally.short_transfers += 1;
            tally.bytes += u64::from(moved);
            request.offset += u64::from(moved);
            request.at += moved;
            request.len -= moved;
        } else if request.action == Action::Write && self.syncs && self.following.is_due() {
            self.tally::<Varied>(request.action).bytes += u64::from(moved);
            request.action = self.following.call;
            // The stamp of the write's completion: what lies between that and the call counts as part of the sync.
            self.following.started[slot.index() as usize] = now;
        } else {
            return Some(slot);
        }
        self.issued[slot.index() as usize].request = request;
        backend.queue(slot, request);
        None
    }

    pub(super) fn fail(&mut self, failure: FailedRequest) {
        self.outcome.account.errors += 1;
        self.outcome
            .account
            .failure
            .get_or_insert(Failure::Request(failure));
        self.outcome.account.ended = Ended::Failed;
        self.stopping = true;
    }

    /// Handles a failed backend. Requests in flight are awaited, so that their memory can be given back. Slots that do not
    /// come back keep their memory for good.
    #[cold]
    #[inline(never)]
    pub(super) fn mechanism_failed<B: Backend>(
        &mut self,
        backend: &mut B,
        failure: SystemFailure,
        done: &mut Vec<Completion>,
    ) {
        self.fail(FailedRequest {
            syscall: failure.syscall,
            offset: 0,
            length: 0,
            errno: failure.errno,
        });
        backend.settle(SETTLE, done);
        for completion in done.drain(..) {
            self.buffers.put(completion.slot);
        }
    }

    pub(crate) fn end_with(&mut self, why: Ended) {
        if !self.stopping && self.left > 0 {
            self.outcome.account.ended = why;
        }
        self.stopping = true;
    }

    /// Enters the interval of the series that holds `now`, and ends the trial when its time is up. To be called before requests
    /// completed at `now` are tallied.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_up(&mut self, now: u64) {
        self.enter_interval(now);
        if now < self.deadline {
            self.wake = self.wake.min(self.deadline);
        } else {
            self.end_with(Ended::Time);
        }
    }

    /// Enters the interval of the series that holds `now`.
    pub(super) fn enter_interval(&mut self, now: u64) {
        self.wake = self.outcome.series.turn_to(now, self.done());
        self.see_cpu();
    }

    /// The stamp to wait for if a pause is under way at `now`; one that is over is counted.
    pub(super) fn rests_until(&mut self, now: u64) -> Option<u64> {
        let (began, until) = self.resting?;
        if now < until && !self.stopping {
            return Some(until.saturating_sub(self.lead).min(self.wake));
        }
        self.resting = None;
        self.outcome.account.paused_ns += self.clock.ns_between(began, now);
        None
    }

    /// Notes the CPU that this runs on.
    pub(super) fn see_cpu(&mut self) {
        if let Some(seen) = &mut self.outcome.cpus {
            seen.look();
        }
    }

    /// The work done so far.
    pub(super) fn done(&self) -> PerOperation<Moved> {
        self.outcome.account.operations.moved()
    }
}

/// The syncs that follow writes.
pub(crate) struct Following {
    pub(super) call: Action,
    /// Number of writes per sync.
    every: u32,
    /// Writes since the last sync.
    since: u32,
    /// Stamp at which the sync of each slot was issued.
    pub(crate) started: Vec<u64>,
}

impl Following {
    pub(crate) fn new(spec: &TrialSpec) -> Self {
        let call = spec.sync.call();
        Self {
            call: call.map_or(Action::Fsync, Action::from),
            every: spec.sync_every,
            since: 0,
            started: vec![0; call.map_or(0, |_| spec.depth as usize)],
        }
    }

    /// Counts a write; whether a sync follows it.
    pub(crate) fn is_due(&mut self) -> bool {
        self.since += 1;
        if self.since < self.every {
            return false;
        }
        self.since = 0;
        true
    }
}

/// Carries out the only request there is.
#[inline(never)]
fn carry_out<B: Backend>(
    backend: &mut B,
    slot: Slot,
    request: Request,
    done: &mut Vec<Completion>,
) -> Result<Completion, SystemFailure> {
    backend.queue(slot, request);
    loop {
        backend.complete(1, done)?;
        if let Some(completion) = done.pop() {
            return Ok(completion);
        }
    }
}

impl Common<'_> {
    /// Takes note of the end at a stamp.
    pub(crate) fn end_at(&mut self, now: u64) {
        self.outcome.end = now;
        self.see_cpu();
        let tallied = self.done();
        self.outcome.series.finish(self.outcome.end, tallied);
        self.outcome.signed = self.signer.take().map(|signer| signer.finish());
    }

    /// Whether one sync follows all writes, and there were some.
    pub(crate) fn has_to_sync(&self) -> bool {
        let account = &self.outcome.account;
        self.syncs_at_end && account.operations.write.requests > 0 && account.ended.is_whole()
    }

    /// Makes written data durable if that is part of the trial: the final fsync of policy `end`, of each file in turn, without
    /// outstanding requests.
    pub(super) fn sync_at_end<B: Backend>(&mut self, backend: &mut B, mut done: Vec<Completion>) {
        if !self.has_to_sync() {
            return;
        }
        let before = self.outcome.end;
        for offset in backend.offset_in_each_file() {
            let request = Request {
                action: Action::Fsync,
                offset,
                at: 0,
                len: 0,
            };
            let slot = self.buffers.take().expect("nothing is outstanding");
            let Completion { slot, result } = match carry_out(backend, slot, request, &mut done) {
                Ok(completion) => completion,
                Err(failure) => return self.mechanism_failed(backend, failure, &mut done),
            };
            self.buffers.put(slot);
            self.outcome.end = self.clock.now();
            self.outcome.account.end_sync_ns = self.clock.ns_between(before, self.outcome.end);
            if result != 0 {
                return self.fail(FailedRequest {
                    syscall: backend.syscall(request.action),
                    offset: 0,
                    length: 0,
                    errno: -result as i32,
                });
            }
            self.outcome.account.operations.sync.requests += 1;
        }
    }
}
