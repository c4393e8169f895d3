//! The open loop: each request has an intended start, and late requests are made up for, not left out.
//!
//! A worker that finds all its slots taken lets requests queue up and issues them as soon as a slot is free; their response
//! time counts from the intended start. So a stall of the storage shows in every request that it delayed, not only in the
//! requests in flight (G. Tene's coordinated omission).

#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use rustix::thread::set_current_timer_slack;

use super::outcome::waiting_operations;
use super::request_log::{Log, NoLog};
use super::requests::LEAD_NS;
use super::{Requests, Timing, Turns, Wait, Worker, WorkerOutcome};
use crate::list::{Schedule, Starts};
use crate::request::{Action, Completion, Queue, Request};
use iolab_host::clock::Clock;
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::{Ended, MADE_UP, RateReport, Waits};
use iolab_workload::trial::{Rate, TrialSpec};

/// The intended starts of one worker, and how far its requests kept to them.
pub(crate) struct Open<'a, L = NoLog, S = Schedule> {
    clock: &'a Clock,
    log: L,
    schedule: S,
    rate: f64,
    workers: u32,
    /// Stamp of the worker's start, from which the schedule counts.
    start: u64,
    /// Intended start of the request in each slot, a stamp.
    intended: Vec<u64>,
    /// Time by which a request may start late so that others start with it, ticks.
    slack: u64,
    /// Time before an intended start at which sleeping stops, ticks.
    lead: u64,
    waits: PerOperation<Option<Waits>>,
    issued: u64,
    backlog_max: u64,
    /// Set when the time is up or the last request was issued.
    closed: Option<Closing>,
}

/// State when the time was up, or the last request was issued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closing {
    at: u64,
    issued: u64,
    backlog: u64,
}

impl<'a, L: Log, S: Starts> Open<'a, L, S> {
    /// An open loop with these starts, at `rate` on average.
    pub(crate) fn new(schedule: S, spec: &TrialSpec, rate: Rate, clock: &'a Clock, log: L) -> Self {
        let waits = |used: bool| {
            used.then(|| Waits {
                response: new_latency_histogram(),
                lateness: new_latency_histogram(),
            })
        };
        // Who accepts no slack wants exact starts.
        let lead = match spec.rate_slack.is_zero() {
            true => LEAD_NS,
            false => 0,
        };
        Self {
            clock,
            log,
            schedule,
            rate: rate.per_second(spec.mean_request()) / f64::from(spec.workers()),
            workers: spec.workers(),
            start: 0,
            intended: vec![0; spec.depth as usize],
            slack: clock.ticks(spec.rate_slack.as_nanos() as u64),
            lead: clock.ticks(lead),
            waits: waiting_operations(spec).map(waits),
            issued: 0,
            backlog_max: 0,
            closed: None,
        }
    }

    /// In virtual time: waiting ends exactly.
    pub(crate) fn in_virtual_time(mut self) -> Self {
        (self.slack, self.lead) = (0, 0);
        self
    }

    /// The stamp at which the request of a slot was intended to start.
    #[inline(always)]
    pub(crate) fn intended(&self, slot: u32) -> u64 {
        self.intended[slot as usize]
    }

    /// Stamp of the next intended start.
    #[inline(always)]
    pub(crate) fn next(&self) -> u64 {
        self.start.saturating_add(self.schedule.next())
    }

    /// Stamp until which the worker may sleep.
    fn wake(&self) -> u64 {
        let together = self.schedule.last_within(self.slack);
        self.start
            .saturating_add(together)
            .saturating_sub(self.lead)
    }

    /// Requests that are due at a stamp and not issued.
    fn backlog(&self, at: u64) -> u64 {
        self.schedule.backlog(at.saturating_sub(self.start))
    }

    /// The next request went into this slot at `now`, as one of `outstanding` in flight.
    #[inline(always)]
    pub(crate) fn issued(&mut self, slot: u32, now: u64, outstanding: usize) {
        self.intended[slot as usize] = self.next();
        self.schedule
            .advance(now.saturating_sub(self.start), outstanding);
        self.issued += 1;
    }

    /// Notes that there is a free slot.
    #[inline(always)]
    pub(crate) fn has_slot(&mut self, now: u64) {
        self.schedule.has_slot(now.saturating_sub(self.start));
    }

    /// Notes how many requests are due that have no slot.
    #[inline(always)]
    pub(crate) fn watch_backlog(&mut self, now: u64) {
        self.schedule.lacks_slot();
        if self.closed.is_none() {
            self.backlog_max = self.backlog_max.max(self.backlog(now));
        }
    }

    /// Whether no request counts any more whose intended start is still to come.
    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Ends the schedule at the stamp `at`, if it has not ended before: requests with a later intended start no longer count.
    pub(crate) fn close(&mut self, at: u64) -> Closing {
        let now = Closing {
            at,
            issued: self.issued,
            backlog: self.backlog(at),
        };
        *self.closed.get_or_insert(now)
    }

    /// Records how far a completed request kept to its intended start.
    #[inline(always)]
    pub(crate) fn record(&mut self, slot: u32, action: Action, started: u64, now: u64) {
        let intended = self.intended[slot as usize];
        if let Some(waits) = &mut self.waits[action.completes()] {
            let response_ns = self.clock.ns_between(intended, now);
            waits.response.saturating_record(response_ns);
            let lateness_ns = self.clock.ns_between(intended, started);
            waits.lateness.saturating_record(lateness_ns);
        }
    }

