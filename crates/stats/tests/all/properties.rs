//! Properties that hold for any data.

use iolab_stats::{Summary, mean_interval, median_interval, summary};
use proptest::prelude::*;

fn data() -> impl Strategy<Value = Vec<f64>> {
    // Whole numbers, so that shifting and doubling are exact.
    prop::collection::vec((-1_000_000..1_000_000_i32).prop_map(f64::from), 1..60)
}

/// Numbers of a summary in a fixed order, each with whether it follows a shift.
fn numbers(s: &Summary) -> Vec<(f64, bool)> {
    let mut all = vec![
        (s.min, true),
        (s.q1, true),
        (s.median, true),
        (s.q3, true),
        (s.max, true),
        (s.mad, false),
    ];
    all.extend(s.mean.map(|m| (m, true)));
    all.extend(s.sd.map(|d| (d, false)));
    for interval in [s.median_interval, s.mean_interval].into_iter().flatten() {
        all.extend([(interval.low, true), (interval.high, true)]);
    }
    all
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #[test]
    fn order_does_not_matter(values in data(), seed in any::<u64>()) {
        let mut shuffled = values.clone();
        let mut state = seed | 1;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        prop_assert_eq!(summary(&values), summary(&shuffled));
    }

    #[test]
    fn a_shift_moves_places_and_keeps_spreads(values in data(), shift in -1_000_000..1_000_000_i32) {
        let shift = f64::from(shift);
        let moved: Vec<f64> = values.iter().map(|x| x + shift).collect();
        let (before, after) = (summary(&values).unwrap(), summary(&moved).unwrap());
        for ((x, is_place), (y, _)) in numbers(&before).into_iter().zip(numbers(&after)) {
            let expected = if is_place { x + shift } else { x };
            prop_assert!(close(expected, y), "{} {}", expected, y);
        }
    }

    #[test]
    fn a_scale_scales_everything(values in data(), scale in 1..1000_i32) {
        let scale = f64::from(scale);
        let scaled: Vec<f64> = values.iter().map(|x| x * scale).collect();
        let (before, after) = (summary(&values).unwrap(), summary(&scaled).unwrap());
        for ((x, _), (y, _)) in numbers(&before).into_iter().zip(numbers(&after)) {
            prop_assert!(close(x * scale, y), "{} {}", x * scale, y);
        }
    }

    #[test]
    fn a_mirror_image_mirrors_the_interval(values in data()) {
        let mirrored: Vec<f64> = values.iter().map(|x| -x).collect();
        let (a, b) = (median_interval(&values, 0.95), median_interval(&mirrored, 0.95));
        prop_assert_eq!(a.map(|i| (i.low, i.high)), b.map(|i| (-i.high, -i.low)));
    }

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
    fn median_interval_starts_at_six_values(values in data()) {
        prop_assert_eq!(median_interval(&values, 0.95).is_some(), values.len() >= 6);
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
            prop_assert!(numbers(&s).iter().all(|(x, _)| x.is_finite()));
        }
        let _ = median_interval(&values, confidence);
        let _ = mean_interval(&values, confidence);
    }
}
