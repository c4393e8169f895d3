//! Times that vary by chance.
//!
//! The clock of the inner model runs faster or slower than the host's. Each step of a request stretches by the
//! same factor, and so does the wait for other requests. Noise added to completions instead would vanish in a
//! queue: the next request would start at its old time.
//!
//! Rates with bursts, as cloud volumes have them.
//!
//! A bucket of credits fills at the sustained rate up to its size, and each unit of work takes a credit. With credits, the rate
//! is the burst rate; without, the sustained rate.
//!
//! Times at which a model stands still, as for housekeeping, a reset of its link, or a host that does not run.
//!
//! The clock of the inner model stops during a stall: it lags the host's by the length of all stalls that have
//! begun.

use std::collections::VecDeque;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::{earlier, from_ms};
use super::{Inner, Part, unit};
use crate::definition::parts::{LimitDefinition, NoiseDefinition, Rate, StallDefinition};
use iolab_workload::virtual_disk::{Ns, Op, Request};

/// Parts of a factor: factors are whole numbers of them. Times are then whole numbers, too, and do not depend
/// on how a machine rounds.
const ONE: u128 = 1 << 20;

/// Least and greatest factor.
const FACTORS: [f64; 2] = [1e-3, 1e3];

/// Times that vary by chance in a model.
pub(crate) struct Noise {
    sigma: f64,
    drift_sigma: f64,
    period: Ns,
    random: Xoshiro256PlusPlus,
    /// Logarithms of both factors.
    of_request: f64,
    of_period: f64,
    /// End of the period of the present drift factor; `None` without drift, or when that factor holds to the
    /// end of time.
    period_end: Option<Ns>,
    clock: Clock,
}

/// Pace of the inner model's clock against the host's.
#[derive(Clone, Copy)]
struct Clock {
    /// Host time and inner time from which on the present factor holds; the factor is in parts of `ONE`.
    host: Ns,
    inside: Ns,
    factor: u128,
}

impl Clock {
    /// The inner time at a host time that is not before the present factor.
    fn to_inside(self, host: Ns) -> Ns {
        let passed = u128::from(host - self.host) * ONE / self.factor;
        saturated(u128::from(self.inside) + passed)
    }

    /// The first host time at which an inner time has come.
    fn to_host(self, inside: Ns) -> Ns {
        let passed = u128::from(inside.saturating_sub(self.inside)) * self.factor;
        saturated(u128::from(self.host) + passed.div_ceil(ONE))
    }
}

impl Noise {
    /// Lets the times of a model vary as a definition says.
    pub(crate) fn new(definition: &NoiseDefinition, seed: u64) -> Self {
        let period = from_ms(definition.drift_ms).max(1);
        let mut noise = Self {
            sigma: definition.sigma,
            drift_sigma: definition.drift_sigma,
            period,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            of_request: 0.0,
            of_period: 0.0,
            period_end: (definition.drift_sigma > 0.0).then_some(period),
            clock: Clock {
                host: 0,
                inside: 0,
                factor: ONE,
            },
        };
        if noise.period_end.is_some() {
            noise.of_period = noise.drift_sigma * normal(&mut noise.random);
        }
        noise
    }

    /// Lets time pass at the present factor up to `until`, then applies the factor of the two logarithms.
    fn pass(&mut self, until: Ns) {
        let factor = (self.of_request + self.of_period)
            .exp()
            .clamp(FACTORS[0], FACTORS[1]);
        self.clock = Clock {
            host: until,
            inside: self.clock.to_inside(until),
            factor: (factor * ONE as f64).round() as u128,
        };
    }

    /// Advances the inner model to a host time within the present period.
    fn run_within(&self, inner: &mut Inner, until: Ns) {
        let clock = self.clock;
        inner.run(clock.to_inside(until), |at| clock.to_host(at));
    }
}

impl Part for Noise {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        self.run(inner, now);
        if self.sigma > 0.0 {
            self.of_request = self.sigma * normal(&mut self.random);
        }
        self.pass(now);
        inner.model.submit(self.clock.inside, tag, request);
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        while let Some(end) = self.period_end.filter(|&end| end <= until) {
            self.run_within(inner, end);
            self.of_period = self.drift_sigma * normal(&mut self.random);
            self.pass(end);
            self.period_end = end.checked_add(self.period);
        }
        self.run_within(inner, until);
    }

    fn next_event(&self, inner: &Inner) -> Option<Ns> {
        // The factor changes at the end of a period: events after it are not known before.
        let next = inner.model.next_event().map(|at| self.clock.to_host(at));
        next.map(|at| self.period_end.map_or(at, |end| at.min(end)))
    }
}

