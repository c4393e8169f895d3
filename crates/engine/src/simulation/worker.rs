//! One worker in virtual time.

use super::{Ask, Disk};
use crate::list::{Feed, ListedRequests, ListedStarts, RequestList, Schedule, Starts};
use crate::request::Action;
use crate::worker::latency_log::LatencyLog;
use crate::worker::latency_log::SpareHistograms;
use crate::worker::open_loop::Open;
use crate::worker::{Following, NoLog, Requests, Varied, WorkerOutcome, outcome};
use iolab_host::clock::Clock;
use iolab_workload::operation::{Moved, Operation, PerOperation};
use iolab_workload::outcome::{Effective, Ended};
use iolab_workload::pattern::quota;
use iolab_workload::trial::{SyncPolicy, TrialSpec};

/// The request of a slot.
#[derive(Debug, Clone, Copy)]
struct Issued {
    action: Action,
    bytes: u64,
    started: u64,
    /// `O_SYNC`: the data is on its way to the medium, within the same write.
    flushing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// The final flush of policy `end` is under way.
    Syncing,
    Over,
}

pub(super) struct Worker<'a, R = Varied, S = Schedule> {
    /// Number of the worker among all workers of the trial.
    id: u32,
    /// Whether it ends when all others do that do not.
    pub(super) follows: bool,
    requests: R,
    pauses: bool,
    /// The end of a pause.
    resting_until: Option<u64>,
    sync: SyncPolicy,
    /// Syncs that follow writes.
    following: Following,
    /// Whether service times are recorded.
    timed: bool,
    /// Completions that are waited for before requests are issued again.
    wait: usize,
    /// Requests still to be issued.
    left: u64,
    deadline: u64,
    /// Set when no further request shall be issued.
    stopping: bool,
    /// Slots without a request.
    free: Vec<u32>,
    issued: Vec<Issued>,
    /// Slots whose requests have completed and are not taken yet.
    ready: Vec<u32>,
    /// The intended starts of a rate.
    open: Option<Open<'a, NoLog, S>>,
    /// The latencies over time, if they are kept.
    over_time: Option<LatencyLog<'a>>,
    interval_end: u64,
    state: State,
    outcome: WorkerOutcome,
}

impl<'a> Worker<'a> {
    /// Worker `number` of its group, which is worker `id` of the trial.
    pub(super) fn new(
        spec: &TrialSpec,
        number: u32,
        id: u32,
        clock: &'a Clock,
        start: u64,
    ) -> Self {
        let spare = SpareHistograms::default();
        let open = spec
            .rate
            .map(|rate| Open::new(spec, rate, number, clock, NoLog, &spare));
        let requests = Varied::new(spec, number, clock);
        Self::of((requests, open), spec, number, id, clock, start)
    }
}

impl<'a> Worker<'a, ListedRequests<'a>, ListedStarts<'a>> {
    /// The only worker of a trial, which goes through a list.
    pub(super) fn listed(
        spec: &TrialSpec,
        list: &'a mut dyn RequestList,
        clock: &'a Clock,
        start: u64,
    ) -> Self {
        let feed = Feed::new(list);
        let open = spec.rate.map(|rate| {
            let starts = ListedStarts::new(&feed, clock);
            Open::of(
                starts,
                spec,
                rate,
                clock,
                NoLog,
                &SpareHistograms::default(),
            )
        });
        Self::of((ListedRequests(feed), open), spec, 0, 0, clock, start)
    }
}

