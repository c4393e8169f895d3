//! Ends a worker once what it does is steady, by fio's rule: it looks where an interval of the rule ends.

use iolab_host::clock::Clock;
use iolab_workload::operation::PerOperation;
use iolab_workload::outcome::Tally;
use iolab_workload::trial::{SteadyRule, SteadyTest, TrialSpec};

/// The values of a worker in the window of its rule.
pub(crate) struct Steady {
    rule: SteadyRule,
    /// Length of an interval, ticks.
    every: u64,
    /// Ticks per second.
    second: f64,
    /// Stamp from which on values count.
    counts_from: u64,
    /// Stamp at which the interval under way ends.
    next: u64,
    /// What was done at the end of the interval before.
    before: Total,
    /// The latest values, the oldest first.
    values: Vec<f64>,
}

/// What was done until a stamp.
#[derive(Clone, Copy, Default)]
struct Total {
    at: u64,
    requests: f64,
    bytes: f64,
    /// Sum of all latencies, ns.
    latency: f64,
}

impl Steady {
    /// That of a worker; `None` where its trial has no such rule.
    pub(crate) fn of(spec: &TrialSpec, clock: &Clock) -> Option<Box<Self>> {
        let rule = spec.steady?;
        Some(Box::new(Self {
            rule,
            every: clock.ticks(rule.every.as_nanos() as u64),
            second: clock.ticks(1_000_000_000) as f64,
            counts_from: clock.ticks(rule.ramp.as_nanos() as u64),
            next: 0,
            before: Total::default(),
            values: Vec::with_capacity(rule.values()),
        }))
    }

    /// The worker begins at a stamp.
    pub(crate) fn begin(&mut self, start: u64) {
        self.counts_from = self.counts_from.saturating_add(start);
        self.next = start.saturating_add(self.every);
        self.before.at = start;
    }

    /// Whether the worker is steady at `now`, having done so much.
    pub(crate) fn is_reached(&mut self, now: u64, done: &PerOperation<Tally>) -> bool {
        if now < self.next {
            return false;
        }
        // Looks come late, and intervals follow each other all the same.
        let is_ramp = self.next - self.every < self.counts_from;
        let late = (now - self.next) / self.every.max(1);
        self.next = self
            .next
            .saturating_add((late + 1).saturating_mul(self.every));
        let total = self.total(now, done);
        let before = std::mem::replace(&mut self.before, total);
        // An interval that began before the ramp was over is part of it.
        if is_ramp {
            return false;
        }
        if self.values.len() == self.rule.values() {
            self.values.rotate_left(1);
            self.values.pop();
        }
        let seconds = (total.at - before.at) as f64 / self.second;
        let requests = total.requests - before.requests;
        self.values.push(match self.rule.test {
            SteadyTest::Iops | SteadyTest::IopsSlope => requests / seconds,
            SteadyTest::Bandwidth | SteadyTest::BandwidthSlope => {
                (total.bytes - before.bytes) / seconds
            }
            SteadyTest::Latency | SteadyTest::LatencySlope if requests > 0.0 => {
                (total.latency - before.latency) / requests
            }
            SteadyTest::Latency | SteadyTest::LatencySlope => 0.0,
        });
        self.values.len() == self.rule.values() && self.rule.holds(&self.values)
    }

    /// Stamp at which there is something to look at.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    fn total(&self, at: u64, done: &PerOperation<Tally>) -> Total {
        let of_latency = matches!(
            self.rule.test,
            SteadyTest::Latency | SteadyTest::LatencySlope
        );
        let mut total = Total {
            at,
            ..Total::default()
        };
        let PerOperation {
            read,
            write,
            trim,
            // A sync that follows a write is part of its time.
            sync: _,
        } = done;
        for tally in [read, write, trim] {
            total.requests += tally.requests as f64;
            total.bytes += tally.bytes as f64;
            if of_latency {
                total.latency += tally.latency.mean() * tally.latency.len() as f64;
            }
        }
        total
    }
}
