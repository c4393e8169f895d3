//! Properties that hold for any data.

use iolab_stats::{Summary, mean_interval, median_interval, summary};
use proptest::prelude::*;

fn data() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-1_000_000..1_000_000_i32).prop_map(f64::from), 1..60)
}

/// Numbers of a summary.
fn numbers(s: &Summary) -> Vec<f64> {
    let mut all = vec![s.min, s.q1, s.median, s.q3, s.max, s.mad];
    all.extend(s.mean.into_iter().chain(s.sd));
    for interval in [s.median_interval, s.mean_interval].into_iter().flatten() {
        all.extend([interval.low, interval.high]);
    }
    all
}

proptest! {
    #[test]
    fn places_are_in_order(values in data()) {
        let s = summary(&values).unwrap();
        prop_assert!(s.min <= s.q1 && s.q1 <= s.median && s.median <= s.q3 && s.q3 <= s.max);
        if let Some(interval) = s.median_interval {
            prop_assert!(interval.low <= s.median && s.median <= interval.high);
            prop_assert!(interval.confidence >= 0.95 && interval.confidence < 1.0);
        }
    }

    #[test]
    fn more_confidence_is_never_narrower(values in data(), a in 0.01..0.99, b in 0.01..0.99) {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        if let Some(wide) = median_interval(&values, high) {
            let narrow = median_interval(&values, low).unwrap();
            prop_assert!(narrow.high - narrow.low <= wide.high - wide.low);
        }
        if let Some(wide) = mean_interval(&values, high) {
            let narrow = mean_interval(&values, low).unwrap();
            prop_assert!(narrow.high - narrow.low <= wide.high - wide.low);
        }
    }

    #[test]
    fn any_data_gives_finite_results_without_panic(
        values in prop::collection::vec(any::<f64>(), 0..30), confidence in any::<f64>(),
    ) {
        if let Some(s) = summary(&values) {
            prop_assert!(numbers(&s).iter().all(|x| x.is_finite()));
        }
        let _ = median_interval(&values, confidence);
        let _ = mean_interval(&values, confidence);
    }
}