    /// Hands the records over; `at` is the latest stamp that counts.
    pub(crate) fn hand_over(&mut self, at: u64, outcome: &mut WorkerOutcome) {
        let closing = self.close(at);
        let span = self.clock.ns_between(self.start, closing.at);
        outcome.account.rate_report = Some(RateReport {
            rate_wanted: self.rate,
            rate_achieved: closing.issued as f64 * 1e9 / span.max(1) as f64,
            backlog_max: self.backlog_max.max(closing.backlog),
            backlog_end: closing.backlog,
        });
        let tallies = outcome.account.operations.as_mut();
        tallies.zip(self.waits.as_mut(), |tally, waits| {
            tally.waits = waits.take();
        });
    }
}

impl Closing {
    /// Whether the backlog is small enough to be completed after the time is up: leaving those requests out would leave out
    /// the longest response times. The limit lies above the backlog from which a rate counts as not held, so a trial that
    /// leaves requests out counts as such.
    fn is_made_up(&self, workers: u32) -> bool {
        let due = (self.issued + self.backlog) as f64;
        self.backlog as f64 <= f64::from(workers) * (MADE_UP * due).max(1.0)
    }
}

impl<L: Log, S: Starts> Timing for Open<'_, L, S> {
    const TIMED: bool = true;
    const CLOSED: bool = false;

    type Log = L;

    #[inline(always)]
    fn log(&mut self) -> &mut L {
        &mut self.log
    }

    fn begin(&mut self, start: u64) {
        self.start = start;
        self.log.begin(start);
    }

    #[inline(always)]
    fn completed(
        &mut self,
        slot: u32,
        request: Request,
        started: u64,
        now: u64,
        synced: Option<u64>,
    ) {
        self.record(slot, request.action, started, now);
        self.log
            .note(request, self.intended(slot), started, now, synced);
    }
}

impl<B: Queue, L: Log, S: Starts, R: Requests> Turns for Worker<'_, B, Open<'_, L, S>, R> {
    fn begin(&mut self, start: u64) {
        self.common.begin(start);
        self.timing.begin(start);
    }

    /// Waits for completions, but not beyond the next intended start when there is a slot for its request.
    fn turn(&mut self, now: u64, done: &mut Vec<Completion>) -> Wait {
        if now >= self.common.wake {
            self.common.enter_interval(now);
        }
        for completion in done.drain(..) {
            self.finish(completion, now);
        }
        if now >= self.common.deadline && !self.timing.is_closed() {
            self.time_is_up(now);
        }
        if self.common.stop.load(Ordering::Relaxed) {
            self.common.end_with(Ended::Interrupted);
        }
        self.issue_due(now);
        let until = || self.timing.wake().min(self.common.deadline);
        match self.common.outstanding() {
            0 if self.is_over() => Wait::Over,
            0 => Wait::Until(until()),
            _ if self.common.buffers.home().is_empty() || self.is_over() => Wait::Completions(1),
            _ => Wait::CompletionUntil(until()),
        }
    }

    fn close(&mut self, now: u64) {
        let last = now.min(self.common.deadline);
        self.timing.hand_over(last, &mut self.common.outcome);
    }
}

impl<B: Queue, L: Log, S: Starts, R: Requests> Worker<'_, B, Open<'_, L, S>, R> {
    /// Issues requests that are due, as far as there are free slots.
    #[inline(always)]
    fn issue_due(&mut self, now: u64) {
        let mut stamped = false;
        let last = now.min(self.common.deadline - 1);
        if !self.common.buffers.home().is_empty() {
            self.timing.has_slot(now);
        }
        while self.timing.next() <= last
            && !self.is_over()
            && let Some(slot) = self.common.buffers.take()
        {
            let now = match S::WAITS {
                true => self.common.clock.now(),
                false => now,
            };
            let outstanding = self.common.outstanding();
            self.timing.issued(slot.index(), now, outstanding);
            stamped |= self.issue_one(slot, now);
        }
        self.start_again(stamped);
        if self.common.left == 0 {
            self.timing.close(now);
        } else if self.common.buffers.home().is_empty() {
            self.timing.watch_backlog(now);
        }
    }

    /// Whether no further request will be issued.
    #[inline(always)]
    fn is_over(&self) -> bool {
        let made_up = || self.timing.is_closed() && self.timing.next() >= self.common.deadline;
        self.common.stopping || self.common.left == 0 || made_up()
    }

    /// Handles the time bound: requests due by then are still issued, unless there are too many.
    fn time_is_up(&mut self, now: u64) {
        self.issue_due(now);
        let closing = self.timing.close(self.common.deadline);
        let made_up = closing.is_made_up(self.timing.workers);
        let was_stopping = self.common.stopping;
        self.common.end_with(Ended::Time);
        self.common.stopping = was_stopping || !made_up;
    }
}

/// Lets the sleeps of this thread end exactly. If the kernel refuses, they end up to 50 us later, and the lateness shows
/// it.
pub(crate) fn sleep_exactly() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
