//! Random offsets in memory that does not depend on the number of blocks: permutations, distributions that prefer some blocks, and
//! the order over a worker's files.

#[cfg(test)]
mod tests;

use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Offsets, below};
use crate::trial::{FileLayout, Others, TrialSpec};

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
    /// Zipf's law, with an exponent above 0 and at most 100.
    pub(super) fn zipf(blocks: u64, theta: f64) -> Self {
        Self::Zipf(Zipf::new(blocks as f64, theta).expect("checked with the pattern"))
    }

    /// Pareto's law, with a parameter above 0 and below 1.
    pub(super) fn pareto(blocks: u64, h: f64) -> Self {
        let power = h.ln() / (1.0 - h).ln();
        Self::Pareto { power, blocks }
    }

    /// The normal law, with the spread in percent of the blocks.
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

/// A key for one purpose, derived from a seed (output function of SplitMix64, Steele et al. 2014).
#[inline]
pub fn derive(seed: u64, purpose: u64) -> u64 {
    let mut z = seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The purpose of the key that draws the offsets in a file.
const OFFSETS: u64 = 3 << 48;

/// A worker's order over several files, each in turn. A pass visits every block of each file once: the first files have a block more
/// if they differ.
#[derive(Debug, Clone)]
pub(super) struct InFiles {
    files: Vec<Offsets>,
    slot: u64,
    /// Requests of a pass.
    blocks: u64,
    /// Number of the next request in its pass.
    next: u64,
}

impl InFiles {
    pub(super) fn new(spec: &TrialSpec, worker: u32) -> Self {
        let own = derive(spec.seed, u64::from(spec.number_of(worker)) + 1);
        let of_file = |(number, bytes): (u64, u64)| {
            let alone = TrialSpec {
                files: None,
                layout: FileLayout::Shared,
                region: bytes,
                threads: 1,
                others: Others::default(),
                seed: derive(own, OFFSETS | number),
                ..spec.clone()
            };
            Offsets::new(&alone, 0)
        };
        Self {
            files: (0..).zip(spec.private_files(worker)).map(of_file).collect(),
            slot: spec.file_slot(),
            blocks: spec.private_bytes(worker) / spec.bs,
            next: 0,
        }
    }

    /// Length of all slots, bytes.
    pub(super) fn slots(&self) -> u64 {
        self.slot.saturating_mul(self.files.len() as u64)
    }

    /// The next offset: of a request of one block, or of this length and the alignment of its start.
    #[inline(never)]
    pub(super) fn advance(&mut self, request: Option<(u64, u64)>) -> u64 {
        let number = self.next % self.files.len() as u64;
        self.next = (self.next + 1) % self.blocks;
        let file = &mut self.files[number as usize];
        let within = match request {
            None => file.next_offset(),
            Some((len, start)) => file.next_offset_of(len, start),
        };
        number * self.slot + within
    }
}

#[cfg(test)]
mod several_files_tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::trial::Pattern;

    proptest! {
        #[test]
        fn each_pass_visits_every_block_once(
            seed: u64, count in 1u32..40, threads in 1u32..4, more in 0u64..200,
            pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
        ) {
            let mut spec = TrialSpec {
                seed, pattern, threads,
                files: Some(count),
                layout: FileLayout::Private,
                ..TrialSpec::default()
            };
            spec.region = spec.smallest_region() + more * spec.bs;
            spec.check().expect("possible");
            let slot = spec.file_slot();
            for worker in 0..threads {
                let sizes = spec.private_files(worker);
                let blocks = sizes.iter().sum::<u64>() / spec.bs;
                prop_assert_eq!(blocks * spec.bs, spec.private_bytes(worker));
                let mut offsets = Offsets::new(&spec, worker);
                let seen: Vec<_> = (0..2 * blocks)
                    .map(|_| offsets.next_offset())
                    .map(|offset| (offset / slot, offset % slot))
                    .collect();
                for pass in seen.chunks(blocks as usize) {
                    let distinct: BTreeSet<_> = pass.iter().collect();
                    prop_assert_eq!(distinct.len() as u64, blocks);
                    for (turn, (file, within)) in (0..).zip(pass) {
                        prop_assert_eq!(*file, turn % u64::from(count));
                        prop_assert!(*within < sizes[*file as usize]);
                    }
                }
            }
        }
    }
}
