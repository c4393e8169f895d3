//! Tests.

use super::{median_interval, *};

#[test]
fn the_middle_quantile_is_the_median() {
    let data: Vec<f64> = (0..400).map(|i| f64::from(i * 37 % 401)).collect();
    for n in 0..400 {
        for confidence in [0.5, 0.9, 0.95, 0.96875, 0.999] {
            let median = median_interval(&data[..n], confidence);
            let (low, high, _) = quantile_ranks(n as u64, 0.5, confidence);
            let quantile = low
                .zip(high)
                .map(|(low, high)| (low as usize, high as usize));
            assert_eq!(median.and_then(|i| i.ranks), quantile, "{n} {confidence}");
        }
    }
}

#[test]
fn the_fewest_values_for_a_tail() {
    for (q, fewest) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3688)] {
        assert_eq!(quantile_ranks(fewest - 1, q, 0.95).1, None);
        assert_eq!(quantile_ranks(fewest, q, 0.95).1, Some(fewest));
    }
}

#[test]
fn shares_have_the_bounds_of_clopper_and_pearson() {
    // SciPy: beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
    for (k, n, low, high) in [
        (5.0, 500.0, 0.003_254_721, 0.023_181_388),
        (0.0, 30.0, 0.0, 0.115_703_3),
        (30.0, 30.0, 0.884_296_7, 1.0),
    ] {
        let (found_low, found_high) = share_bounds(k, n, 0.025).unwrap();
        assert!((found_low - low).abs() < 1e-6, "{found_low}");
        assert!((found_high - high).abs() < 1e-6, "{found_high}");
    }
    for (k, n, alpha) in [
        (-1.0, 5.0, 0.1),
        (6.0, 5.0, 0.1),
        (1.0, 0.0, 0.1),
        (1.0, 5.0, 0.0),
    ] {
        assert_eq!(share_bounds(k, n, alpha), None);
    }
}

#[test]
fn degenerate_arguments_have_no_result() {
    const NONE: (Option<u64>, Option<u64>, f64) = (None, None, 1.0);
    assert_eq!(quantile_ranks(0, 0.5, 0.95), NONE);
    assert_eq!(quantile_ranks(u64::MAX, 0.5, 0.95), NONE);
    for x in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(quantile_ranks(1000, x, 0.95), NONE, "{x}");
        assert_eq!(quantile_ranks(1000, 0.5, x), NONE, "{x}");
    }
}
