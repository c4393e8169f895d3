//! Seeded resampling with replacement.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws resamples; equal seeds draw equal ones, on every machine.
///
/// Source: xoshiro256++ of Blackman and Vigna, "Scrambled linear pseudorandom number
/// generators", ACM TOMS 47 (2021), its state filled from the seed by SplitMix64.
#[derive(Debug, Clone)]
pub struct Resampler {
    rng: Xoshiro256PlusPlus,
}

impl Resampler {
    /// A stream of draws, determined by the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// An index below `n`; 0 when `n` is 0.
    ///
    /// The high word of `draw * n`: Lemire, ACM TOMACS 29 (2019). Without his rejection step the
    /// bias is below `n / 2^64`.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        ((u128::from(self.rng.next_u64()) * n as u128) >> 64) as usize
    }

    /// Replaces `into` by as many draws from `from`, with replacement, as `from` has values.
    pub fn resample(&mut self, from: &[f64], into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..from.len()).map(|_| from[self.index(from.len())]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // From the Python implementation of the generator in tests/all/reference_bootstrap.py.
        let mut draws = Resampler::new(42);
        let indexes: Vec<usize> = (0..12).map(|_| draws.index(1000)).collect();
        assert_eq!(
            indexes,
            [814, 318, 983, 701, 793, 588, 125, 605, 207, 933, 559, 850]
        );
    }
}
