use proptest::prelude::*;
use rand_core::SeedableRng;

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
        let variance = ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>() / COUNT as f64;
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
