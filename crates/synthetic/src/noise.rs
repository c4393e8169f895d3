//! Scatter of a cell's trials, as factors with median 1.

use std::f64::consts::{LN_2, SQRT_2};

use rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1, StandardNormal, StandardUniform};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Distribution of independent trials, each with a median of exactly 1 (a logarithm of 0).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// All trials are the same.
    None,
    /// Normal with this coefficient of variation, below 0.3.
    Normal {
        /// Standard deviation over the mean.
        cv: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Exponential.
    Exponential,
    /// Each trial belongs to one of two groups, at random. With equal shares the median is midway between the
    /// two, without any values there; otherwise it is at the inner edge of the larger group.
    TwoGroups {
        /// Share of the upper group.
        upper: f64,
        /// Upper group over lower group.
        ratio: f64,
        /// Standard deviation of the logarithm within each group.
        sigma: f64,
    },
    /// Some trials are slower by a fixed factor, the others are lognormal.
    Stalls {
        /// Share of the slow trials, below one half.
        share: f64,
        /// Throughput with a stall over throughput without.
        ratio: f64,
        /// Standard deviation of the logarithm of the others.
        sigma: f64,
    },
}

impl Noise {
    /// Probability that the logarithm of a trial's factor is at most `x`, before centring on the median.
    fn raw_share_below(&self, x: f64) -> f64 {
        let normal = |x: f64, sigma: f64| libm::erfc(-x / sigma / SQRT_2) / 2.0;
        match *self {
            Noise::None => f64::from(u8::from(x >= 0.0)),
            Noise::Normal { cv } => normal(x.exp() - 1.0, cv),
            Noise::Lognormal { sigma } => normal(x, sigma),
            Noise::Exponential => 1.0 - (-LN_2 * x.exp()).exp(),
            Noise::TwoGroups {
                upper,
                ratio,
                sigma,
            } => {
                let half = ratio.ln() / 2.0;
                upper * normal(x - half, sigma) + (1.0 - upper) * normal(x + half, sigma)
            }
            Noise::Stalls {
                share,
                ratio,
                sigma,
            } => (1.0 - share) * normal(x, sigma) + share * normal(x - ratio.ln(), sigma),
        }
    }

    /// Median of the logarithm before centring.
    fn centre(&self) -> f64 {
        match *self {
            Noise::Stalls { sigma, .. } => {
                // More than half of the values are without stalls.
                root(-40.0 * sigma, 40.0 * sigma, |x| {
                    self.raw_share_below(x) - 0.5
                })
            }
            Noise::TwoGroups { upper, ratio, .. } if upper != 0.5 => {
                let reach = ratio.ln().abs();
                root(-reach, reach, |x| self.raw_share_below(x) - 0.5)
            }
            _ => 0.0,
        }
    }

    /// Logarithm of the median of this scatter times independent lognormal scatter with the standard deviation
    /// `sigma` of the logarithm; 0 if one of the two is zero or the distribution is symmetric.
    pub fn log_median_with(&self, sigma: f64) -> f64 {
        // The product of lognormal factors has a median of 1.
        if sigma == 0.0 || matches!(self, Noise::None | Noise::Lognormal { .. }) {
            return 0.0;
        }
        let centre = self.centre();
        // Distribution of the sum: the noise's distribution, averaged over the normal one.
        const STEPS: i32 = 200;
        let share_below = |x: f64| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for step in -STEPS..=STEPS {
                let z = f64::from(step) * 6.0 / f64::from(STEPS);
                let weight = (-z * z / 2.0).exp();
                sum += weight * self.raw_share_below(x + centre - sigma * z);
                weights += weight;
            }
            sum / weights
        };
        // An upper bound for all distributions here.
        let reach = 6.0 * sigma + 1.0;
        root(-reach, reach, |x| share_below(x) - 0.5)
    }

    /// Trials with this scatter, determined by the seed.
    pub fn draws(self, seed: u64) -> Draws {
        Draws {
            noise: self,
            centre: self.centre(),
            random: Random::new(seed),
        }
    }
}

/// Zero of an increasing function between two points.
fn root(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if of(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// A sequence of trials with one scatter.
#[derive(Debug, Clone)]
pub struct Draws {
    noise: Noise,
    centre: f64,
    random: Random,
}

impl Draws {
    /// Other trials with the same scatter.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            ..*self
        }
    }

    /// The logarithm of the factor of the next trial.
    pub fn next_log(&mut self) -> f64 {
        let random = &mut self.random;
        let raw = match self.noise {
            Noise::None => 0.0,
            Noise::Normal { cv } => (1.0 + cv * random.normal()).max(cv / 100.0).ln(),
            Noise::Lognormal { sigma } => sigma * random.normal(),
            Noise::Exponential => (random.exponential() / LN_2).ln(),
            Noise::TwoGroups {
                upper,
                ratio,
                sigma,
            } => {
                let side = if random.happens(upper) { 0.5 } else { -0.5 };
                side * ratio.ln() + sigma * random.normal()
            }
            Noise::Stalls {
                share,
                ratio,
                sigma,
            } => {
                let stall = if random.happens(share) {
                    ratio.ln()
                } else {
                    0.0
                };
                stall + sigma * random.normal()
            }
        };
        raw - self.centre
    }
}

/// Random numbers determined by the seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }

    fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.0)
    }

    pub(crate) fn happens(&mut self, share: f64) -> bool {
        let place: f64 = StandardUniform.sample(&mut self.0);
        place < share
    }
}
