//! A random order of any number of blocks without a list of them.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A keyed permutation of `0..blocks` in constant memory.
///
/// Rounds of invertible steps on the next power of two (add a key, multiply by an odd key, fold
/// the high half down), followed by cycle walking: a value outside is permuted again until it
/// falls inside, which keeps the map a bijection and takes fewer than two rounds on average.
/// Source: A. Kensler, "Correlated Multi-Jittered Sampling", Pixar TM 13-01 (2013), section 3;
/// cycle walking: J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains" (2002).
#[derive(Debug, Clone)]
pub struct Permutation {
    pub(super) blocks: u64,
    mask: u64,
    shift: u32,
    add: [u64; ROUNDS],
    multiply: [u64; ROUNDS],
}

const ROUNDS: usize = 4;

impl Permutation {
    /// The permutation of `0..blocks` for `key`; `blocks` is at least 1.
    pub fn new(blocks: u64, key: u64) -> Self {
        assert!(blocks > 0, "a permutation of nothing");
        let mask = blocks.next_power_of_two() - 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(key);
        Self {
            blocks,
            mask,
            shift: mask.count_ones().div_ceil(2).max(1),
            add: std::array::from_fn(|_| rng.next_u64()),
            multiply: std::array::from_fn(|_| rng.next_u64() | 1),
        }
    }

    /// The image of `index`, which must be below the number of blocks.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for round in 0..ROUNDS {
                x = x
                    .wrapping_add(self.add[round])
                    .wrapping_mul(self.multiply[round])
                    & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.blocks {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The inverse, step by step; that it exists for any size shows that every block occurs exactly once.
    fn invert(p: &Permutation, value: u64) -> u64 {
        let inverse_of = |odd: u64| {
            // Newton's iteration for the inverse modulo 2^64.
            (0..6).fold(odd, |x, _| {
                x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)))
            })
        };
        let mut x = value;
        loop {
            for round in (0..ROUNDS).rev() {
                let (mut unfolded, mut shift) = (x, p.shift);
                while shift < 64 {
                    unfolded = x ^ (unfolded >> p.shift);
                    shift += p.shift;
                }
                x = unfolded
                    .wrapping_mul(inverse_of(p.multiply[round]))
                    .wrapping_sub(p.add[round])
                    & p.mask;
            }
            if x < p.blocks {
                return x;
            }
        }
    }

    proptest! {
        #[test]
        fn permutation_visits_each_block_once(blocks in 1u64..5_000, key: u64) {
            let p = Permutation::new(blocks, key);
            let seen: HashSet<u64> = (0..blocks).map(|i| p.apply(i)).collect();
            prop_assert_eq!(seen.len() as u64, blocks);
            prop_assert!(seen.iter().all(|b| *b < blocks));
        }

        #[test]
        fn permutation_is_a_bijection_up_to_2_48(
            bits in 1u32..=48, below: u64, index: u64, key: u64
        ) {
            let blocks = (1u64 << bits) - below % (1u64 << (bits - 1)).max(1);
            let index = index % blocks;
            let p = Permutation::new(blocks, key);
            let image = p.apply(index);
            prop_assert!(image < blocks);
            prop_assert_eq!(invert(&p, image), index);
        }
    }
}
