//! Changepoints: against all partitions, on known steps, and on noise.

use iolab_stats::changepoints;
use proptest::prelude::*;

use crate::simulated::Draws;

/// Cost of a partition, recomputed from the definition.
fn cost(data: &[f64], noise: f64, penalty: f64, changes: &[usize]) -> f64 {
    let mut ends = changes.to_vec();
    ends.push(data.len());
    let mut from = 0;
    let mut sum = penalty * changes.len() as f64;
    for to in ends {
        let segment = &data[from..to];
        let mean = segment.iter().sum::<f64>() / segment.len() as f64;
        sum += segment
            .iter()
            .map(|x| ((x - mean) / noise).powi(2))
            .sum::<f64>();
        from = to;
    }
    sum
}

/// The least cost over all partitions into segments of at least two, without pruning.
fn least_cost(data: &[f64], noise: f64, penalty: f64) -> f64 {
    let mut best = vec![f64::INFINITY; data.len() + 1];
    best[0] = -penalty;
    for end in 2..=data.len() {
        for start in 0..=end - 2 {
            let segment = cost(&data[start..end], noise, 0.0, &[]);
            best[end] = best[end].min(best[start] + segment + penalty);
        }
    }
    best[data.len()]
}

/// Noise of neighbours; `None` if more than half of them are equal.
fn noise(data: &[f64]) -> Option<f64> {
    let mut steps: Vec<f64> = data.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    steps.sort_by(f64::total_cmp);
    let n = steps.len();
    let median = (steps[(n - 1) / 2] + steps[n / 2]) / 2.0;
    (median > 0.0).then_some(median / 0.674_489_750_196_081_7 / 2.0_f64.sqrt())
}

proptest! {
    #[test]
    fn no_partition_is_cheaper(
        values in prop::collection::vec(-20..20_i32, 4..40), penalty in 0.0..20.0,
    ) {
        let data: Vec<f64> = values.into_iter().map(f64::from).collect();
        let found = changepoints(&data, Some(penalty)).unwrap();
        if let Some(noise) = noise(&data) {
            let (ours, best) = (
                cost(&data, noise, penalty, &found),
                least_cost(&data, noise, penalty),
            );
            prop_assert!((ours - best).abs() <= 1e-9 * (1.0 + best.abs()), "{ours} {best} {found:?}");
        }
    }

    #[test]
    fn segments_have_two_values_or_more(
        values in prop::collection::vec(any::<f64>(), 0..40), penalty in any::<Option<f64>>(),
    ) {
        if let Some(found) = changepoints(&values, penalty) {
            let mut ends = vec![0];
            ends.extend(&found);
            ends.push(values.len());
            prop_assert!(ends.windows(2).all(|w| w[1] >= w[0] + 2), "{found:?}");
        }
    }
}

#[test]
fn a_step_without_noise_is_found() {
    let data: Vec<f64> = (0..30).map(|i| if i < 17 { 5.0 } else { 6.0 }).collect();
    assert_eq!(changepoints(&data, None), Some(vec![17]));
}

#[test]
fn noise_seldom_has_changes() {
    let mut source = Draws::new(3);
    let quiet = (0..200)
        .filter(|i| {
            let n = 30 + 270 * i / 199;
            let data: Vec<f64> = (0..n).map(|_| source.normal()).collect();
            changepoints(&data, None).unwrap().is_empty()
        })
        .count();
    assert!(quiet >= 190, "{quiet} of 200");
}

#[test]
fn degenerate_data_has_a_defined_result() {
    assert_eq!(changepoints(&[], None), None);
    assert_eq!(changepoints(&[1.0, 2.0, 3.0], None), None);
    assert_eq!(changepoints(&[1.0, f64::NAN, 2.0, 3.0], None), None);
    assert_eq!(changepoints(&[1.0, f64::INFINITY, 2.0, 3.0], None), None);
    assert_eq!(changepoints(&[7.0; 20], None), Some(vec![]));
    for penalty in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(changepoints(&[1.0, 2.0, 3.0, 4.0], Some(penalty)), None);
    }
    let far = [f64::MAX, -f64::MAX, f64::MAX, -f64::MAX];
    assert_eq!(changepoints(&far, None), None);
}
