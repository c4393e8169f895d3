//! The turns of one worker in virtual time, against a disk that all workers share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::buffer::{Buffers, Slot};
use crate::list::{Feed, ListedRequests, ListedStarts, RequestList, Schedule, Starts};
use crate::request::{Action, Completion, InFlight, Queue, Request};
use crate::worker::latency_log::{LatencyLog, Notes};
use crate::worker::open_loop::Open;
use crate::worker::{self, Closed, Common, Requests, Timing, Turns, Varied, Wait, WorkerOutcome};
use iolab_diskmodel::{Model, Request as Ask};
use iolab_host::clock::Clock;
use iolab_workload::outcome::{Effective, Ended};
use iolab_workload::trial::{Rate, TrialSpec};

/// The disk, the clock and the stop flag of a trial.
pub(super) struct Machine<'a> {
    pub(super) disk: RefCell<&'a mut dyn Model>,
    pub(super) clock: Clock,
    pub(super) stop: &'a AtomicBool,
}

impl Machine<'_> {
    /// Asks the disk, but for nothing more once the stop flag is raised: requests that are issued at one moment can be many.
    fn submit(&self, tag: u64, ask: Ask) {
        if !self.stop.load(Ordering::Relaxed) {
            self.disk.borrow_mut().submit(self.clock.now(), tag, &ask);
        }
    }
}

/// The requests that a worker has at the disk.
struct AtDisk<'a> {
    machine: &'a Machine<'a>,
    /// Number of the worker among all workers of the trial.
    id: u32,
    in_flight: InFlight,
    /// Writes of `O_SYNC` whose data is on its way to the medium, by slot.
    flushing: Vec<bool>,
    /// Whether the medium has the data of a write before it is done.
    in_write: bool,
}

impl AtDisk<'_> {
    fn ask(&self, slot: u32, ask: Ask) {
        let tag = u64::from(self.id) << 32 | u64::from(slot);
        self.machine.submit(tag, ask);
    }

    /// Takes the request of a slot back from the disk; `None` if its flush is still to come.
    fn completed(&mut self, slot: u32, request: Request) -> Option<Completion> {
        let flushes = self.in_write && request.action == Action::Write;
        if flushes && !std::mem::replace(&mut self.flushing[slot as usize], true) {
            self.ask(slot, Ask::flush());
            return None;
        }
        self.flushing[slot as usize] = false;
        Some(Completion {
            slot: self.in_flight.give_back(slot.into()),
            result: match request.action.is_sync() {
                true => 0,
                false => request.len.into(),
            },
        })
    }
}

impl Queue for AtDisk<'_> {
    fn queue(&mut self, slot: Slot, request: Request) {
        let (offset, bytes) = (request.offset, request.len.into());
        let ask = match request.action {
            Action::Read => Ask::read(offset, bytes),
            Action::Write => Ask::write(offset, bytes),
            Action::Trim => Ask::trim(offset, bytes),
            Action::Fsync | Action::Fdatasync => Ask::flush(),
        };
        let number = slot.index();
        self.in_flight.hold(slot);
        self.ask(number, ask);
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

/// A worker of the engine, whatever its timing and its requests.
trait Engine<'a>: Turns {
    fn common(&mut self) -> &mut Common<'a>;

    /// As [`AtDisk::completed`].
    fn completed(&mut self, slot: u32) -> Option<Completion>;

    fn into_outcome(self: Box<Self>) -> WorkerOutcome;
}

impl<'a, T: Timing, R: Requests> Engine<'a> for worker::Worker<'a, AtDisk<'a>, T, R>
where
    Self: Turns,
{
    fn common(&mut self) -> &mut Common<'a> {
        &mut self.common
    }

    fn completed(&mut self, slot: u32) -> Option<Completion> {
        let request = self.common.request_of(slot);
        self.backend.completed(slot, request)
    }

    fn into_outcome(self: Box<Self>) -> WorkerOutcome {
        (*self).into_outcome().0
    }
}

/// Numbers of a worker: among the workers of its group, and among all workers of the trial.
type Numbers = (u32, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The final flush of policy `end` is under way.
    Syncing,
    Over,
}

pub(super) struct Worker<'a> {
    machine: &'a Machine<'a>,
    /// Number among all workers of the trial.
    id: u32,
    /// Requests that it can have in flight.
    pub(super) depth: u32,
    /// Whether it ever has to issue something when nothing has completed.
    pub(super) wakes: bool,
    /// Whether it ends when all others do that do not.
    pub(super) follows: bool,
    engine: Box<dyn Engine<'a> + 'a>,
    /// Completions that are not taken yet.
    ready: Vec<Completion>,
    wait: Wait,
    state: State,
}

impl<'a> Worker<'a> {
    /// Worker of a pattern.
    pub(super) fn new(spec: &TrialSpec, numbers: Numbers, machine: &'a Machine<'a>) -> Self {
        let (number, clock) = (numbers.0, &machine.clock);
        let starts = |rate| Schedule::new(spec, rate, number, clock);
        let requests = Varied::new(spec, number, clock);
        Self::made(spec, numbers, machine, starts, requests)
    }

