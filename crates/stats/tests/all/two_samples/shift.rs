use iolab_stats::{Interval, Shift, hodges_lehmann};

use super::data::{
    Pair, apart, close, ends, far, five, large, large_ties, published, thirty, ties,
};

#[track_caller]
fn check(
    (base, new): Pair,
    estimate: f64,
    ranks: (usize, usize),
    confidence: f64,
    interval: (f64, f64),
) {
    let ours = hodges_lehmann(&base, &new, 0.95).unwrap();
    close(ours.estimate, estimate);
    let found = ours.interval.unwrap();
    assert_eq!(found.ranks, Some(ranks));
    close(found.confidence, confidence);
    ends(found, interval.0, interval.1);
}

#[test]
fn shift_of_five() {
    check(
        five(),
        32.59999999999997,
        (3, 23),
        0.9682539682539683,
        (9.300000000000068, 55.60000000000002),
    );
}

#[test]
fn shift_of_published() {
    check(
        published(),
        0.305,
        (9, 42),
        0.96003996003996,
        (-0.15, 0.7599999999999999),
    );
}

#[test]
fn shift_of_ties() {
    check(ties(), 1.0, (16, 57), 0.953599341834636, (0.0, 3.0));
}

#[test]
fn shift_of_far() {
    check(far(), 2.5, (2, 19), 0.9682539682539683, (-8.0, 33.0));
}

#[test]
fn shift_of_thirty() {
    check(
        thirty(),
        18.2706560477495,
        (294, 547),
        0.9515139316784482,
        (-8.396409132613257, 49.54371429515271),
    );
}

#[test]
fn shift_of_large() {
    check(
        large(),
        2.69587830062591,
        (26898, 33103),
        0.9500315576775293,
        (2.002360328890845, 3.347827163957099),
    );
}

#[test]
fn shift_of_large_ties() {
    check(
        large_ties(),
        1.0,
        (26898, 33103),
        0.9500315576775293,
        (0.0, 2.0),
    );
}

#[test]
fn shift_of_apart() {
    check(
        apart(),
        10.04944444444444,
        (678, 1123),
        0.9502379490368533,
        (9.987777777777776, 10.11111111111111),
    );
}

/// All differences, made and sorted.
fn plainly(base: &[f64], new: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = base
        .iter()
        .flat_map(|x| new.iter().map(move |y| y - x))
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn every_rank_is_found_without_making_the_differences() {
    for (base, new) in [five(), ties(), thirty(), far()] {
        let all = plainly(&base, &new);
        for confidence in [0.01, 0.3, 0.6, 0.9, 0.99] {
            let shift = hodges_lehmann(&base, &new, confidence).unwrap();
            let Some(interval) = shift.interval else {
                continue;
            };
            let (low, high) = interval.ranks.unwrap();
            assert_eq!((interval.low, interval.high), (all[low - 1], all[high - 1]));
        }
    }
}

#[test]
fn three_against_three_have_no_95_percent_interval() {
    let shift = hodges_lehmann(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0], 0.95);
    assert_eq!(
        shift,
        Some(Shift {
            estimate: 4.0,
            interval: None
        })
    );
    // 2 of the 20 ways lie outside.
    let wide = hodges_lehmann(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0], 0.9).unwrap();
    let interval = wide.interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.0, 7.0));
    close(interval.confidence, 0.9);
}

#[test]
fn values_that_are_all_equal_have_no_width() {
    let Shift { estimate, interval } = hodges_lehmann(&[2.0; 9], &[2.5; 9], 0.95).unwrap();
    let Interval { low, high, .. } = interval.unwrap();
    assert_eq!((estimate, low, high), (0.5, 0.5, 0.5));
}
