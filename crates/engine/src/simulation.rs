//! A trial in virtual time: the turns of all workers, in one thread, against a disk that is computed.
//!
//! The turns are the ones that measure (`worker.rs`). Only time differs: it jumps from one event of the disk to the next, and the
//! host's own work takes none. So a trial is a pure function of its settings and the state of the disk.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use iolab_host::clock::Clock;
use iolab_workload::group::GroupTrial;
use iolab_workload::outcome::{Effective, Ended, GroupOutcome, Outcome};
use iolab_workload::trial::{Rate, TrialSpec};
use iolab_workload::units::exact_size;
use iolab_workload::virtual_disk::{Completion as Done, Model, Request as Ask};
use iolab_workload::{Error, Result};

use crate::buffer::{Buffers, Slot};
use crate::list::{Feed, ListedRequests, ListedStarts, RequestList, Schedule, Starts};
use crate::request::{Action, Completion, InFlight, Queue, Request};
use crate::trial::{check_list, merge, merge_groups, outcome_of_group};
use crate::worker::open_loop::Open;
use crate::worker::outcome::{LatencyLog, Notes};
use crate::worker::{self, Closed, Common, Requests, Timing, Turns, Varied, Wait, WorkerOutcome};

/// Latest time of a disk, ns: 146 years. Times that a disk adds for requests in flight do not overflow.
const TIME_MAX: u64 = 1 << 62;
/// Most bytes in flight. They bound a disk's work between two looks at the stop flag, and its times.
const IN_FLIGHT_MAX: u64 = 64 << 30;
/// Requests completed at one moment, for each that can be in flight, from which a disk is said to take no time.
const AT_ONCE_PER_SLOT: u64 = 16;
/// Least number of requests for that.
const AT_ONCE_LEAST: u64 = 1 << 16;

/// Carries one trial out on `disk`, from `start_ns` of its clock on. Returns the outcome and the time at which the disk was
/// done. Raising `stop` ends the trial early.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): settings that contradict each other, or a disk that takes no time.
pub fn run(
    spec: &TrialSpec,
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check(spec)?;
    check_in_flight([spec])?;
    let machine = machine(disk, start_ns, stop);
    run_workers(workers(spec, 0, &machine), &[], &machine)
}

/// As [`run`], with the requests of a list in place of a pattern: by its times if the trial has a rate, otherwise each as soon as
/// another completes.
///
/// # Errors
/// As [`run`]; also settings that a list has no use for.
pub fn run_list(
    spec: &TrialSpec,
    list: &mut dyn RequestList,
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check(spec)?;
    check_list(spec)?;
    check_in_flight([spec])?;
    let machine = machine(disk, start_ns, stop);
    run_workers(vec![Worker::listed(spec, &machine, list)], &[], &machine)
}

/// Disk, clock and stop flag for the workers of a trial.
fn machine<'a>(disk: &'a mut dyn Model, start_ns: u64, stop: &'a AtomicBool) -> Machine<'a> {
    let clock = Clock::in_virtual_time();
    clock.set(start_ns);
    Machine {
        disk: RefCell::new(disk),
        clock,
        stop,
    }
}

/// Carries the workers of a trial out, which belong to these groups if there are several.
fn run_workers(
    mut workers: Vec<Worker<'_>>,
    groups: &[GroupTrial],
    machine: &Machine<'_>,
) -> Result<(Outcome, u64)> {
    let clock = &machine.clock;
    let now = carry_out(&mut workers, machine)?;
    let all: Vec<_> = workers
        .into_iter()
        .map(|worker| worker.engine.into_outcome())
        .collect();
    let start = all.iter().map(|worker| worker.start).min().unwrap_or(0);
    let mut rest = all.as_slice();
    let of_group = |group: &GroupTrial| {
        let own = rest.split_off(..group.trial.threads as usize);
        outcome_of_group(group, own.unwrap_or_default(), start, clock)
    };
    let apart: Vec<GroupOutcome> = groups.iter().map(of_group).collect();
    // No kernel counts the traffic of a modelled disk.
    let seen = Default::default();
    let mut outcome = merge(all, clock, seen, 0.0);
    if !apart.is_empty() {
        merge_groups(&mut outcome, &apart);
    }
    outcome.groups = apart;
    match outcome.elapsed_ns {
        0 if outcome.ended != Ended::Interrupted => Err(takes_no_time()),
        _ => Ok((outcome, now)),
    }
}

/// [`run`] for a trial of several groups; their results are in [`Outcome::groups`].
///
/// # Errors
/// As [`run`].
pub fn run_groups(
    groups: &[GroupTrial],
    disk: &mut dyn Model,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<(Outcome, u64)> {
    check_in_flight(groups.iter().map(|group| &group.trial))?;
    let machine = machine(disk, start_ns, stop);
    let mut all: Vec<Worker<'_>> = Vec::new();
    for group in groups {
        check(&group.trial)?;
        let first = all.len() as u32;
        let mut own = workers(&group.trial, first, &machine);
        for worker in &mut own {
            worker.follows = group.follows;
        }
        all.append(&mut own);
    }
    run_workers(all, groups, &machine)
}

/// Checks the settings of some workers.
fn check(spec: &TrialSpec) -> Result<()> {
    if spec.trims() {
        return Err(Error::usage("trims on a model, which has none")
            .hint("set trim_percent=0, or measure a file or a device"));
    }
    spec.check()
}

/// Refuses more bytes in flight than a disk is asked for at a time.
fn check_in_flight<'a>(trials: impl IntoIterator<Item = &'a TrialSpec>) -> Result<()> {
    let bytes = |spec: &TrialSpec| spec.in_flight().saturating_mul(spec.largest_request());
    let all = trials.into_iter().map(bytes);
    let all = all.fold(0, u64::saturating_add);
    match all > IN_FLIGHT_MAX {
        true => Err(Error::usage(format!(
            "{} bytes in flight on a model, more than {}",
            all,
            exact_size(IN_FLIGHT_MAX)
        ))
        .hint("choose a smaller bs, depth or number of threads")),
        false => Ok(()),
    }
}

