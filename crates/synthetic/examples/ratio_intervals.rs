//! Lowest coverage of the interval of a ratio of medians over shapes and numbers of trials, and its power:
//! docs/METHODS.md, "Median, ratio, equivalence". A test computes a tenth of it.
//!
//! `cargo run --release -p iolab-synthetic --example ratio_intervals [PAIRS]`

#![allow(clippy::print_stdout, reason = "it prints a table")]

use iolab_analysis::claim::ratio_of_samples;
use iolab_synthetic::Noise;
use iolab_synthetic::ratio_coverage::{FAMILIES, Shapes, least_coverage, share_apart};

fn interval(base: &[f64], new: &[f64], confidence: f64) -> Option<(f64, f64)> {
    ratio_of_samples(base, new, confidence)?.interval
}

fn main() {
    let pairs = std::env::args().nth(1);
    let pairs: usize = pairs.map_or(20_000, |n| n.parse().expect("a number of pairs"));
    let trials: Vec<usize> = (6..=30).collect();
    for family in FAMILIES {
        let least = least_coverage(interval, family, &trials, pairs).expect("trials enough");
        println!(
            "family of {family}: at least {:.2} % (standard error {:.2}), with {} trials, {:?}",
            100.0 * least.coverage,
            100.0 * least.error,
            least.trials,
            least.shapes,
        );
    }
    let noise = Noise::Lognormal { sigma: 0.1 };
    let shapes = Shapes {
        base: noise,
        new: noise,
    };
    for (trials, family) in [(6, 1), (8, 1), (8, 4), (10, 1), (12, 12)] {
        let power =
            share_apart(interval, shapes, 1.3, (trials, family), pairs).expect("trials enough");
        println!(
            "+30 % at a log spread of 10 %, {trials} trials, family of {family}: {:.1} % shown",
            100.0 * power
        );
    }
}
