use iolab_stats::alternatives::ratio_of_medians;
use iolab_stats::{Ratio, ratio_of_means};

use super::data::{
    Pair, apart, close, close_within, ends, far, five, large, published, thirty, ties,
};

#[track_caller]
fn check(ours: Option<Ratio>, ratio: f64, low: f64, high: f64) {
    let ours = ours.unwrap();
    close(ours.ratio, ratio);
    ends(ours.interval.unwrap(), low, high);
}

#[track_caller]
fn means((base, new): Pair, ratio: f64, low: f64, high: f64) {
    check(ratio_of_means(&base, &new, 0.95), ratio, low, high);
}

#[track_caller]
fn medians((base, new): Pair, ratio: f64, low: f64, high: f64) {
    check(ratio_of_medians(&base, &new, 0.95), ratio, low, high);
}

#[test]
fn ratios_of_means() {
    means(
        five(),
        1.065497213719488,
        1.028059951525434,
        1.104297770533188,
    );
    means(
        published(),
        1.345286885245902,
        0.9933962436860088,
        1.821827709856589,
    );
    means(
        ties(),
        1.429951690821256,
        0.9580919151253944,
        2.134202163489661,
    );
    means(far(), 1.0000000082, 0.9999999888923211, 1.000000027507679);
    means(
        thirty(),
        1.129260843432653,
        0.9560630669406254,
        1.333834656526297,
    );
    means(
        large(),
        1.041461601004614,
        1.029958836609005,
        1.053092830329148,
    );
    means(
        apart(),
        1.985722848891069,
        1.977380217750602,
        1.994100677862344,
    );
}

#[test]
fn ratios_of_medians() {
    medians(
        ties(),
        1.333333333333333,
        0.702611004680251,
        2.530244709996851,
    );
    medians(
        thirty(),
        1.153374781843988,
        0.8601956721593272,
        1.546477656710729,
    );
    medians(
        large(),
        1.04276964983705,
        1.026007036977917,
        1.059806125525323,
    );
    medians(
        apart(),
        1.985722848891069,
        1.971828272097864,
        1.9997153344459,
    );
}

#[test]
fn the_published_ratio_of_medians() {
    // The example of ci.ratio.median2 in the R package statpsych, by Bonett.
    let base = [
        32.0, 39.0, 26.0, 35.0, 43.0, 27.0, 40.0, 37.0, 34.0, 29.0, 49.0, 42.0, 40.0,
    ];
    let new = [36.0, 44.0, 47.0, 42.0, 49.0, 39.0, 46.0, 31.0, 33.0, 48.0];
    let ours = ratio_of_medians(&base, &new, 0.95).unwrap();
    close_within(ours.ratio, 1.162162, 1e-6);
    close_within(ours.interval.unwrap().low, 0.927667, 1e-6);
    close_within(ours.interval.unwrap().high, 1.455933, 1e-6);
    means(
        (base.to_vec(), new.to_vec()),
        1.140591966173361,
        0.9837277024922781,
        1.322469652936735,
    );
}

#[test]
fn the_interval_of_medians_starts_at_six_values() {
    let six = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    for few in 1..6 {
        for ratio in [
            ratio_of_medians(&six[..few], &six, 0.95),
            ratio_of_medians(&six, &six[..few], 0.95),
        ] {
            assert_eq!(ratio.unwrap().interval, None);
        }
    }
    assert!(
        ratio_of_medians(&six, &six, 0.95)
            .unwrap()
            .interval
            .is_some()
    );
}

#[test]
fn one_value_has_a_ratio_of_means_and_no_interval() {
    let ratio = ratio_of_means(&[2.0], &[3.0, 5.0], 0.95).unwrap();
    assert_eq!((ratio.ratio, ratio.interval), (2.0, None));
}

#[test]
fn equal_values_have_an_interval_without_width() {
    for ratio in [ratio_of_medians, ratio_of_means] {
        let found = ratio(&[0.3; 8], &[0.7; 8], 0.95).unwrap();
        let interval = found.interval.unwrap();
        assert_eq!((interval.low, interval.high), (found.ratio, found.ratio));
    }
}

#[test]
fn only_positive_values_have_a_ratio() {
    let fine = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY] {
        let data = [1.0, bad, 3.0, 4.0, 5.0, 6.0];
        for ratio in [ratio_of_medians, ratio_of_means] {
            assert_eq!(ratio(&data, &fine, 0.95), None);
            assert_eq!(ratio(&fine, &data, 0.95), None);
        }
    }
}