    /// The only worker of a trial, which goes through a list.
    pub(super) fn listed(
        spec: &TrialSpec,
        machine: &'a Machine<'a>,
        list: &'a mut dyn RequestList,
    ) -> Self {
        let feed = Feed::new(list);
        let starts = |_| ListedStarts::new(&feed, &machine.clock);
        let requests = ListedRequests(Rc::clone(&feed));
        Self::made(spec, (0, 0), machine, starts, requests)
    }

    /// Worker with these requests: at a rate from these intended starts, otherwise in the closed loop.
    fn made<S: Starts + 'a, R: Requests + 'a>(
        spec: &TrialSpec,
        numbers: Numbers,
        machine: &'a Machine<'a>,
        starts: impl FnOnce(Rate) -> S,
        requests: R,
    ) -> Self {
        let clock = &machine.clock;
        let log = Notes {
            requests: None,
            over_time: LatencyLog::new(spec, clock),
        };
        match (spec.rate, spec.latency) {
            (Some(rate), _) => {
                let open = Open::new(starts(rate), spec, rate, clock, log);
                Self::of(spec, numbers, machine, open.in_virtual_time(), requests)
            }
            (None, true) => Self::of(spec, numbers, machine, Closed::<true, _>(log), requests),
            (None, false) => Self::of(spec, numbers, machine, Closed::<false, _>(log), requests),
        }
    }

    fn of<T: Timing + 'a, R: Requests + 'a>(
        spec: &TrialSpec,
        (number, id): Numbers,
        machine: &'a Machine<'a>,
        timing: T,
        requests: R,
    ) -> Self
    where
        worker::Worker<'a, AtDisk<'a>, T, R>: Turns,
    {
        let clock = &machine.clock;
        let begun = WorkerOutcome::begun(spec, T::TIMED, clock, Effective::default());
        let buffers = Buffers::empty(spec.depth);
        let common = Common::new(spec, number, begun, buffers, clock, machine.stop);
        let engine = worker::Worker {
            backend: AtDisk {
                machine,
                id,
                in_flight: InFlight::new(spec.depth),
                flushing: vec![false; spec.depth as usize],
                in_write: spec.sync.is_in_write(),
            },
            timing,
            requests,
            common: common.in_virtual_time(),
        };
        let mut own = Self {
            machine,
            id,
            depth: spec.depth,
            wakes: spec.rate.is_some() || spec.thinktime.is_some(),
            follows: false,
            engine: Box::new(engine),
            ready: Vec::with_capacity(spec.depth as usize),
            wait: Wait::Over,
            state: State::Running,
        };
        own.engine.begin(clock.now());
        own
    }

    /// Whether all of its requests are done.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Time at which it has a turn whatever completes; `None` while it only waits for completions.
    pub(super) fn wake(&self) -> Option<u64> {
        match self.wait {
            Wait::Until(stamp) | Wait::CompletionUntil(stamp) => Some(stamp),
            Wait::Over | Wait::Completions(_) => None,
        }
    }

    /// The request of a slot has completed.
    pub(super) fn completed(&mut self, slot: u32) {
        match self.state {
            State::Running => self.ready.extend(self.engine.completed(slot)),
            State::Syncing => self.synced(),
            State::Over => {}
        }
    }

    /// Takes its turn if what it waits for has come.
    pub(super) fn turn_if_due(&mut self) {
        let now = self.machine.clock.now();
        let is_due = match self.wait {
            Wait::Over => false,
            Wait::Completions(count) => self.ready.len() >= count as usize,
            Wait::Until(stamp) => stamp <= now,
            Wait::CompletionUntil(stamp) => !self.ready.is_empty() || stamp <= now,
        };
        if is_due {
            self.turn();
        }
    }

    /// Takes its turn.
    pub(super) fn turn(&mut self) {
        let now = self.machine.clock.now();
        self.wait = self.engine.turn(now, &mut self.ready);
        if self.wait == Wait::Over {
            self.engine.close(now);
            let common = self.engine.common();
            common.end_at(now);
            self.state = match common.has_to_sync() {
                true => State::Syncing,
                false => State::Over,
            };
            if self.state == State::Syncing {
                self.machine.submit(u64::from(self.id) << 32, Ask::flush());
            }
        }
    }

    /// The final flush is done.
    fn synced(&mut self) {
        let now = self.machine.clock.now();
        let outcome = &mut self.engine.common().outcome;
        outcome.account.end_sync_ns = now - outcome.end;
        outcome.end = now;
        outcome.account.operations.sync.requests += 1;
        self.state = State::Over;
    }

    /// Ends it at once: the user has interrupted.
    pub(super) fn cut_off(&mut self) {
        if self.state != State::Over {
            let outcome = &mut self.engine.common().outcome;
            outcome.account.ended = Ended::Interrupted;
            outcome.end = self.machine.clock.now();
        }
    }

    /// Issues no further request: the leading groups have ended.
    pub(super) fn end_with_others(&mut self) {
        if self.state == State::Running {
            self.engine.common().end_with(Ended::Time);
            self.turn();
        }
    }

    /// The finished outcome of this worker.
    pub(super) fn into_outcome(self) -> WorkerOutcome {
        self.engine.into_outcome()
    }
}
