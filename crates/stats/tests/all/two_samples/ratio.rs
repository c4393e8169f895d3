use iolab_stats::ratio_of_medians;

use super::data::{Pair, close, ends, large, thirty, ties};

#[track_caller]
fn medians((base, new): Pair, ratio: f64, low: f64, high: f64) {
    let ours = ratio_of_medians(&base, &new, 0.95).unwrap();
    close(ours.ratio, ratio);
    ends(ours.interval.unwrap(), low, high);
}

/// MOVER of interpolated intervals, and the ends of both exact ones where a sample has a wide gap; the numbers
/// are from `reference_intervals.py`.
#[test]
fn ratios_of_medians() {
    medians(
        ties(),
        1.3333333333333333,
        0.8785872998296059,
        2.203475338538273,
    );
    medians(
        thirty(),
        1.1533747818439877,
        0.848079329506536,
        1.519310112729622,
    );
    medians(
        large(),
        1.0427696498370496,
        1.0261129526844373,
        1.0599707496364958,
    );
    let base = vec![102.0, 98.5, 101.1, 97.0, 99.9, 100.4, 103.2, 96.1];
    let together = [81.0, 79.5, 84.4, 78.8, 80.2, 82.9, 77.7, 80.9, 83.5, 79.1];
    medians(
        (base.clone(), together.to_vec()),
        0.8042935596605097,
        0.7826794480850707,
        0.8414075127203211,
    );
    let apart = [81.0, 79.5, 84.4, 78.8, 80.2, 62.9, 61.7, 60.9, 63.5, 61.1];
    medians(
        (base, apart.to_vec()),
        0.7104343484772846,
        0.5920542635658916,
        0.8428720083246622,
    );
}

#[test]
fn the_interval_of_medians_starts_at_six_values() {
    let six = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    for few in 1..6 {
        for ratio in [
            ratio_of_medians(&six[..few], &six, 0.95),
            ratio_of_medians(&six, &six[..few], 0.95),
        ] {
            assert_eq!(ratio.unwrap().interval, None);
        }
    }
    assert!(
        ratio_of_medians(&six, &six, 0.95)
            .unwrap()
            .interval
            .is_some()
    );
}

#[test]
fn equal_values_have_an_interval_without_width() {
    let found = ratio_of_medians(&[0.3; 8], &[0.7; 8], 0.95).unwrap();
    let interval = found.interval.unwrap();
    assert_eq!((interval.low, interval.high), (found.ratio, found.ratio));
}

#[test]
fn only_positive_values_have_a_ratio() {
    let fine = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let data = [1.0, bad, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(ratio_of_medians(&data, &fine, 0.95), None);
        assert_eq!(ratio_of_medians(&fine, &data, 0.95), None);
    }
}
