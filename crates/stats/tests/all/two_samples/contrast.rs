//! Groups of runs, one of which may have a single run: `reference_contrast.py` made the numbers with SciPy.

use iolab_stats::contrast;

use super::data::close_within;

const BASE: [f64; 6] = [6.62, 6.60, 6.65, 6.61, 6.63, 6.58];

/// Difference, standard deviation, error, degrees of freedom, p, ends of the interval,
/// what is found with 90 % at the one-sided level 0.05.
type Expected = [f64; 8];

#[track_caller]
fn check(base: &[f64], new: &[f64], expected: Expected) {
    let ours = contrast(base, new, 0.0).unwrap();
    let interval = ours.interval(0.95).unwrap();
    let found = [
        ours.difference,
        ours.sd,
        ours.error,
        ours.df,
        ours.p(),
        interval.low,
        interval.high,
        ours.detectable(0.05, 0.9).unwrap(),
    ];
    for (ours, expected) in found.into_iter().zip(expected) {
        close_within(ours, expected, 1e-9);
    }
}

#[test]
fn contrasts_as_scipy() {
    check(
        &BASE,
        &[6.51],
        [
            -0.10499999999999954, 0.024289915602982343, 0.02623610743485663, 5.0,
            0.010301736766227873, -0.17244206123551492, -0.037557938764484156, 0.09158847805701749,
        ],
    );
    check(
        &[6.62],
        &[6.51, 6.53, 6.50],
        [
            -0.10666666666666735, 0.015275252316519626, 0.01763834207376412, 2.0,
            0.026271008879704884, -0.18255832734145744, -0.03077500599187727, 0.08476288128809395,
        ],
    );
    check(
        &[6.62, 6.60],
        &[6.51, 6.53],
        [
            -0.08999999999999986, 0.014142135623731277, 0.014142135623731277, 2.0,
            0.023812939816048363, -0.15084869844822274, -0.02915130155177699, 0.06796149876339502,
        ],
    );
    check(
        &BASE,
        &[6.60, 6.64, 6.61, 6.66],
        [
            0.012500000000000178, 0.02555631037532618, 0.016496527412357683, 8.0,
            0.4703382857724139, -0.025541060426587985, 0.05054106042658834, 0.0537186872227747,
        ],
    );
}

#[test]
fn equal_values_have_the_spread_of_their_resolution() {
    let same = [5.0; 4];
    let plain = contrast(&same, &[5.0], 0.0).unwrap();
    assert_eq!((plain.sd, plain.p()), (0.0, 1.0));
    assert_eq!(contrast(&same, &[5.1], 0.0).unwrap().p(), 0.0);
    let coarse = contrast(&same, &[5.1], 0.1).unwrap();
    assert_eq!(coarse.sd, 0.1);
    assert!(coarse.p() > 0.3, "{}", coarse.p());
}

#[test]
fn bad_data_or_no_spread_has_no_contrast() {
    assert_eq!(contrast(&[1.0], &[2.0], 0.0), None);
    assert_eq!(contrast(&[], &[2.0, 3.0, 4.0], 0.0), None);
    assert_eq!(contrast(&[1.0, f64::NAN], &[2.0], 0.0), None);
    assert_eq!(contrast(&[1.0, 2.0], &[2.0], f64::NAN), None);
    assert_eq!(contrast(&[f64::MAX, f64::MAX], &[f64::MIN], 0.0), None);
    let some = contrast(&[1.0, 2.0], &[2.0], 0.0).unwrap();
    assert_eq!(some.detectable(0.6, 0.9), None);
    assert_eq!(some.detectable(0.05, 0.4), None);
    assert_eq!(some.interval(1.0), None);
}
