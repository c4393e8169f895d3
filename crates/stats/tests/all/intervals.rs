//! Interpolated intervals of the median, against reference_intervals.py in this folder.

use iolab_stats::{median_interval, median_interval_interpolated, signed_rank};

use crate::simulated::Draws;

/// `1^1.5, 2^1.5, ..., n^1.5`: n, confidence, lower and upper end.
const REFERENCE: [(u32, f64, f64, f64); 19] = [
    (6, 0.9, 2.3589661062302767, 12.083250330942224),
    (6, 0.95, 1.6530096874093547, 13.441010396270453),
    (7, 0.9, 2.7423834953463695, 14.876859431793331),
    (7, 0.95, 2.3408465581472067, 15.716490648899885),
    (9, 0.9, 4.552131141661391, 19.637406104632863),
    (9, 0.95, 3.368048239165084, 21.691367076084163),
    (9, 0.99, 2.1455206082747225, 24.260550408366445),
    (10, 0.9, 5.12752270392517, 22.754158534260263),
    (10, 0.95, 4.385579798179635, 24.124337304970943),
    (10, 0.99, 2.5781675462194777, 27.632726406375713),
    (11, 0.9, 6.377773901708837, 25.15726859200144),
    (11, 0.95, 5.001511113092819, 27.380020136870986),
    (11, 0.99, 2.7942509168070098, 31.713619519295484),
    (20, 0.9, 18.135144592721602, 52.95851480677395),
    (20, 0.95, 15.596314308525914, 56.75119896522757),
    (20, 0.99, 10.996857555484391, 64.35150971004198),
    (25, 0.9, 26.735739971802772, 70.472013618356),
    (25, 0.95, 23.49371584156789, 75.12437765322188),
    (25, 0.99, 17.762852346524973, 84.13123496772825),
];

#[test]
fn interpolated_intervals_are_those_of_scipy() {
    for (n, confidence, low, high) in REFERENCE {
        let x: Vec<f64> = (1..=n).map(|i| f64::from(i).powf(1.5)).collect();
        let interval = median_interval_interpolated(&x, confidence).unwrap();
        assert!((interval.low / low - 1.0).abs() < 1e-9, "{n} {confidence}");
        assert!(
            (interval.high / high - 1.0).abs() < 1e-9,
            "{n} {confidence}"
        );
        let exact = median_interval(&x, confidence).unwrap();
        assert!(exact.low <= interval.low && interval.high <= exact.high);
    }
}

/// The interpolation is exact for the Laplace distribution.
#[test]
fn interpolated_interval_covers_laplace_medians_as_stated() {
    let mut draws = Draws::new(5);
    let mut laplace = || {
        let place = draws.uniform() - 0.5;
        place.signum() * (1.0 - 2.0 * place.abs()).ln()
    };
    for n in [6, 10, 11] {
        let samples = 20_000;
        let held = (0..samples)
            .filter(|_| {
                let x: Vec<f64> = (0..n).map(|_| laplace()).collect();
                let interval = median_interval_interpolated(&x, 0.95).unwrap();
                interval.low <= 0.0 && 0.0 <= interval.high
            })
            .count();
        // Four standard deviations of the binomial.
        let away = held as f64 - 0.95 * f64::from(samples);
        assert!(
            away.abs() < 4.0 * (0.95 * 0.05 * f64::from(samples)).sqrt(),
            "{n} {held}"
        );
    }
}

#[test]
fn what_is_achieved_exactly_is_not_interpolated() {
    let x = [4.0, 1.0, 3.0, 2.0, 6.0, 5.0];
    let interval = median_interval_interpolated(&x, 0.96875).unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 6.0));
    assert_eq!(median_interval_interpolated(&x, 0.97), None);
    let narrow = median_interval_interpolated(&x, 0.01).unwrap();
    assert!(3.0 <= narrow.low && narrow.low <= 3.5 && narrow.high <= 4.0);
    let one = median_interval_interpolated(&[1.0, 2.0, 3.0], 0.01).unwrap();
    assert!(1.0 < one.low && one.low <= 2.0 && 2.0 <= one.high);
    for bad in [&[][..], &[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]] {
        assert_eq!(median_interval_interpolated(bad, 0.95), None);
    }
    assert_eq!(median_interval_interpolated(&x, 1.0), None);
    let equal = median_interval_interpolated(&[7.0; 9], 0.95).unwrap();
    assert_eq!((equal.low, equal.high), (7.0, 7.0));
}

/// Differences of two samples of one shape are symmetric: here between -1, 0 and 1, with little around each.
#[test]
fn signed_ranks_cover_differences_of_two_groups() {
    let mut draws = Draws::new(11);
    let mut side = || f64::from(u8::from(draws.uniform() < 0.5)) + 0.01 * draws.normal();
    let (samples, confidence) = (8000, 1.0 - 0.05 / 4.0);
    let held = (0..samples)
        .filter(|_| {
            let x: Vec<f64> = (0..8).map(|_| side() - side()).collect();
            let interval = signed_rank(&x, confidence).unwrap().interval.unwrap();
            interval.low <= 0.0 && 0.0 <= interval.high
        })
        .count();
    // The least and the greatest mean of eight: 1 - 2 / 256.
    let away = held as f64 - (1.0 - 1.0 / 128.0) * f64::from(samples);
    assert!(
        away.abs() < 4.0 * (f64::from(samples) / 129.0).sqrt(),
        "{held}"
    );
}
