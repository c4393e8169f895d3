use std::cell::Cell;

use iolab_stats::{bca_interval, cv, mean, median};

use super::data::close;

fn skewed() -> Vec<f64> {
    (0..32)
        .map(|i| f64::from(i * 13 % 37).powi(2) + 3.0)
        .collect()
}

const OUTLIER: [f64; 16] = [
    1015.0, 992.0, 1004.0, 987.0, 2500.0, 1009.0, 999.0, 1001.0, 1023.0, 978.0, 985.0, 1011.0,
    1040.0, 995.0, 1006.0, 972.0,
];

type Statistic = fn(&[f64]) -> Option<f64>;

#[test]
fn scipys_interval_of_the_same_resamples() {
    for (data, statistic, confidence, resamples, seed, low, high) in [
        (
            skewed(),
            mean as Statistic,
            0.95,
            2000,
            1,
            301.8215378109634,
            567.6528885358464,
        ),
        (
            OUTLIER.to_vec(),
            mean,
            0.9,
            999,
            7,
            999.625,
            1375.1070252483414,
        ),
        (
            skewed(),
            cv,
            0.95,
            2000,
            3,
            0.7288073842477064,
            1.206808193794503,
        ),
        (skewed(), median, 0.95, 1000, 5, 159.5, 580.0),
    ] {
        let ours = bca_interval(&data, statistic, confidence, resamples, seed).unwrap();
        close(ours.low, low);
        close(ours.high, high);
        assert_eq!((ours.confidence, ours.ranks), (confidence, None));
    }
}

#[test]
fn a_seed_decides_and_order_does_not() {
    let mut data = skewed();
    let first = bca_interval(&data, mean, 0.95, 500, 9);
    assert_eq!(bca_interval(&data, mean, 0.95, 500, 9), first);
    assert_ne!(bca_interval(&data, mean, 0.95, 500, 10), first);
    data.reverse();
    assert_eq!(bca_interval(&data, mean, 0.95, 500, 9), first);
}

#[test]
fn a_skewed_sample_has_a_skewed_interval() {
    let interval = bca_interval(&OUTLIER, mean, 0.95, 5000, 1).unwrap();
    let centre = mean(&OUTLIER).unwrap();
    assert!(interval.high - centre > 2.0 * (centre - interval.low));
}

#[test]
fn a_statistic_that_never_changes_has_no_width() {
    let equal = bca_interval(&[4.5; 8], mean, 0.95, 200, 1).unwrap();
    assert_eq!((equal.low, equal.high), (4.5, 4.5));
    let constant = bca_interval(&OUTLIER, |_| Some(1.25), 0.95, 200, 1).unwrap();
    assert_eq!((constant.low, constant.high), (1.25, 1.25));
}

#[test]
fn the_statistic_is_taken_as_often_as_said() {
    let count = Cell::new(0);
    let counted = |x: &[f64]| {
        count.set(count.get() + 1);
        mean(x)
    };
    bca_interval(&OUTLIER, counted, 0.95, 300, 1).unwrap();
    assert_eq!(count.get(), 300 + 16 + 1);
}

#[test]
fn what_cannot_be_asked() {
    assert_eq!(bca_interval(&[], mean, 0.95, 200, 1), None);
    assert_eq!(bca_interval(&[1.0], mean, 0.95, 200, 1), None);
    assert_eq!(
        bca_interval(&[1.0, f64::NAN, 2.0], mean, 0.95, 200, 1),
        None
    );
    assert_eq!(bca_interval(&OUTLIER, mean, 0.95, 39, 1), None);
    assert!(bca_interval(&OUTLIER, mean, 0.95, 40, 1).is_some());
    assert_eq!(bca_interval(&OUTLIER, mean, 0.95, 0, 1), None);
    for confidence in [0.0, 1.0, -1.0, f64::NAN] {
        assert_eq!(bca_interval(&OUTLIER, mean, confidence, 200, 1), None);
    }
    assert_eq!(bca_interval(&OUTLIER, |_| None, 0.95, 200, 1), None);
    assert_eq!(
        bca_interval(&OUTLIER, |_| Some(f64::NAN), 0.95, 200, 1),
        None
    );
    // Too short for the jackknife, and all on one side of the estimate.
    let needs_all = |x: &[f64]| (x.len() == 16).then(|| mean(x)).flatten();
    assert_eq!(bca_interval(&OUTLIER, needs_all, 0.95, 200, 1), None);
    let first_is_special = Cell::new(true);
    let lower_later = |_: &[f64]| Some(if first_is_special.take() { 1.0 } else { 0.0 });
    assert_eq!(bca_interval(&OUTLIER, lower_later, 0.95, 200, 1), None);
}
