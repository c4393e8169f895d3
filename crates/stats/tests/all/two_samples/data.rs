//! The pairs of samples of `reference_two_samples.py`, and how results are compared.

/// Base and new.
pub(crate) type Pair = (Vec<f64>, Vec<f64>);

pub(crate) fn five() -> Pair {
    (
        vec![512.3, 498.7, 505.1, 530.9, 501.2],
        vec![540.2, 533.8, 551.0, 529.4, 560.7],
    )
}

/// Hollander and Wolfe, Nonparametric Statistical Methods (1973), p. 69: the example of R's
/// `wilcox.test`.
pub(crate) fn published() -> Pair {
    (
        vec![1.15, 0.88, 0.90, 0.74, 1.21],
        vec![0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
    )
}

pub(crate) fn ties() -> Pair {
    (
        vec![1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0],
        vec![2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 6.0],
    )
}

/// Values far from zero, whose difference is a small rest of great numbers.
pub(crate) fn far() -> Pair {
    (
        [4.0, 7.0, 13.0, 16.0].map(|x| 1e9 + x).to_vec(),
        [5.0, 8.0, 8.0, 30.0, 40.0].map(|x| 1e9 + x).to_vec(),
    )
}

pub(crate) fn thirty() -> Pair {
    let base = |i: i32| 100.0 + f64::from(37 * i % 31).powf(1.5);
    let new = |i: i32| 110.0 + 1.25 * f64::from(17 * i % 29).powf(1.5);
    ((0..30).map(base).collect(), (0..28).map(new).collect())
}

pub(crate) fn large() -> Pair {
    let base = |i: i32| 50.0 + f64::from(37 * i % 211).sqrt();
    let new = |i: i32| 50.5 + f64::from(53 * i % 307).sqrt();
    ((0..200).map(base).collect(), (0..300).map(new).collect())
}

pub(crate) fn large_ties() -> Pair {
    let base = |i: i32| f64::from(37 * i % 11);
    let new = |i: i32| f64::from(53 * i % 13);
    ((0..200).map(base).collect(), (0..300).map(new).collect())
}

/// Every value of new above every value of base.
pub(crate) fn apart() -> Pair {
    let base = |i: i32| 10.0 + f64::from(i) / 100.0;
    let new = |i: i32| 20.0 + f64::from(i) / 90.0;
    ((0..40).map(base).collect(), (0..45).map(new).collect())
}

#[track_caller]
pub(crate) fn close(ours: f64, reference: f64) {
    close_within(ours, reference, 1e-11);
}

#[track_caller]
pub(crate) fn close_within(ours: f64, reference: f64, relative: f64) {
    let error = (ours - reference).abs() / reference.abs().max(1e-300);
    assert!(error < relative, "{ours:e} vs {reference:e}: {error:e}");
}
