//! Properties of the two-sample functions that hold for any two samples.

use iolab_stats::{Interval, mann_whitney, ratio_of_medians, student, tost_log, welch};
use proptest::prelude::*;

/// Whole numbers, so that shifting and doubling are exact, few enough that ties are common.
fn whole(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-40..40_i32).prop_map(f64::from), sizes)
}

fn positive(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((1..1000_i32).prop_map(f64::from), sizes)
}

fn map(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|v| f(*v)).collect()
}

fn turned(x: &[f64]) -> Vec<f64> {
    x.iter().rev().copied().collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn holds(interval: &Interval, x: f64) -> bool {
    interval.low <= x && x <= interval.high
}

proptest! {
    #[test]
    fn order_does_not_matter(base in positive(1..20), new in positive(1..20)) {
        let (other_base, other_new) = (turned(&base), turned(&new));
        prop_assert_eq!(welch(&base, &new, 0.95), welch(&other_base, &other_new, 0.95));
        prop_assert_eq!(student(&base, &new, 0.95), student(&other_base, &other_new, 0.95));
        prop_assert_eq!(mann_whitney(&base, &new), mann_whitney(&other_base, &other_new));
        prop_assert_eq!(ratio_of_medians(&base, &new, 0.95), ratio_of_medians(&other_base, &other_new, 0.95));
        prop_assert_eq!(tost_log(&base, &new, 0.1, 0.05), tost_log(&other_base, &other_new, 0.1, 0.05));
    }

    #[test]
    fn exchanging_the_samples_mirrors_the_t_tests(base in whole(2..20), new in whole(2..20)) {
        for test in [welch, student] {
            let (a, b) = (test(&base, &new, 0.95).unwrap(), test(&new, &base, 0.95).unwrap());
            prop_assert_eq!(a.t, b.t.map(|t| -t));
            prop_assert_eq!((a.p, a.difference), (b.p, -b.difference));
            prop_assert!(close(a.interval.low, -b.interval.high));
        }
    }

    #[test]
    fn exchanging_the_samples_mirrors_the_ranks(base in whole(1..14), new in whole(1..14)) {
        let (a, b) = (mann_whitney(&base, &new).unwrap(), mann_whitney(&new, &base).unwrap());
        prop_assert_eq!(a.u + b.u, (base.len() * new.len()) as f64);
        prop_assert!((a.p - b.p).abs() < 1e-12 && a.method == b.method);
    }

    #[test]
    fn exchanging_the_samples_inverts_the_ratios(base in positive(2..20), new in positive(2..20)) {
        let ratio = |base: &[f64], new: &[f64]| ratio_of_medians(base, new, 0.95).unwrap();
        let (a, b) = (ratio(&base, &new), ratio(&new, &base));
        prop_assert!(close(a.ratio * b.ratio, 1.0));
        if let (Some(a), Some(b)) = (a.interval, b.interval) {
            prop_assert!(close(a.low * b.high, 1.0));
        }
        let (a, b) = (tost_log(&base, &new, 0.1, 0.05).unwrap(), tost_log(&new, &base, 0.1, 0.05).unwrap());
        prop_assert!(close(a.p, b.p) && close(a.ratio * b.ratio, 1.0));
    }

    #[test]
    fn a_shift_of_both_changes_nothing(base in whole(2..20), new in whole(2..20), by in -1000..1000_i32) {
        let by = f64::from(by);
        let (b, n) = (map(&base, |x| x + by), map(&new, |x| x + by));
        for test in [welch, student] {
            let (here, there) = (test(&base, &new, 0.95).unwrap(), test(&b, &n, 0.95).unwrap());
            prop_assert!(close(here.p, there.p) && close(here.difference, there.difference));
        }
        prop_assert_eq!(mann_whitney(&base, &new), mann_whitney(&b, &n));
    }

    #[test]
    fn scaling_both_samples_keeps_p_and_ratio(base in positive(2..20), new in positive(2..20), by in 1..1000_i32) {
        let by = f64::from(by) / 16.0;
        let (b, n) = (map(&base, |x| x * by), map(&new, |x| x * by));
        let (here, there) = (welch(&base, &new, 0.95).unwrap(), welch(&b, &n, 0.95).unwrap());
        prop_assert!(close(here.p, there.p) && close(here.difference * by, there.difference));
        prop_assert_eq!(mann_whitney(&base, &new), mann_whitney(&b, &n));
        let ratio = |base: &[f64], new: &[f64]| ratio_of_medians(base, new, 0.95).unwrap().ratio;
        prop_assert!(close(ratio(&base, &new), ratio(&b, &n)));
        let (here, there) = (tost_log(&base, &new, 0.1, 0.05).unwrap(), tost_log(&b, &n, 0.1, 0.05).unwrap());
        // Logarithms of equal values keep their equality only to rounding.
        prop_assert!(close(here.ratio, there.ratio) && (here.p - there.p).abs() < 1e-6);
    }

    #[test]
    fn ranks_see_only_the_order(base in whole(1..14), new in whole(1..14)) {
        let cubed = |x: &[f64]| map(x, |v| v * v * v);
        prop_assert_eq!(mann_whitney(&base, &new), mann_whitney(&cubed(&base), &cubed(&new)));
    }

    #[test]
    fn a_sample_against_itself_shows_no_difference(data in positive(2..16)) {
        prop_assert_eq!(welch(&data, &data, 0.95).unwrap().p, 1.0);
        prop_assert_eq!(student(&data, &data, 0.95).unwrap().p, 1.0);
        prop_assert_eq!(mann_whitney(&data, &data).unwrap().p, 1.0);
        let ratio = ratio_of_medians(&data, &data, 0.95).unwrap();
        prop_assert_eq!(ratio.ratio, 1.0);
        prop_assert!(ratio.interval.is_none_or(|i| holds(&i, 1.0)));
        prop_assert_eq!(tost_log(&data, &data, 0.05, 0.05).unwrap().ratio, 1.0);
    }

    #[test]
    fn an_interval_holds_its_estimate(base in positive(2..30), new in positive(2..30)) {
        for test in [welch, student] {
            let test = test(&base, &new, 0.95).unwrap();
            prop_assert!(holds(&test.interval, test.difference));
            // The interval excludes 0 exactly where p is below 5 %.
            prop_assert!((test.p - 0.05).abs() < 1e-9 || holds(&test.interval, 0.0) == (test.p > 0.05));
        }
        let ratio = ratio_of_medians(&base, &new, 0.95).unwrap();
        prop_assert!(ratio.interval.is_none_or(|i| holds(&i, ratio.ratio)));
        let test = tost_log(&base, &new, 0.1, 0.05).unwrap();
        prop_assert!(holds(&test.interval, test.ratio));
    }

    #[test]
    fn any_input_gives_finite_numbers_or_none(
        base in prop::collection::vec(any::<f64>(), 0..12),
        new in prop::collection::vec(any::<f64>(), 0..12),
        confidence in prop_oneof![any::<f64>(), 0.001..0.999_f64],
        margin in prop_oneof![any::<f64>(), 0.001..0.9_f64],
    ) {
        let whole = |x: &[f64]| x.iter().copied().filter(|v| v.is_finite()).collect::<Vec<f64>>();
        let positive = |x: &[f64]| map(&whole(x), f64::abs);
        for (base, new) in [
            (base.clone(), new.clone()),
            (whole(&base), whole(&new)),
            (positive(&base), positive(&new)),
        ] {
            let numbers = numbers(&base, &new, confidence, margin);
            prop_assert!(numbers.iter().all(|x| x.is_finite()), "{:?}", numbers);
        }
    }
}

/// Every number that the two-sample functions yield.
fn numbers(base: &[f64], new: &[f64], confidence: f64, margin: f64) -> Vec<f64> {
    let mut all = Vec::new();
    let ends = |i: Interval| [i.low, i.high, i.confidence];
    for test in [welch, student]
        .into_iter()
        .filter_map(|t| t(base, new, confidence))
    {
        all.extend([test.t.unwrap_or(0.0), test.df, test.p, test.difference]);
        all.extend(ends(test.interval));
    }
    all.extend(mann_whitney(base, new).into_iter().flat_map(|m| [m.u, m.p]));
    if let Some(ratio) = ratio_of_medians(base, new, confidence) {
        all.push(ratio.ratio);
        all.extend(ratio.interval.into_iter().flat_map(ends));
    }
    if let Some(test) = tost_log(base, new, margin, (1.0 - confidence) / 2.0) {
        all.extend([test.p, test.ratio]);
        all.extend(ends(test.interval));
    }
    all
}
