//! Two groups of values: what guards a claim against them, each guard by itself.

use super::*;

/// Values around the second for `n` trials spread evenly, and around the first for the others. The scatter has no order.
fn two_groups(most: f64, rest: f64, all: usize, n: usize) -> Vec<f64> {
    let scatter = [1.0, 0.998, 1.003, 0.999, 1.001, 1.002, 0.997];
    let of = |i: usize| {
        if i.is_multiple_of(all / n) && i / (all / n) < n {
            rest
        } else {
            most
        }
    };
    (0..all).map(|i| of(i) * scatter[i * 5 % 7]).collect()
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

fn claimed(estimate: &Estimate) -> (Difference, Vec<Doubt>) {
    judge(estimate, MARGIN, &SideDoubts::default(), true)
}

#[track_caller]
fn is_left_open(estimate: &Estimate, shown: Difference) {
    // The interval alone would claim it.
    assert_eq!(estimate.shows(MARGIN), shown, "{estimate:?}");
    let (difference, reasons) = claimed(estimate);
    assert_eq!(difference, Difference::CannotTell, "{estimate:?}");
    assert!(
        matches!(
            reasons.as_slice(),
            [Doubt {
                what: DoubtKind::TwoGroups,
                ..
            }]
        ),
        "{reasons:?}"
    );
}

/// The interval of the median lies within the larger group: only that the ratio of the others lies elsewhere keeps it from being claimed.
#[test]
fn result_of_one_block_group_is_not_general() {
    let of = |most, rest| of_blocks(&logs(&two_groups(most, rest, 16, 3)), 0.95).expect("blocks");
    is_left_open(&of(1.5, 0.8), Difference::Higher);
    is_left_open(&of(0.7, 1.2), Difference::Lower);
    is_left_open(&of(1.0, 1.3), Difference::Equivalent);
    // What holds between all groups is claimed.
    assert_eq!(claimed(&of(1.5, 1.3)), (Difference::Higher, Vec::new()));
}

#[test]
fn result_of_one_trial_group_is_not_general() {
    let base: Vec<f64> = two_groups(100.0, 100.0, 16, 3);
    for (most, rest, shown) in [
        (150.0, 80.0, Difference::Higher),
        (70.0, 120.0, Difference::Lower),
        (100.0, 130.0, Difference::Equivalent),
    ] {
        let other = two_groups(most, rest, 16, 3);
        is_left_open(
            &ratio_of_samples(&base, &other, 0.95).expect("trials"),
            shown,
        );
    }
    // Of the base, too.
    let base = two_groups(100.0, 200.0, 16, 3);
    let other = two_groups(150.0, 150.0, 16, 3);
    let estimate = ratio_of_samples(&base, &other, 0.95).expect("trials");
    is_left_open(&estimate, Difference::Higher);
}

/// The interval of two groups of the same size holds both, since it assumes no shape, although the mean of the
/// logarithms is known far better.
#[test]
fn an_interval_of_two_equal_groups_holds_both() {
    let groups = two_groups(1.2, 0.9, 16, 8);
    let estimate = of_blocks(&logs(&groups), 0.95).expect("blocks");
    let (low, high) = estimate.interval.expect("an interval");
    assert!(low < 0.91 && high > 1.19, "{estimate:?}");
    assert_eq!(estimate.shows(MARGIN), Difference::NotFound);
    let base = vec![1.0; 16];
    let estimate = ratio_of_samples(&base, &groups, 0.95).expect("trials");
    let (low, high) = estimate.interval.expect("an interval");
    assert!(low < 0.91 && high > 1.19, "{estimate:?}");
}

/// Neither does a choice hold for the larger group alone.
#[test]
fn size_with_far_group_is_not_near() {
    let none = SideDoubts::default();
    let of = |most, rest| of_blocks(&logs(&two_groups(most, rest, 16, 3)), 0.95).expect("blocks");
    assert!(is_no_worse(&of(1.0, 1.0), &none, true));
    assert!(!is_no_worse(&of(1.0, 0.7), &none, true));
}
