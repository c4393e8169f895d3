//! Draws that prefer some blocks, which are scattered over the region.

use rand_core::Rng;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Permutation, below};

/// Uniform draws whose mean is nearly normal.
const DRAWS: u64 = 12;

/// Frequency of each rank, with ranks beginning at 0.
#[derive(Debug, Clone)]
pub(super) enum Law {
    /// Rejection-inversion (see docs/METHODS.md).
    Zipf(Zipf<f64>),
    /// A uniform draw from 0 to 1 to this power, times the number of blocks (fio, lib/zipf.c).
    Pareto { power: f64, blocks: u64 },
    /// The mean of [`DRAWS`] uniform draws, and one of `spread` blocks around it (fio, lib/gauss.c).
    Normal { spread: u64, blocks: u64 },
}

impl Law {
    /// Zipf's, with an exponent above 0 and at most 100.
    pub(super) fn zipf(blocks: u64, theta: f64) -> Self {
        Self::Zipf(Zipf::new(blocks as f64, theta).expect("checked with the pattern"))
    }

    /// Pareto's, with a parameter above 0 and below 1.
    pub(super) fn pareto(blocks: u64, h: f64) -> Self {
        let power = h.ln() / (1.0 - h).ln();
        Self::Pareto { power, blocks }
    }

    /// The normal one, with the spread in percent of the blocks.
    pub(super) fn normal(blocks: u64, percent: f64) -> Self {
        let spread = (blocks as f64 * percent / 100.0).ceil() as u64;
        Self::Normal {
            spread: spread.min(blocks / 2),
            blocks,
        }
    }

    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Self::Zipf(zipf) => (zipf.sample(rng) as u64).max(1) - 1,
            Self::Pareto { power, blocks } => {
                // 53 bits are all that a float has.
                let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                ((blocks - 1) as f64 * uniform.powf(*power)) as u64
            }
            Self::Normal { spread, blocks } => {
                let sum: u128 = (0..DRAWS).map(|_| u128::from(below(rng, *blocks))).sum();
                let mean = (sum / u128::from(DRAWS)) as u64;
                (mean + below(rng, (*spread).max(1))).saturating_sub(spread / 2)
            }
        }
    }
}

/// Draws by a law, each rank a block of its own somewhere in the region.
#[derive(Debug, Clone)]
pub(super) struct Skewed {
    law: Law,
    rng: Xoshiro256PlusPlus,
    scatter: Permutation,
}

impl Skewed {
    pub(super) fn new(law: Law, rng: Xoshiro256PlusPlus, scatter: Permutation) -> Self {
        Self { law, rng, scatter }
    }

    /// The next block.
    pub(super) fn draw(&mut self) -> u64 {
        let rank = self.law.draw(&mut self.rng);
        self.scatter.apply(rank.min(self.scatter.blocks - 1))
    }
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    const BLOCKS: u64 = 1 << 20;
    const COUNT: usize = 100_000;

    fn ranks(law: &Law) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let rank = |_| law.draw(&mut rng) as f64 / BLOCKS as f64;
        (0..COUNT).map(rank).collect()
    }

    #[test]
    fn pareto_sends_most_requests_to_its_hot_blocks() {
        for h in [0.1, 0.2, 0.4] {
            let ranks = ranks(&Law::pareto(BLOCKS, h));
            let within = ranks.iter().filter(|rank| **rank < h).count() as f64 / COUNT as f64;
            // Six standard deviations of the binomial.
            let bound = 6.0 * (h * (1.0 - h) / COUNT as f64).sqrt();
            assert!((within - (1.0 - h)).abs() < bound, "{within} for {h}");
        }
    }

    #[test]
    fn the_normal_law_has_its_expected_variance() {
        for percent in [1.0, 20.0] {
            let ranks = ranks(&Law::normal(BLOCKS, percent));
            let mean = ranks.iter().sum::<f64>() / COUNT as f64;
            let variance =
                ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>() / COUNT as f64;
            // Irwin-Hall over 12 draws, and a uniform draw.
            let expected = 1.0 / 144.0 + (percent / 100.0_f64).powi(2) / 12.0;
            assert!((mean - 0.5).abs() < 0.002, "{mean}");
            assert!(
                (variance / expected - 1.0).abs() < 0.05,
                "{variance} {expected}"
            );
            assert!(ranks.iter().all(|rank| (0.0..1.0).contains(rank)));
        }
    }
}