impl<'a, R: Requests, S: Starts> Worker<'a, R, S> {
    fn of(
        (requests, mut open): (R, Option<Open<'a, NoLog, S>>),
        spec: &TrialSpec,
        number: u32,
        id: u32,
        clock: &'a Clock,
        start: u64,
    ) -> Self {
        let timed = outcome::is_timed(spec);
        let none = Issued {
            action: Action::Read,
            bytes: 0,
            started: 0,
            flushing: false,
        };
        let (effective, spare) = (Effective::default(), SpareHistograms::default());
        let mut outcome = WorkerOutcome::begun(spec, timed, clock, effective, &spare);
        (outcome.start, outcome.end) = (start, start);
        let time = spec.limit.time.map(|time| time.as_nanos() as u64);
        if let Some(open) = &mut open {
            open.begin(start);
        }
        let mut over_time = LatencyLog::new(spec, clock);
        if let Some(over_time) = &mut over_time {
            over_time.begin(start);
        }
        Self {
            id,
            follows: false,
            requests,
            pauses: spec.thinktime.is_some(),
            resting_until: None,
            sync: spec.sync,
            following: Following::new(spec),
            timed,
            // At a rate each completion is taken as it comes.
            wait: match open {
                Some(_) => 1,
                None => spec.batch.wait_for(spec.depth) as usize,
            },
            left: quota(spec, number),
            deadline: time.map_or(u64::MAX, |time| start.saturating_add(time)),
            stopping: false,
            free: (0..spec.depth).rev().collect(),
            issued: vec![none; spec.depth as usize],
            ready: Vec::with_capacity(spec.depth as usize),
            open,
            over_time,
            interval_end: outcome.series.begin(start),
            state: State::Running,
            outcome,
        }
    }

    /// Requests that it can have in flight.
    pub(super) fn depth(&self) -> u64 {
        self.issued.len() as u64
    }

    /// Whether all of its requests are done.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether it ever has to issue something when nothing has completed.
    pub(super) fn wakes(&self) -> bool {
        self.open.is_some() || self.pauses
    }

    /// Time at which it has to issue something, or at which its time is up; `None` while it only waits for completions.
    pub(super) fn wake(&self) -> Option<u64> {
        if let Some(until) = self.resting_until {
            return (self.state == State::Running).then(|| until.min(self.deadline));
        }
        let open = self.open.as_ref()?;
        let waits = self.free.is_empty() || self.is_over_at_rate(open);
        (self.state == State::Running && !waits).then(|| match open.is_closed() {
            true => open.next(),
            false => open.next().min(self.deadline),
        })
    }

    /// The request of a slot has completed.
    pub(super) fn completed(&mut self, slot: u32, now: u64, disk: &mut dyn Disk) {
        let issued = &mut self.issued[slot as usize];
        if self.sync.is_in_write() && issued.action == Action::Write && !issued.flushing {
            issued.flushing = true;
            return disk.submit(now, self.tag(slot), Ask::Flush);
        }
        self.ready.push(slot);
    }

    /// Takes its turn if as many requests have completed as it waits for, or something is due.
    pub(super) fn turn_if_due(&mut self, now: u64, disk: &mut dyn Disk) {
        let waits_for = self.wait.min(self.outstanding()).max(1);
        if self.ready.len() >= waits_for || self.wake().is_some_and(|wake| wake <= now) {
            self.turn(now, disk);
        }
    }

    /// Takes completed requests, and issues the ones that are due now.
    pub(super) fn turn(&mut self, now: u64, disk: &mut dyn Disk) {
        match self.state {
            State::Running => {}
            State::Syncing => return self.synced(now),
            State::Over => return,
        }
        if now >= self.interval_end {
            let done = self.done();
            self.interval_end = self.outcome.series.turn_to(now, done);
        }
        if self.open.is_none() && now >= self.deadline {
            self.end_with(Ended::Time);
        }
        let mut ready = std::mem::take(&mut self.ready);
        for slot in ready.drain(..) {
            self.finish(slot, now, disk);
        }
        self.ready = ready;
        match self.open.take() {
            None => self.issue_allowed(now, disk),
            Some(mut open) => {
                self.issue_due(&mut open, now, disk);
                if now >= self.deadline && !open.is_closed() {
                    self.time_is_up(&mut open);
                }
                self.open = Some(open);
            }
        }
        let over = match &self.open {
            Some(open) => self.is_over_at_rate(open),
            None => self.resting_until.is_none(),
        };
        if self.outstanding() == 0 && over {
            self.wind_up(now, disk);
        }
    }

    /// Issues the allowed requests, and pauses if a pause keeps it from issuing any.
    fn issue_allowed(&mut self, now: u64, disk: &mut dyn Disk) {
        if self.stopping || self.resting_until.is_some_and(|until| now >= until) {
            self.resting_until = None;
        }
        let goes_on = |worker: &Self| !worker.stopping && worker.left > 0;
        while goes_on(self)
            && self.resting_until.is_none()
            && !self.free.is_empty()
            && self.requests.may_go_on()
        {
            self.issue(now, disk);
        }
        if goes_on(self) && self.outstanding() == 0 && self.resting_until.is_none() {
            let until = self.requests.rest(now);
            self.resting_until = Some(until);
            self.outcome.account.paused_ns += until.min(self.deadline) - now;
        }
    }

    /// Ends it at once: the user has interrupted.
    pub(super) fn cut_off(&mut self, now: u64) {
        if self.state != State::Over {
            self.outcome.account.ended = Ended::Interrupted;
            self.outcome.end = now;
        }
    }

    /// Issues no further request: the leading groups have ended.
    pub(super) fn end_with_others(&mut self, now: u64, disk: &mut dyn Disk) {
        if self.state == State::Running && !self.stopping {
            if let Some(until) = self.resting_until {
                self.outcome.account.paused_ns -= until.min(self.deadline).saturating_sub(now);
            }
            self.end_with(Ended::Time);
            self.turn(now, disk);
        }
    }

    /// The finished outcome of this worker.
    pub(super) fn into_outcome(mut self) -> WorkerOutcome {
        self.outcome.account.request_sizes = self.requests.sizes();
        self.outcome.account.latency_over_time = self.over_time.as_ref().map(LatencyLog::counted);
        self.outcome
    }

    fn outstanding(&self) -> usize {
        self.issued.len() - self.free.len()
    }

    fn tag(&self, slot: u32) -> u64 {
        u64::from(self.id) << 32 | u64::from(slot)
    }

    fn done(&self) -> PerOperation<Moved> {
        self.outcome.account.operations.moved()
    }

    fn end_with(&mut self, why: Ended) {
        if !self.stopping && self.left > 0 {
            self.outcome.account.ended = why;
        }
        self.stopping = true;
    }

    /// Issues the next request; there is one left, and a free slot.
    fn issue(&mut self, now: u64, disk: &mut dyn Disk) -> u32 {
        let slot = self.free.pop().expect("a free slot");
        self.left -= 1;
        let request = self.requests.next();
        if self.requests.are_spent() {
            self.left = 0;
        }
        let (action, offset, bytes) = (request.action, request.offset, request.len.into());
        self.issued[slot as usize] = Issued {
            action,
            bytes,
            started: now,
            flushing: false,
        };
        let ask = match action {
            Action::Read => Ask::Read { offset, bytes },
            _ => Ask::Write { offset, bytes },
        };
        disk.submit(now, self.tag(slot), ask);
        slot
    }

    /// Records a request, unless its flush is still to come.
    fn finish(&mut self, slot: u32, now: u64, disk: &mut dyn Disk) {
        let Issued {
            action,
            bytes,
            started,
            ..
        } = self.issued[slot as usize];
        let tally = &mut self.outcome.account.operations[action.completes()];
        let is_sync = action.is_sync();
        if !is_sync {
            tally.bytes += bytes;
        }
        if action == Action::Write
            && let Some(call) = self.sync.call()
            && self.following.is_due()
        {
            self.issued[slot as usize].action = call.into();
            self.following.started[slot as usize] = now;
            return disk.submit(now, self.tag(slot), Ask::Flush);
        }
        tally.requests += 1;
        if self.timed {
            tally.latency.saturating_record(now - started);
        }
        if is_sync {
            self.outcome.account.operations.sync.requests += 1;
            let started = self.following.started[slot as usize];
            if self.timed {
                self.outcome
                    .account
                    .operations
                    .sync
                    .latency
                    .saturating_record(now - started);
            }
        }
        if let Some(over_time) = &mut self.over_time {
            let begun = self
                .open
                .as_ref()
                .map_or(started, |open| open.intended(slot));
            over_time.record(action.completes(), begun, now);
            if is_sync {
                let started = self.following.started[slot as usize];
                over_time.record(Operation::Sync, started, now);
            }
        }
        if let Some(open) = &mut self.open {
            open.record(slot, action, started, now);
        }
        self.free.push(slot);
    }

    /// Issues requests that are due, as far as there are free slots.
    fn issue_due(&mut self, open: &mut Open<'_, NoLog, S>, now: u64, disk: &mut dyn Disk) {
        let last = now.min(self.deadline - 1);
        if !self.free.is_empty() {
            open.has_slot(now);
        }
        while open.next() <= last && !self.is_over_at_rate(open) && !self.free.is_empty() {
            // The slot that is taken next.
            if let Some(slot) = self.free.last() {
                open.issued(*slot, now, self.outstanding() + 1);
            }
            self.issue(now, disk);
        }
        if self.left == 0 {
            open.close(now);
        } else if self.free.is_empty() {
            open.watch_backlog(now);
        }
    }

    /// Handles the time bound: requests due by then are still issued, unless there are too many.
    fn time_is_up(&mut self, open: &mut Open<'_, NoLog, S>) {
        let closing = open.close(self.deadline);
        let was_stopping = self.stopping;
        self.end_with(Ended::Time);
        self.stopping = was_stopping || !open.makes_up(closing);
    }

    /// Whether no further request will be issued at a rate.
    fn is_over_at_rate(&self, open: &Open<'_, NoLog, S>) -> bool {
        let made_up = || open.is_closed() && open.next() >= self.deadline;
        self.stopping || self.left == 0 || made_up()
    }

    /// All requests are done: takes the time, and makes written data durable if that is part of the trial.
    fn wind_up(&mut self, now: u64, disk: &mut dyn Disk) {
        if let Some(open) = &mut self.open {
            open.hand_over(now.min(self.deadline), &mut self.outcome);
        }
        self.outcome.end = now;
        let done = self.done();
        self.outcome.series.finish(now, done);
        self.state = State::Over;
        if self.sync == SyncPolicy::End && self.outcome.account.operations.write.requests > 0 {
            self.state = State::Syncing;
            self.issued[0].action = Action::Fsync;
            self.free.retain(|slot| *slot != 0);
            disk.submit(now, self.tag(0), Ask::Flush);
        }
    }

    /// The final flush is done.
    fn synced(&mut self, now: u64) {
        self.outcome.account.end_sync_ns = now - self.outcome.end;
        self.outcome.end = now;
        self.outcome.account.operations.sync.requests += 1;
        self.state = State::Over;
    }
}
