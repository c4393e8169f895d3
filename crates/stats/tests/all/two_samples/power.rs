use iolab_stats::{
    MedianEnds, median, median_difference, median_interval, trials_for_apart, trials_for_within,
};

use crate::simulated::Draws;

const CONFIDENCES: [f64; 2] = [0.95, 1.0 - 0.05 / 12.0];

/// Share of simulated comparisons of two samples of logarithms that are `shift` apart, in which the interval of
/// the difference passes `shown`.
fn simulated(
    n: usize,
    (shift, sd): (f64, [f64; 2]),
    confidence: f64,
    shown: impl Fn(f64, f64) -> bool,
) -> f64 {
    const PAIRS: usize = 4000;
    let mut draws = Draws::new(n as u64);
    let mut sample = |centre: f64, sd: f64| {
        let logs: Vec<f64> = (0..n).map(|_| centre + sd * draws.normal()).collect();
        let interval = median_interval(&logs, confidence).expect("trials enough");
        MedianEnds {
            median: median(&logs).expect("trials"),
            low: interval.low,
            high: interval.high,
        }
    };
    let found = (0..PAIRS).filter(|_| {
        let (base, new) = (sample(0.0, sd[0]), sample(shift, sd[1]));
        let (low, high) = median_difference(&base, &new, false);
        shown(low, high)
    });
    found.count() as f64 / PAIRS as f64
}

#[test]
fn planned_trials_show_a_difference_at_power() {
    for confidence in CONFIDENCES {
        for (shift, sd) in [(0.3, [0.1, 0.1]), (-0.2, [0.1, 0.2]), (0.1, [0.1, 0.1])] {
            let n = trials_for_apart(shift, &sd, confidence, 0.8).unwrap();
            let apart = |low: f64, high: f64| low > 0.0 || high < 0.0;
            let power = simulated(n, (shift, sd), confidence, apart);
            // The rank of the ends changes in steps with the number of trials, and a value far out takes the ends.
            assert!((0.7..0.97).contains(&power), "{power} with {n} for {shift}");
        }
    }
}

#[test]
fn planned_trials_show_equivalence_at_power() {
    for confidence in CONFIDENCES {
        for (shift, sd) in [(0.0, [0.03, 0.03]), (0.02, [0.02, 0.03])] {
            let n = trials_for_within(0.05, shift, &sd, confidence, 0.8).unwrap();
            let within = |low: f64, high: f64| low >= -0.05 && high <= 0.05;
            let power = simulated(n, (shift, sd), confidence, within);
            assert!(
                (0.74..0.97).contains(&power),
                "{power} with {n} for {shift}"
            );
        }
    }
}

#[test]
fn what_no_number_of_trials_shows_has_none() {
    let apart = |shift: f64| trials_for_apart(shift, &[0.1, 0.1], 0.95, 0.8);
    assert_eq!(apart(0.0), None);
    assert_eq!(apart(1e-9), None);
    assert_eq!(apart(f64::NAN), None);
    assert_eq!(apart(1e6), Some(6));
    assert_eq!(
        trials_for_apart(1e6, &[0.1], 1.0 - 0.05 / 40.0, 0.8),
        Some(11)
    );
    assert_eq!(apart(-0.3), apart(0.3));
    let within = |shift: f64, sd: f64| trials_for_within(0.05, shift, &[sd], 0.95, 0.8);
    assert_eq!(within(0.05, 0.01), None);
    assert_eq!(within(-0.06, 0.01), None);
    assert_eq!(within(0.04, 0.0), Some(6));
    assert_eq!(within(0.0, f64::INFINITY), None);
    for bad in [0.0, 1.0, f64::NAN] {
        assert_eq!(trials_for_apart(0.3, &[0.1], bad, 0.8), None);
        assert_eq!(trials_for_apart(0.3, &[0.1], 0.95, bad), None);
    }
}
