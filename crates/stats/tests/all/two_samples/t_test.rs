use iolab_stats::{TTest, student, welch};

use super::data::{Pair, apart, close, close_within, ends, far, five, published, thirty, ties};

/// t, degrees of freedom, p, difference, and the ends of the interval.
type Expected = [f64; 6];

#[track_caller]
fn check(ours: Option<TTest>, expected: Expected) {
    let [t, df, p, difference, low, high] = expected;
    let ours = ours.unwrap();
    close(ours.t.unwrap(), t);
    close(ours.df, df);
    // A rounding in the last digit of t is multiplied by t^2 in p.
    close_within(ours.p, p, 1e-10);
    close(ours.difference, difference);
    ends(ours.interval, low, high);
    assert_eq!(ours.interval.confidence, 0.95);
}

#[test]
fn t_tests_agree_with_scipy() {
    // By Welch, by Student.
    let all: [(Pair, Expected, Expected); 5] = [
        (
            published(),
            [
                2.04138309221007, 12.97053844325754, 0.06210134378107847, 0.337,
                -0.01972499633510406, 0.693724996335104,
            ],
            [
                1.606136660273869, 13.0, 0.1322505106778264, 0.337, -0.1162890975191484,
                0.7902890975191483,
            ],
        ),
        (
            ties(),
            [
                2.023399262759083, 14.82834885821686, 0.06144330318340547, 1.236111111111111,
                -0.06732285804898202, 2.539545080271203,
            ],
            [
                2.021092408068316, 15.0, 0.06149127050748472, 1.236111111111111,
                -0.06749502561042665, 2.539717247832648,
            ],
        ),
        (
            far(),
            [
                1.082891664090405, 5.139261756506071, 0.3270269486548517, 8.200000047683716,
                -11.10767924487465, 27.50767934024208,
            ],
            [
                0.9810289039844292, 7.0, 0.3592606087441523, 8.200000047683716, -11.56488037231527,
                27.9648804676827,
            ],
        ),
        (
            thirty(),
            [
                1.453428827854772, 53.57951615701673, 0.1519371436303655, 21.24022263176093,
                -8.064093293324856, 50.54453855684671,
            ],
            [
                1.460747097138867, 56.0, 0.149673140860686, 21.24022263176093, -7.888213725687892,
                50.36865898920975,
            ],
        ),
        (
            apart(),
            [
                352.0344613271179, 82.15507277152571, 2.318420417991442e-132, 10.04944444444445,
                9.992657443260755, 10.10623144562814,
            ],
            [
                347.4911522551266, 83.0, 4.701795652349882e-133, 10.04944444444445,
                9.991923725763158, 10.10696516312574,
            ],
        ),
    ];
    for ((base, new), by_welch, by_student) in all {
        check(welch(&base, &new, 0.95), by_welch);
        check(student(&base, &new, 0.95), by_student);
    }
}

#[test]
fn five_trials_each_give_eight_degrees_of_freedom() {
    // Neither varies more than the other: Welch's and Student's degrees of freedom agree on 8,
    // and the interval is made with t(0.975; 8) = 2.306004135204166.
    let base = [1.0, 2.0, 3.0, 4.0, 5.0];
    let new = [11.0, 12.0, 13.0, 14.0, 15.0];
    for test in [welch(&base, &new, 0.95), student(&base, &new, 0.95)] {
        let test = test.unwrap();
        close(test.df, 8.0);
        // The standard error is sqrt(2.5 / 5 + 2.5 / 5) = 1.
        close(test.interval.half_width(), 2.306004135204166);
    }
}

#[test]
fn samples_that_do_not_vary() {
    for test in [welch, student] {
        let equal = test(&[0.1; 5], &[0.1; 7], 0.95).unwrap();
        assert_eq!((equal.t, equal.df, equal.p), (Some(0.0), 10.0, 1.0));
        assert_eq!((equal.interval.low, equal.interval.high), (0.0, 0.0));
        let apart = test(&[2.0; 5], &[5.0; 7], 0.95).unwrap();
        assert_eq!((apart.t, apart.df, apart.p), (None, 10.0, 0.0));
        assert_eq!(apart.difference, 3.0);
        assert_eq!((apart.interval.low, apart.interval.high), (3.0, 3.0));
    }
}

#[test]
fn constant_sample_beside_a_varying_one() {
    // The whole error comes from `new`, and so do all degrees of freedom.
    let test = welch(&[2.0; 5], &[1.0, 2.0, 3.0], 0.95).unwrap();
    close(test.df, 2.0);
    assert_eq!((test.t, test.p), (Some(0.0), 1.0));
}

#[test]
fn numbers_whose_squares_vanish_still_vary() {
    let (base, new) = five();
    let tiny = |x: &[f64]| x.iter().map(|v| v * 1e-200).collect::<Vec<f64>>();
    let (plain, scaled) = (
        welch(&base, &new, 0.95).unwrap(),
        welch(&tiny(&base), &tiny(&new), 0.95).unwrap(),
    );
    close(scaled.t.unwrap(), plain.t.unwrap());
    close(scaled.p, plain.p);
}
