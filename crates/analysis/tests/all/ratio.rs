//! Ratios of the medians of two samples.

use iolab_analysis::claim::{Estimate, ratio_of_samples};

fn ratio(base: &[f64], new: &[f64]) -> Option<Estimate> {
    ratio_of_samples(base, new, 0.95)
}

/// Square-root or other powers of a sequence that mixes whole numbers.
fn mixed(n: i32, (step, of): (i32, i32), power: f64, (from, by): (f64, f64)) -> Vec<f64> {
    let value = |i: i32| from + by * f64::from(step * i % of).powf(power);
    (0..n).map(value).collect()
}

/// MOVER of interpolated intervals, and the ends of both exact ones where a sample has a wide gap; the numbers
/// are from `crates/stats/tests/all/reference_intervals.py`.
#[test]
fn ratios_agree_with_scipy() {
    let ties = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0];
    let other_ties = [2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 6.0];
    let eight = [102.0, 98.5, 101.1, 97.0, 99.9, 100.4, 103.2, 96.1];
    let together = [81.0, 79.5, 84.4, 78.8, 80.2, 82.9, 77.7, 80.9, 83.5, 79.1];
    let apart = [81.0, 79.5, 84.4, 78.8, 80.2, 62.9, 61.7, 60.9, 63.5, 61.1];
    for (base, new, expected) in [
        (
            ties.to_vec(),
            other_ties.to_vec(),
            [1.3333333333333333, 0.8785872998296059, 2.203475338538273],
        ),
        (
            mixed(30, (37, 31), 1.5, (100.0, 1.0)),
            mixed(28, (17, 29), 1.5, (110.0, 1.25)),
            [1.1533747818439877, 0.848079329506536, 1.519310112729622],
        ),
        (
            mixed(200, (37, 211), 0.5, (50.0, 1.0)),
            mixed(300, (53, 307), 0.5, (50.5, 1.0)),
            [1.0427696498370496, 1.0261129526844373, 1.0599707496364958],
        ),
        (
            eight.to_vec(),
            together.to_vec(),
            [0.8042935596605097, 0.7826794480850707, 0.8414075127203211],
        ),
        (
            eight.to_vec(),
            apart.to_vec(),
            [0.7104343484772846, 0.5920542635658916, 0.8428720083246622],
        ),
    ] {
        let ours = ratio(&base, &new).unwrap();
        let (low, high) = ours.interval.unwrap();
        for (ours, expected) in [ours.ratio, low, high].into_iter().zip(expected) {
            assert!((ours / expected - 1.0).abs() < 1e-11, "{ours} {expected}");
        }
    }
}

#[test]
fn positive_samples_have_ratios_and_six_an_interval() {
    let six = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    for n in 1..=6 {
        for one in [ratio(&six[..n], &six), ratio(&six, &six[..n])] {
            assert_eq!(one.unwrap().interval.is_some(), n == 6);
        }
    }
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let data = [10.0, bad, 12.0, 13.0, 14.0, 15.0];
        assert_eq!((ratio(&data, &six), ratio(&six, &data)), (None, None));
    }
    let equal = ratio(&[0.3; 8], &[0.7; 8]).unwrap();
    assert_eq!(equal.interval, Some((equal.ratio, equal.ratio)));
}
