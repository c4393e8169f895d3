//! Properties of the diagnostics for any data.

use iolab_stats::{
    autocorrelation, effective_sample_size, ljung_box, mann_kendall, quantile_ranks, two_modes,
};
use proptest::prelude::*;

/// Mostly numbers from the least to the greatest, occasionally not a number.
fn anything() -> impl Strategy<Value = Vec<f64>> {
    let number = prop_oneof![
        60 => any::<f64>(),
        60 => (-50..50_i32).prop_map(f64::from),
        1 => prop::num::f64::ANY,
    ];
    prop::collection::vec(number, 0..40)
}

fn moved(data: &[f64], shift: i32, power: i32) -> Vec<f64> {
    let scale = f64::from(power).exp2();
    data.iter()
        .map(|x| (x + f64::from(shift)) * scale)
        .collect()
}

fn is_share(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

proptest! {
    #[test]
    fn all_numbers_are_finite(values in anything(), lag in 0..50_usize) {
        if let Some(r) = autocorrelation(&values, lag) {
            prop_assert!(r.abs() <= 1.0 + 1e-12, "{}", r);
        }
        prop_assert!(ljung_box(&values, lag).is_none_or(is_share));
        if let Some(size) = effective_sample_size(&values) {
            prop_assert!(size >= 1.0 && size <= values.len() as f64);
        }
        if let Some(trend) = mann_kendall(&values) {
            prop_assert!(trend.tau.abs() <= 1.0 + 1e-12 && is_share(trend.p));
            prop_assert!(trend.slope_per_trial.is_finite());
        }
        if let Some(found) = two_modes(&values) {
            let levels = found.levels;
            prop_assert!(levels.low_median <= levels.high_median && found.excess.is_finite());
            prop_assert!(levels.low_share >= 0.1 && levels.low_share <= 0.9);
        }
    }

    #[test]
    fn groups_ignore_order_unit_and_sign(
        low in prop::collection::vec(0..40_i32, 4..20), high in prop::collection::vec(100..140_i32, 4..20),
        shift in -1000..1000_i32, power in -20..20_i32,
    ) {
        let values: Vec<f64> = low.iter().chain(&high).copied().map(f64::from).collect();
        let mut other = moved(&values, shift, power);
        other.reverse();
        let split = |data: &[f64]| two_modes(data).map(|found| (found.levels.low_median, found.levels.low_share));
        let back = |(at, share): (f64, f64)| (at * f64::from(-power).exp2() - f64::from(shift), share);
        prop_assert_eq!(split(&values), split(&other).map(back));
        let mirrored: Vec<f64> = values.iter().map(|x| -x).collect();
        prop_assert_eq!(split(&values).is_some(), split(&mirrored).is_some());
    }

    #[test]
    fn quantile_ranks_are_the_tightest_sufficient_ones(
        n in 1..3000_u64, q in 0.001..0.999, confidence in 0.5..0.999,
    ) {
        if let (Some(low), Some(high), achieved) = quantile_ranks(n, q, confidence) {
            prop_assert!(1 <= low && low < high && high <= n);
            prop_assert!(achieved >= confidence - 1e-9 && achieved <= 1.0);
            let place = n as f64 * q;
            prop_assert!((low as f64) <= place + 1.0 && high as f64 >= place);
            // One value more never costs more than one rank on either side.
            let (next_low, next_high, _) = quantile_ranks(n + 1, q, confidence);
            let (next_low, next_high) = (next_low.unwrap(), next_high.unwrap());
            prop_assert!(next_low >= low && next_low <= low + 1);
            prop_assert!(next_high >= high && next_high <= high + 1);
        }
    }

    #[test]
    fn ranks_of_large_counts_are_found(n in 100_000..1_000_000_000_000_u64, q in 0.01..0.99) {
        let (low, high, achieved) = quantile_ranks(n, q, 0.95);
        let sd = (n as f64 * q * (1.0 - q)).sqrt();
        prop_assert!((0.95..0.953).contains(&achieved), "{}", achieved);
        prop_assert!(((high.unwrap() - low.unwrap()) as f64 / sd - 3.92).abs() < 0.1);
    }
}
