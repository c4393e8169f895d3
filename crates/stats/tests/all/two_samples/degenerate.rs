//! Data that gives some of the two-sample functions no result: which ones, whatever is degenerate.

use iolab_stats::{mann_whitney, student, tost_log, welch};

/// Whether each of the two-sample functions has a result.
fn answers(base: &[f64], new: &[f64]) -> [bool; 4] {
    [
        welch(base, new).is_some(),
        student(base, new).is_some(),
        mann_whitney(base, new).is_some(),
        tost_log(base, new, 0.05).is_some(),
    ]
}

const FINE: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

#[test]
fn each_degenerate_sample_has_its_answers() {
    let apart = [f64::MAX, f64::MAX / 2.0];
    for (base, new, expected) in [
        (&FINE[..], &FINE[..], [true; 4]),
        (&[], &FINE, [false; 4]),
        (&[], &[], [false; 4]),
        (&[3.0], &FINE, [false, false, true, false]),
        (&[1.0, f64::NAN, 2.0], &FINE, [false; 4]),
        (&[1.0, f64::INFINITY, 2.0], &FINE, [false; 4]),
        (&[1.0, 0.0, 2.0], &FINE, [true, true, true, false]),
        (&apart.map(|x| -x), &apart, [false, false, true, false]),
    ] {
        assert_eq!(answers(base, new), expected, "{base:?} {new:?}");
        assert_eq!(answers(new, base), expected, "{new:?} {base:?}");
    }
    for margin in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(tost_log(&FINE, &FINE, margin), None);
    }
}
