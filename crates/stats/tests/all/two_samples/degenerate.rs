//! Data that gives some of the two-sample functions no result: which ones, whatever is degenerate.

use iolab_stats::{mad, mann_whitney, ratio_of_medians, student, summary, tost_log, welch};

/// Whether each of the seven two-sample functions has a result.
fn answers(base: &[f64], new: &[f64], confidence: f64) -> [bool; 5] {
    [
        welch(base, new, confidence).is_some(),
        student(base, new, confidence).is_some(),
        mann_whitney(base, new).is_some(),
        ratio_of_medians(base, new, confidence).is_some(),
        tost_log(base, new, 0.05, 0.05).is_some(),
    ]
}

fn cv(data: &[f64]) -> Option<f64> {
    summary(data).and_then(|summary| summary.cv)
}

const FINE: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

#[test]
fn data_that_is_fine() {
    assert_eq!(answers(&FINE, &FINE, 0.95), [true; 5]);
}

#[test]
fn no_data() {
    assert_eq!(answers(&[], &FINE, 0.95), [false; 5]);
    assert_eq!(answers(&FINE, &[], 0.95), [false; 5]);
    assert_eq!(answers(&[], &[], 0.95), [false; 5]);
    assert_eq!((mad(&[]), summary(&[])), (None, None));
}

#[test]
fn one_value_has_ranks_and_ratios_only() {
    let expected = [false, false, true, true, false];
    assert_eq!(answers(&[3.0], &FINE, 0.95), expected);
    assert_eq!(answers(&FINE, &[3.0], 0.95), expected);
    assert_eq!((mad(&[3.0]), cv(&[3.0])), (Some(0.0), None));
}

#[test]
fn values_that_are_not_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let data = [1.0, bad, 2.0];
        assert_eq!(answers(&data, &FINE, 0.95), [false; 5]);
        assert_eq!(answers(&FINE, &data, 0.95), [false; 5]);
        assert_eq!((mad(&data), summary(&data)), (None, None));
    }
}

#[test]
fn a_confidence_outside_0_to_1() {
    for confidence in [0.0, 1.0, -1.0, 95.0, f64::NAN, f64::INFINITY] {
        // The rank test and the equivalence test need no variance.
        let expected = [false, false, true, false, true];
        assert_eq!(answers(&FINE, &FINE, confidence), expected);
    }
}

#[test]
fn differences_that_overflow() {
    let (low, high) = ([-f64::MAX, -f64::MAX / 2.0], [f64::MAX, f64::MAX / 2.0]);
    let expected = [false, false, true, false, false];
    assert_eq!(answers(&low, &high, 0.95), expected);
}

#[test]
fn ratios_that_overflow() {
    let (tiny, huge) = ([1e-300, 2e-300], [1e300, 2e300]);
    let expected = [true, true, true, false, false];
    assert_eq!(answers(&tiny, &huge, 0.95), expected);
}

#[test]
fn mean_zero_has_no_coefficient_of_variation() {
    assert_eq!(cv(&[-1.0, 1.0]), None);
    assert_eq!(cv(&[2.0, 2.0, 2.0]), Some(0.0));
}
