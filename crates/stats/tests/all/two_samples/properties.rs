//! Properties of the two-sample functions that hold for any two samples.

use iolab_stats::{mann_whitney, student, tost_log, welch};
use proptest::prelude::*;

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

proptest! {
    #[test]
    fn order_and_sides_do_not_matter(base in positive(1..20), new in positive(1..20)) {
        let all = numbers(&base, &new, 0.1);
        prop_assert_eq!(&all, &numbers(&turned(&base), &turned(&new), 0.1));
        let exchanged = numbers(&new, &base, 0.1);
        prop_assert_eq!(all.len(), exchanged.len());
        for (a, b) in all.into_iter().zip(exchanged) {
            prop_assert!(close(a, b), "{} {}", a, b);
        }
    }

    #[test]
    fn a_sample_against_itself_shows_no_difference(data in positive(2..16)) {
        for test in [welch, student, mann_whitney] {
            prop_assert_eq!(test(&data, &data), Some(1.0));
        }
    }

    #[test]
    fn any_input_gives_probabilities_or_none(
        base in prop::collection::vec(any::<f64>(), 0..12),
        new in prop::collection::vec(any::<f64>(), 0..12),
        margin in prop_oneof![any::<f64>(), 0.001..0.9_f64],
    ) {
        let whole = |x: &[f64]| x.iter().copied().filter(|v| v.is_finite()).collect::<Vec<f64>>();
        let positive = |x: &[f64]| map(&whole(x), f64::abs);
        for (base, new) in [
            (base.clone(), new.clone()),
            (whole(&base), whole(&new)),
            (positive(&base), positive(&new)),
        ] {
            let numbers = numbers(&base, &new, margin);
            prop_assert!(numbers.iter().all(|p| (0.0..=1.0).contains(p)), "{:?}", numbers);
        }
    }
}

/// Every p-value that the two-sample functions yield.
fn numbers(base: &[f64], new: &[f64], margin: f64) -> Vec<f64> {
    let tests = [welch, student, mann_whitney].map(|test| test(base, new));
    let all = tests.into_iter().chain([tost_log(base, new, margin)]);
    all.flatten().collect()
}
