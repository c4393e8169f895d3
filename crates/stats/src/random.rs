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

    #[test]
    fn every_index_is_drawn_about_equally_often() {
        let mut draws = Resampler::new(1);
        let mut counts = [0_i32; 7];
        for _ in 0..70_000 {
            counts[draws.index(7)] += 1;
        }
        // Six standard deviations of the binomial.
        assert!(
            counts.iter().all(|c| (c - 10_000).abs() < 560),
            "{counts:?}"
        );
    }

    #[test]
    fn a_resample_holds_values_of_the_data_only() {
        let mut into = vec![9.0; 100];
        Resampler::new(7).resample(&[1.0, 2.0, 3.0], &mut into);
        assert_eq!(into.len(), 3);
        assert!(into.iter().all(|x| [1.0, 2.0, 3.0].contains(x)));
        Resampler::new(7).resample(&[], &mut into);
        assert!(into.is_empty());
    }
}
