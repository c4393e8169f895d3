//! Rates with bursts, as cloud volumes have them.
//!
//! A bucket of credits fills at the sustained rate up to its size, and each unit of work takes a credit. With credits, the rate
//! is the burst rate; without, the sustained rate.

use std::collections::VecDeque;

use crate::definition::parts::{LimitDefinition, Rate};

use super::earlier;
use crate::model::{Completion, Model, Ns, Op, Request};

/// The state of a rate.
#[derive(Clone, Debug)]
struct Bucket {
    /// Units per nanosecond.
    sustained: f64,
    burst: f64,
    size: f64,
    level: f64,
    /// The time for which `level` is valid.
    at: Ns,
    /// When the burst rate admits the next unit.
    next: f64,
}

impl Bucket {
    fn new(rate: &Rate) -> Result<Self, String> {
        let burst = rate.burst.unwrap_or(rate.sustained);
        if !(rate.sustained > 0.0 && burst >= rate.sustained && rate.credits >= 0.0) {
            return Err(format!(
                "a rate of {} per second with bursts of {burst}: no rate",
                rate.sustained
            ));
        }
        Ok(Self {
            sustained: rate.sustained / 1e9,
            burst: burst / 1e9,
            size: rate.credits,
            level: rate.credits,
            at: 0,
            next: 0.0,
        })
    }

    /// The time at which `units` units are admitted, `now` or later.
    fn admission(&self, now: Ns, units: f64) -> Ns {
        let paced = self.next.ceil() as Ns;
        // Work larger than the bucket waits for a full one.
        let missing = units.min(self.size) - self.level;
        let filled = if missing > 0.0 {
            self.at
                .saturating_add((missing / self.sustained).ceil() as Ns)
        } else {
            0
        };
        now.max(paced).max(filled)
    }

    fn pass(&mut self, at: Ns, units: f64) {
        self.level = (self.level + (at - self.at) as f64 * self.sustained).min(self.size) - units;
        self.at = at;
        self.next = self.next.max(at as f64) + units / self.burst;
    }
}

/// Limits rate and bursts of another model; requests are admitted in order of arrival.
pub struct RateLimit {
    inner: Box<dyn Model>,
    requests: Option<Bucket>,
    request_bytes: u64,
    bytes: Option<Bucket>,
    waiting: VecDeque<(Ns, u64, Request)>,
    /// The latest admission; later requests are not admitted before.
    last: Ns,
    finished: Vec<Completion>,
}

impl RateLimit {
    /// Adds the rates of a definition to a model.
    ///
    /// # Errors
    ///
    /// A rate of zero, or a burst rate below the sustained one.
    pub fn new(definition: &LimitDefinition, inner: Box<dyn Model>) -> Result<Self, String> {
        Ok(Self {
            inner,
            requests: definition.requests.as_ref().map(Bucket::new).transpose()?,
            request_bytes: definition.request_bytes,
            bytes: definition.bytes.as_ref().map(Bucket::new).transpose()?,
            waiting: VecDeque::new(),
            last: 0,
            finished: Vec::new(),
        })
    }

    fn run(&mut self, until: Ns) {
        loop {
            let first = self.waiting.front().map(|waiting| waiting.0);
            let Some(at) = earlier(first, self.inner.next_event()).filter(|&at| at <= until) else {
                return;
            };
            self.inner.advance(at, &mut self.finished);
            if first == Some(at)
                && let Some((_, tag, request)) = self.waiting.pop_front()
            {
                self.inner.submit(at, tag, &request);
            }
        }
    }
}

impl Model for RateLimit {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        self.run(now);
        let mut at = now.max(self.last);
        if matches!(request.op, Op::Read | Op::Write) && request.fits(self.capacity()) {
            let count = if self.request_bytes == 0 {
                1
            } else {
                request.len.div_ceil(self.request_bytes).max(1)
            };
            let units = [count as f64, request.len as f64];
            let before_last = count - 1;
            let before_last = [before_last, before_last * self.request_bytes];
            let mut buckets = [self.requests.as_mut(), self.bytes.as_mut()];
            for (bucket, units) in buckets.iter().zip(units) {
                at = bucket
                    .as_ref()
                    .map_or(at, |bucket| bucket.admission(at, units));
            }
            let mut whole = at;
            for ((bucket, units), before) in buckets.iter_mut().zip(units).zip(before_last) {
                if let Some(bucket) = bucket {
                    bucket.pass(at, units);
                    // Its pieces follow each other at the burst rate.
                    let pieces = (before as f64 / bucket.burst).ceil() as Ns;
                    whole = whole.max(at.saturating_add(pieces));
                }
            }
            at = whole;
        }
        self.last = at;
        if at == now && self.waiting.is_empty() {
            self.inner.submit(now, tag, request);
        } else {
            self.waiting.push_back((at, tag, *request));
        }
    }

    fn next_event(&self) -> Option<Ns> {
        let done = self.finished.first().map(|completion| completion.finished);
        earlier(
            done,
            earlier(
                self.waiting.front().map(|waiting| waiting.0),
                self.inner.next_event(),
            ),
        )
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        out.append(&mut self.finished);
    }
}