/// The workers of a group, of which the first gets this number.
fn workers<'a>(spec: &TrialSpec, first: u32, machine: &'a Machine<'a>) -> Vec<Worker<'a>> {
    let worker = |number| Worker::new(spec, (number, first + number), machine);
    (0..spec.threads).map(worker).collect()
}

/// Advances time until all workers are done; returns the disk's time then.
fn carry_out(workers: &mut [Worker<'_>], machine: &Machine<'_>) -> Result<u64> {
    let wakes = workers.iter().any(|worker| worker.wakes);
    let followed = workers.iter().any(|worker| worker.follows);
    let mut now = machine.clock.now();
    let mut done = Vec::new();
    let in_flight: u64 = workers.iter().map(|worker| u64::from(worker.depth)).sum();
    let at_once_max = (AT_ONCE_PER_SLOT * in_flight).max(AT_ONCE_LEAST);
    let mut at_once = 0;
    for worker in workers.iter_mut() {
        worker.turn();
    }
    while !machine.stop.load(Ordering::Relaxed) {
        let wake = match wakes {
            true => workers.iter().filter_map(Worker::wake).min(),
            false => None,
        };
        let event = machine.disk.borrow().next_event();
        let Some(next) = event.into_iter().chain(wake).min() else {
            break;
        };
        if next > TIME_MAX {
            return Err(takes_too_long());
        }
        if next > now {
            (now, at_once) = (next, 0);
            machine.clock.set(now);
        }
        machine.disk.borrow_mut().advance(now, &mut done);
        at_once += done.len() as u64;
        for Done { tag, .. } in done.drain(..) {
            let worker = &mut workers[(tag >> 32) as usize];
            worker.completed(tag as u32);
            // With a rate or pauses, all workers are examined anyway.
            if !wakes {
                worker.turn_if_due();
            }
        }
        if wakes {
            workers.iter_mut().for_each(Worker::turn_if_due);
        }
        if followed && workers.iter().all(|w| w.follows || w.is_over()) {
            let following = workers.iter_mut().filter(|worker| worker.follows);
            following.for_each(Worker::end_with_others);
        }
        if workers.iter().all(Worker::is_over) {
            break;
        }
        if at_once > at_once_max {
            return Err(takes_no_time());
        }
    }
    if machine.stop.load(Ordering::Relaxed) {
        workers.iter_mut().for_each(Worker::cut_off);
    }
    Ok(now)
}

fn takes_too_long() -> Error {
    Error::usage("requests take longer on this model than its clock counts, 146 years")
        .hint("shorten the times in its definition")
}

fn takes_no_time() -> Error {
    Error::usage("requests take no time on this model, so it has no throughput")
        .hint("put latency, limit or server around it in its definition")
}

/// The disk, the clock and the stop flag of a trial.
struct Machine<'a> {
    disk: RefCell<&'a mut dyn Model>,
    clock: Clock,
    stop: &'a AtomicBool,
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

struct Worker<'a> {
    machine: &'a Machine<'a>,
    /// Number among all workers of the trial.
    id: u32,
    /// Requests that it can have in flight.
    depth: u32,
    /// Whether it ever has to issue something when nothing has completed.
    wakes: bool,
    /// Whether it ends when all others do that do not.
    follows: bool,
    engine: Box<dyn Engine<'a> + 'a>,
    /// Completions that are not taken yet.
    ready: Vec<Completion>,
    wait: Wait,
    state: State,
}

impl<'a> Worker<'a> {
    /// Worker of a pattern.
    fn new(spec: &TrialSpec, numbers: Numbers, machine: &'a Machine<'a>) -> Self {
        let (number, clock) = (numbers.0, &machine.clock);
        let starts = |rate| Schedule::new(spec, rate, number, clock);
        let requests = Varied::new(spec, number, clock);
        Self::made(spec, numbers, machine, starts, requests)
    }

    /// The only worker of a trial, which goes through a list.
    fn listed(spec: &TrialSpec, machine: &'a Machine<'a>, list: &'a mut dyn RequestList) -> Self {
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
    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Time at which it has a turn whatever completes; `None` while it only waits for completions.
    fn wake(&self) -> Option<u64> {
        match self.wait {
            Wait::Until(stamp) | Wait::CompletionUntil(stamp) => Some(stamp),
            Wait::Over | Wait::Completions(_) => None,
        }
    }

    /// The request of a slot has completed.
    fn completed(&mut self, slot: u32) {
        match self.state {
            State::Running => self.ready.extend(self.engine.completed(slot)),
            State::Syncing => self.synced(),
            State::Over => {}
        }
    }

    /// Takes its turn if what it waits for has come.
    fn turn_if_due(&mut self) {
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
    fn turn(&mut self) {
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
    fn cut_off(&mut self) {
        if self.state != State::Over {
            let outcome = &mut self.engine.common().outcome;
            outcome.account.ended = Ended::Interrupted;
            outcome.end = self.machine.clock.now();
        }
    }

    /// Issues no further request: the leading groups have ended.
    fn end_with_others(&mut self) {
        if self.state == State::Running {
            self.engine.common().end_with(Ended::Time);
            self.turn();
        }
    }
}
