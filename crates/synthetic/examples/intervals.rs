//! Coverage of intervals of a ratio, for whole families at once: for two cells measured in the same
//! blocks (`ratio_intervals` has separate runs). Prints the tables of docs/VALIDATION.md, "Intervals".
//!
//! `cargo run --release -p iolab-synthetic --example intervals [SAMPLES]`

#![allow(clippy::print_stdout, reason = "it prints tables")]

use std::sync::atomic::{AtomicUsize, Ordering};

use iolab_stats::{Interval, mean_interval, median_interval};
use iolab_synthetic::Noise;

/// Sizes of families of comparisons; each interval has the level 0.05 divided by the size.
const FAMILIES: [usize; 4] = [1, 4, 12, 40];
/// Numbers of trials in each of the two samples.
const TRIALS: [usize; 10] = [5, 6, 8, 9, 10, 11, 12, 15, 20, 30];

struct Method {
    name: &'static str,
    /// Interval by the logarithms of both samples, at a confidence.
    interval: fn(&[f64], &[f64], f64) -> Option<Interval>,
}

/// Interval methods: the one in use, and a rejected one.
const METHODS: [Method; 2] = [
    Method {
        name: "median, exact",
        interval: |a, b, c| median_interval(&differences(a, b), c),
    },
    Method {
        name: "t",
        interval: |a, b, c| mean_interval(&differences(a, b), c),
    },
];

fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| b - a).collect()
}

/// Scatter of both samples.
struct Shape {
    base: Noise,
    new: Noise,
}

const NARROW: Noise = Noise::Lognormal { sigma: 0.05 };
const STALLS: Noise = Noise::Stalls {
    share: 0.1,
    ratio: 0.4,
    sigma: 0.05,
};

/// Two groups a fifth apart; the upper one has this share.
const fn groups(upper: f64) -> Noise {
    Noise::TwoGroups {
        upper,
        ratio: 1.2,
        sigma: 0.005,
    }
}

const fn alike(noise: Noise) -> Shape {
    Shape {
        base: noise,
        new: noise,
    }
}

/// Shapes shared by both samples, apart from their spreads.
const SHARED: [Shape; 7] = [
    alike(Noise::Normal { cv: 0.1 }),
    alike(Noise::Lognormal { sigma: 0.5 }),
    Shape {
        base: Noise::Lognormal { sigma: 0.1 },
        new: Noise::Lognormal { sigma: 0.5 },
    },
    alike(Noise::Exponential),
    alike(groups(0.5)),
    alike(groups(0.48)),
    alike(STALLS),
];

/// Shapes of one sample only.
const ONE_SIDED: [Shape; 3] = [
    Shape {
        base: NARROW,
        new: groups(0.5),
    },
    Shape {
        base: NARROW,
        new: groups(0.48),
    },
    Shape {
        base: NARROW,
        new: STALLS,
    },
];

/// Result of one method at one shape and number of trials, by family.
#[derive(Clone, Copy, Default)]
struct Found {
    missed: [usize; FAMILIES.len()],
    has_intervals: [bool; FAMILIES.len()],
}

fn simulate(shape: &Shape, n: usize, samples: usize) -> [Found; METHODS.len()] {
    let seed = n as u64 * 2;
    let (mut base, mut new) = (shape.base.draws(seed), shape.new.draws(seed + 1));
    let mut found = [Found::default(); METHODS.len()];
    for _ in 0..samples {
        let a: Vec<f64> = (0..n).map(|_| base.next_log()).collect();
        let b: Vec<f64> = (0..n).map(|_| new.next_log()).collect();
        for (own, method) in found.iter_mut().zip(&METHODS) {
            for (family, size) in FAMILIES.iter().enumerate() {
                let interval = (method.interval)(&a, &b, 1.0 - 0.05 / *size as f64);
                own.has_intervals[family] |= interval.is_some();
                let is_missed = interval.is_some_and(|i| 0.0 < i.low || i.high < 0.0);
                own.missed[family] += usize::from(is_missed);
            }
        }
    }
    found
}

fn main() {
    let samples = std::env::args().nth(1);
    let samples: usize = samples.map_or(100_000, |n| n.parse().expect("a number of samples"));
    let shapes: Vec<&Shape> = SHARED.iter().chain(&ONE_SIDED).collect();
    let jobs = shapes.len() * TRIALS.len();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return own;
            }
            let (shape, n) = (shapes[job / TRIALS.len()], TRIALS[job % TRIALS.len()]);
            own.push((job, simulate(shape, n, samples)));
        }
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"))
            .collect()
    });
    all.sort_by_key(|(job, _)| *job);
    let of = |shape: usize, n: usize| &all[shape * TRIALS.len() + n].1;

    for (family, size) in FAMILIES.iter().enumerate() {
        println!("\nFamily of {size}:\n");
        let trials: Vec<String> = TRIALS.iter().map(usize::to_string).collect();
        println!(
            "| | {} |\n|---|{}",
            trials.join(" | "),
            "---|".repeat(TRIALS.len())
        );
        for (place, method) in METHODS.iter().enumerate() {
            let row = (0..TRIALS.len()).map(|n| {
                let found = |shape: usize| of(shape, n)[place];
                if !found(0).has_intervals[family] {
                    return "none".to_owned();
                }
                // Intervals are independent, which gives the chance that a whole family is right.
                let least = |shapes: std::ops::Range<usize>| {
                    let missed = shapes.map(|shape| found(shape).missed[family]).max();
                    let share = 1.0 - missed.unwrap_or(0) as f64 / samples as f64;
                    100.0 * share.powi(*size as i32)
                };
                let shared = least(0..SHARED.len());
                let one_sided = least(SHARED.len()..shapes.len());
                format!("{shared:.1} / {one_sided:.1}")
            });
            println!(
                "| {} | {} |",
                method.name,
                row.collect::<Vec<_>>().join(" | ")
            );
        }
    }
}
