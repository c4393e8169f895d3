//! Moves labels along a line so that they do not overlap.

/// The positions of labels wanted at `wanted`, at least `gap` apart and within `low` to `high`, moved as little as possible; in
/// the order of `wanted`. Where they do not all fit, the gaps are equal and smaller.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let gaps = wanted.len().saturating_sub(1).max(1) as f64;
    let gap = gap.min((high - low).max(0.0) / gaps);
    // Groups of adjacent labels: first label, number of labels, position of the first.
    let mut groups: Vec<(usize, usize, f64)> = Vec::new();
    for (i, label) in order.iter().enumerate() {
        groups.push((i, 1, wanted[*label].clamp(low, high)));
        settle(&mut groups, &order, wanted, gap, low, high);
    }
    let mut places = vec![0.0; wanted.len()];
    for (first, count, place) in groups {
        for i in 0..count {
            places[order[first + i]] = place + i as f64 * gap;
        }
    }
    places
}

/// Merges the last group with the one before while they touch.
fn settle(
    groups: &mut Vec<(usize, usize, f64)>,
    order: &[usize],
    wanted: &[f64],
    gap: f64,
    low: f64,
    high: f64,
) {
    while let [.., (first, count, place), (_, more, next)] = groups.as_slice() {
        if place + *count as f64 * gap <= *next + 1e-9 {
            return;
        }
        let (first, count) = (*first, count + more);
        // The mean of the group positions that the single labels want.
        let begins = (0..count).map(|i| wanted[order[first + i]] - i as f64 * gap);
        let place = begins.sum::<f64>() / count as f64;
        let length = (count - 1) as f64 * gap;
        groups.truncate(groups.len() - 2);
        groups.push((first, count, place.min(high - length).max(low)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_overlapping_labels_move() {
        assert_eq!(spread(&[30.0, 10.0], 8.0, 0.0, 100.0), [30.0, 10.0]);
        assert_eq!(spread(&[50.0, 50.0], 8.0, 0.0, 100.0), [46.0, 54.0]);
        assert_eq!(spread(&[0.0, 0.0], 8.0, 0.0, 100.0), [0.0, 8.0]);
        assert!(spread(&[], 8.0, 0.0, 100.0).is_empty());
    }

    proptest! {
        #[test]
        fn labels_stand_apart_and_within(wanted in prop::collection::vec(-50.0f64..250.0, 1..20)) {
            let places = spread(&wanted, 10.0, 0.0, 200.0);
            let mut sorted = places.clone();
            sorted.sort_by(f64::total_cmp);
            prop_assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-6));
            prop_assert!(sorted.iter().all(|place| (-1e-6..=200.0 + 1e-6).contains(place)));
        }
    }
}
