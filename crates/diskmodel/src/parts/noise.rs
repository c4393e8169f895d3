//! Times that vary by chance.
//!
//! The clock of the inner model runs faster or slower than the host's. Each step of a request stretches by the
//! same factor, and so does the wait for other requests. Noise added to completions instead would vanish in a
//! queue: the next request would start at its old time.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::definition::parts::NoiseDefinition;

use super::{OnOwnClock, earlier, unit};
use crate::model::{Completion, Model, Ns, Request, from_ms};

/// Parts of a factor: factors are whole numbers of them. Times are then whole numbers, too, and do not depend
/// on how a machine rounds.
const ONE: u128 = 1 << 20;
/// Least and greatest factor.
const FACTORS: [f64; 2] = [1e-3, 1e3];

/// Times that vary by chance in a model.
pub struct Noise {
    inner: OnOwnClock,
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
    pub fn new(definition: &NoiseDefinition, seed: u64, inner: Box<dyn Model>) -> Self {
        let period = from_ms(definition.drift_ms).max(1);
        let mut noise = Self {
            inner: OnOwnClock::new(inner),
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
    fn run_within(&mut self, until: Ns) {
        let clock = self.clock;
        self.inner
            .run(clock.to_inside(until), |at| clock.to_host(at));
    }

    fn run(&mut self, until: Ns) {
        while let Some(end) = self.period_end.filter(|&end| end <= until) {
            self.run_within(end);
            self.of_period = self.drift_sigma * normal(&mut self.random);
            self.pass(end);
            self.period_end = end.checked_add(self.period);
        }
        self.run_within(until);
    }
}

impl Model for Noise {
    fn capacity(&self) -> u64 {
        self.inner.model.capacity()
    }

    fn submit(&mut self, now: Ns, tag: u64, request: &Request) {
        if self.inner.refuses(now, tag, request) {
            return;
        }
        self.run(now);
        if self.sigma > 0.0 {
            self.of_request = self.sigma * normal(&mut self.random);
        }
        self.pass(now);
        self.inner.model.submit(self.clock.inside, tag, request);
    }

    fn next_event(&self) -> Option<Ns> {
        // The factor changes at the end of a period: events after it are not known before.
        let inner = self
            .inner
            .model
            .next_event()
            .map(|at| self.clock.to_host(at));
        let inner = inner.map(|at| self.period_end.map_or(at, |end| at.min(end)));
        earlier(inner, self.inner.done.next())
    }

    fn advance(&mut self, until: Ns, out: &mut Vec<Completion>) {
        self.run(until);
        self.inner.done.take(until, out);
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