fn saturated(time: u128) -> Ns {
    Ns::try_from(time).unwrap_or(Ns::MAX)
}

/// A number of the standard normal distribution (Box and Muller, Annals of Mathematical Statistics 29(2), 1958).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (radius, angle) = (unit(random), unit(random));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

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

/// Limits rate and bursts of a model; requests are admitted in order of arrival.
pub(crate) struct RateLimit {
    requests: Option<Bucket>,
    request_bytes: u64,
    bytes: Option<Bucket>,
    waiting: VecDeque<(Ns, u64, Request)>,
    /// The latest admission; later requests are not admitted before.
    last: Ns,
}

impl RateLimit {
    /// Adds the rates of a definition.
    ///
    /// # Errors
    ///
    /// A rate of zero, or a burst rate below the sustained one.
    pub(crate) fn new(definition: &LimitDefinition) -> Result<Self, String> {
        Ok(Self {
            requests: definition.requests.as_ref().map(Bucket::new).transpose()?,
            request_bytes: definition.request_bytes,
            bytes: definition.bytes.as_ref().map(Bucket::new).transpose()?,
            waiting: VecDeque::new(),
            last: 0,
        })
    }

    /// Time at which the next request is admitted.
    fn first(&self) -> Option<Ns> {
        self.waiting.front().map(|waiting| waiting.0)
    }
}

impl Part for RateLimit {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        self.run(inner, now);
        let mut at = now.max(self.last);
        if matches!(request.op, Op::Read | Op::Write) {
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
            inner.model.submit(now, tag, request);
        } else {
            self.waiting.push_back((at, tag, *request));
        }
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        while let Some(at) = self.next_event(inner).filter(|&at| at <= until) {
            inner.run(at, |at| at);
            if self.first() == Some(at)
                && let Some((_, tag, request)) = self.waiting.pop_front()
            {
                inner.model.submit(at, tag, &request);
            }
        }
    }

    fn next_event(&self, inner: &Inner) -> Option<Ns> {
        earlier(self.first(), inner.model.next_event())
    }
}

/// Stalls of a model.
pub(crate) struct Stall {
    length: Ns,
    every: u64,
    requests: u64,
    mean: Option<f64>,
    random: Xoshiro256PlusPlus,
    /// When the next stall by chance begins.
    next: Option<Ns>,
    /// When the stall ends that began last.
    end: Ns,
    /// Length of all stalls that have begun.
    lost: Ns,
}

impl Stall {
    /// Lets a model stand still as a definition says.
    pub(crate) fn new(definition: &StallDefinition, seed: u64) -> Self {
        let mut stall = Self {
            length: from_ms(definition.stall_ms),
            every: definition.every,
            requests: 0,
            mean: definition.mean_ms.map(|ms| from_ms(ms) as f64),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            next: None,
            end: 0,
            lost: 0,
        };
        stall.draw();
        stall
    }

    /// Sets the time of the next stall by chance, after the end of the last one; `None` where time ends before.
    fn draw(&mut self) {
        let random = &mut self.random;
        self.next = self.mean.and_then(|mean| {
            let pause = -mean * unit(random).ln();
            self.end.checked_add(pause.round() as Ns)
        });
    }

    /// Starts a stall, or makes the present one longer.
    fn begin(&mut self, at: Ns) {
        self.end = self.end.max(at).saturating_add(self.length);
        self.lost = self.lost.saturating_add(self.length);
        self.draw();
    }

    /// Advances the inner model to a time before which no stall begins.
    fn run_within(&self, inner: &mut Inner, until: Ns) {
        if until >= self.end {
            let lost = self.lost;
            inner.run(until - lost, |at| at.saturating_add(lost));
        }
    }
}

impl Part for Stall {
    fn submit(&mut self, inner: &mut Inner, now: Ns, tag: u64, request: &Request) {
        self.run(inner, now);
        self.requests += 1;
        if self.every > 0 && self.requests.is_multiple_of(self.every) {
            self.begin(now);
        }
        let at = now.max(self.end) - self.lost;
        inner.model.submit(at, tag, request);
    }

    fn run(&mut self, inner: &mut Inner, until: Ns) {
        while let Some(at) = self.next.filter(|&at| at <= until) {
            self.run_within(inner, at);
            self.begin(at);
        }
        self.run_within(inner, until);
    }

    fn next_event(&self, inner: &Inner) -> Option<Ns> {
        // A stall that begins before the next event delays that event.
        let next = inner.model.next_event();
        let next = next.map(|at| at.saturating_add(self.lost));
        next.map(|at| self.next.map_or(at, |stall| at.min(stall)))
    }
}
