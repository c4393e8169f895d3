//! p-values of the tests of two samples, as SciPy and mpmath give them.

use iolab_stats::{mann_whitney, student, tost_log, welch};

use super::data::{
    Pair, apart, close, close_within, far, five, large, large_ties, published, thirty, ties,
};

#[test]
fn t_tests_agree_with_scipy() {
    let all: [(Pair, f64, f64); 5] = [
        (published(), 0.06210134378107847, 0.1322505106778264),
        (ties(), 0.06144330318340547, 0.06149127050748472),
        (far(), 0.3270269486548517, 0.3592606087441523),
        (thirty(), 0.1519371436303655, 0.149673140860686),
        (apart(), 2.318420417991442e-132, 4.701795652349882e-133),
    ];
    for ((base, new), by_welch, by_student) in all {
        // A rounding in the last digit of t is multiplied by t^2 in p.
        close_within(welch(&base, &new).unwrap(), by_welch, 1e-10);
        close_within(student(&base, &new).unwrap(), by_student, 1e-10);
    }
}

#[test]
fn ranks_agree_with_scipy() {
    // The last was counted in whole numbers by reference_two_samples.py, with ties to fifty in each.
    let fifty =
        |step: i32, from: i32, of: i32| (0..50).map(move |i| f64::from((i * step + from) % of));
    let fifty = (fifty(1, 0, 17).collect(), fifty(3, 4, 19).collect());
    for ((base, new), p) in [
        (five(), 0.01587301587301587),
        (published(), 0.2544122544122544),
        (ties(), 0.08712464006581654),
        (far(), 0.5238095238095238),
        (thirty(), 0.1555783624559491),
        (large(), 2.660018874449592e-12),
        (large_ties(), 0.003224331143356905),
        (apart(), 6.929214843141313e-25),
        (fifty, 0.2510821104351005),
    ] {
        close(mann_whitney(&base, &new).unwrap(), p);
    }
}

#[test]
fn equivalence_agrees_with_scipy() {
    for ((base, new), margin, p) in [
        (published(), 0.05, 0.9114191532024418),
        (apart(), 0.05, 1.0),
        (thirty(), 0.3, 0.04465372031859373),
        (large(), 0.3, 5.388438949851684e-147),
    ] {
        close_within(tost_log(&base, &new, margin).unwrap(), p, 1e-9);
    }
}

#[test]
fn samples_that_do_not_vary() {
    for test in [welch, student] {
        assert_eq!(test(&[0.1; 5], &[0.1; 7]), Some(1.0));
        assert_eq!(test(&[2.0; 5], &[5.0; 7]), Some(0.0));
    }
    // The whole error comes from the one that varies.
    assert_eq!(welch(&[2.0; 5], &[1.0, 2.0, 3.0]), Some(1.0));
    for n in [1, 5, 40, 300] {
        assert_eq!(mann_whitney(&vec![3.5; n], &vec![3.5; n]), Some(1.0));
    }
    for (new, p) in [
        (1.0, 0.0),
        (1.04, 0.0),
        (0.96, 0.0),
        (1.06, 1.0),
        (0.94, 1.0),
    ] {
        assert_eq!(tost_log(&[1.0; 4], &[new; 4], 0.05), Some(p), "{new}");
    }
}

#[test]
fn numbers_whose_squares_vanish_still_vary() {
    let (base, new) = five();
    let tiny = |x: &[f64]| x.iter().map(|v| v * 1e-200).collect::<Vec<f64>>();
    let scaled = welch(&tiny(&base), &tiny(&new)).unwrap();
    close(scaled, welch(&base, &new).unwrap());
}
