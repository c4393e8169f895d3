//! Rates of false and of found second groups, by simulation.

use iolab_stats::two_modes;

use crate::simulated::Draws;

/// Share of samples that are flagged.
fn flagged(samples: usize, seed: u64, mut sample: impl FnMut(&mut Draws) -> Vec<f64>) -> f64 {
    let mut source = Draws::new(seed);
    let count = (0..samples)
        .filter(|_| two_modes(&sample(&mut source)).is_some())
        .count();
    count as f64 / samples as f64
}

#[test]
fn one_group_is_seldom_taken_for_two() {
    type Shape = (&'static str, fn(&mut Draws) -> f64);
    let shapes: [Shape; 7] = [
        ("normal", Draws::normal),
        ("lognormal", |s| (0.5 * s.normal()).exp()),
        ("exponential", |s| -s.uniform().ln()),
        ("mirrored exponential", |s| s.uniform().ln()),
        ("gamma", |s| -(s.uniform() * s.uniform()).ln()),
        ("Laplace", |s| (s.uniform() / s.uniform()).ln()),
        ("a floor and a tail", |s| 100.0 - 3.0 * s.uniform().ln()),
    ];
    for (n, samples) in [(8, 3000), (12, 3000), (20, 2000), (50, 1000), (200, 400)] {
        for (name, value) in shapes {
            let share = flagged(samples, 11, |s| (0..n).map(|_| value(s)).collect());
            assert!(share <= 0.01, "{name}, {n} values: {share}");
        }
    }
}

#[test]
fn groups_that_are_apart_are_found_nearly_always() {
    for (n, distance) in [(20, 8.0), (40, 6.0), (60, 5.0), (150, 4.0)] {
        let sample = |s: &mut Draws| {
            let high = |i| if 10 * i < 3 * n { distance } else { 0.0 };
            (0..n).map(|i| s.normal() + high(i)).collect()
        };
        let share = flagged(400, 5, sample);
        assert!(share >= 0.9, "{n} values, {distance} sd apart: {share}");
    }
}
