//! Intervals of the ratio of two separate samples, graded: a twentieth of the example `ratio_intervals`.

use iolab_analysis::claim::ratio_of_samples;
use iolab_synthetic::Noise;
use iolab_synthetic::ratio_coverage::{FAMILIES, Shapes, least_coverage, share_apart};

const PAIRS: usize = 1000;

fn interval(base: &[f64], new: &[f64], confidence: f64) -> Option<(f64, f64)> {
    ratio_of_samples(base, new, confidence)?.interval
}

#[test]
fn intervals_of_separate_samples_hold_their_ratio() {
    for family in FAMILIES {
        let least = least_coverage(interval, family, &[6, 17], PAIRS).expect("trials enough");
        // Lowest of 164: three standard errors below the truth of one are expected.
        let least_true = least.coverage + 3.0 * least.error;
        assert!(least_true >= 0.94, "family of {family}: {least:?}");
    }
}

#[test]
fn six_trials_show_a_ratio_of_1_3() {
    let noise = Noise::Lognormal { sigma: 0.1 };
    let shapes = Shapes {
        base: noise,
        new: noise,
    };
    let power = share_apart(interval, shapes, 1.3, (6, 1), PAIRS).expect("six trials");
    assert!(power >= 0.75, "{power}");
}
