//! One sample against SciPy and mpmath, by reference.py in this folder.

use iolab_stats::{mad, mean, mean_interval, median, median_interval, quartiles, sd, summary};

struct Reference {
    data: Vec<f64>,
    median: f64,
    quartiles: (f64, f64),
    mean: f64,
    sd: f64,
    mad: f64,
    t_interval: (f64, f64),
    /// Ranks and coverage of the median's interval at 0.95.
    ranks: Option<(usize, usize, f64)>,
}

fn references() -> Vec<Reference> {
    vec![
        Reference {
            data: vec![3.0, 1.0, 2.0, 6.0, 5.0, 4.0],
            median: 3.5,
            quartiles: (2.25, 4.75),
            mean: 3.5,
            sd: 1.8708286933869707,
            mad: 1.5,
            t_interval: (1.5366856930196753, 5.463314306980324),
            ranks: Some((1, 6, 0.96875)),
        },
        Reference {
            data: vec![
                101.5, 99.2, 100.4, 98.7, 250.0, 100.9, 99.9, 100.1, 102.3, 97.8,
            ],
            median: 100.25,
            quartiles: (99.375, 101.35),
            mean: 115.08,
            sd: 47.42436785732275,
            mad: 1.1499999999999986,
            t_interval: (81.15465094197094, 149.00534905802905),
            ranks: Some((2, 9, 0.978515625)),
        },
        Reference {
            // Far from zero: a one-pass variance loses every digit here.
            data: vec![1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0],
            median: 1000000010.0,
            quartiles: (1000000006.25, 1000000013.75),
            mean: 1000000010.0,
            sd: 5.477225575051661,
            mad: 4.5,
            t_interval: (1000000001.2845118, 1000000018.7154882),
            ranks: None,
        },
        Reference {
            data: (0..23).map(|i| f64::from((7 * i) % 23).powf(1.5)).collect(),
            median: 36.4828726939094,
            quartiles: (12.938639172099009, 67.04639781775012),
            mean: 41.748690707582476,
            sd: 32.9745611016764,
            mad: 27.5171273060906,
            t_interval: (27.48942120190863, 56.007960213256325),
            ranks: Some((7, 17, 0.9653103351593018)),
        },
        Reference {
            data: (0..100).map(|i| f64::from(i).sqrt()).collect(),
            median: 7.035533905932738,
            quartiles: (4.974744871391589, 8.616807459743066),
            mean: 6.6146294710314795,
            sd: 2.409299525379058,
            mad: 1.7701291220993332,
            t_interval: (6.136572175060856, 7.092686767002103),
            ranks: Some((40, 61, 0.9647997997822951)),
        },
    ]
}

#[track_caller]
fn close(ours: f64, reference: f64) {
    let error = (ours - reference).abs() / reference.abs().max(1e-300);
    assert!(error < 1e-12, "{ours} vs {reference}");
}

#[test]
fn location_spread_and_intervals_agree_with_scipy() {
    for r in references() {
        let s = summary(&r.data).unwrap();
        close(median(&r.data).unwrap(), r.median);
        let (q1, q3) = quartiles(&r.data).unwrap();
        close(q1, r.quartiles.0);
        close(q3, r.quartiles.1);
        close(mean(&r.data).unwrap(), r.mean);
        close(sd(&r.data).unwrap(), r.sd);
        close(mad(&r.data).unwrap(), r.mad);
        let interval = mean_interval(&r.data, 0.95).unwrap();
        close(interval.low, r.t_interval.0);
        close(interval.high, r.t_interval.1);
        assert_eq!(interval.ranks, None);
        // A summary has what its parts say.
        assert_eq!(
            (s.median, (s.q1, s.q3)),
            (median(&r.data).unwrap(), (q1, q3))
        );
        assert_eq!((s.mean, s.sd), (mean(&r.data), sd(&r.data)));
        assert_eq!(Some(s.mad), mad(&r.data));
        assert_eq!(s.mean_interval, Some(interval));
        let interval = median_interval(&r.data, 0.95);
        assert_eq!(s.median_interval, interval);
        let Some((low, high, confidence)) = r.ranks else {
            assert_eq!(interval, None);
            continue;
        };
        let interval = interval.unwrap();
        let mut sorted = r.data.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(interval.ranks, Some((low, high)));
        let ends = (sorted[low - 1], sorted[high - 1]);
        assert_eq!((interval.low, interval.high), ends);
        close(interval.confidence, confidence);
    }
}

#[test]
fn one_value_has_a_place_and_no_spread() {
    let s = summary(&[7.5]).unwrap();
    assert_eq!(
        (s.n, s.min, s.q1, s.median, s.q3, s.max),
        (1, 7.5, 7.5, 7.5, 7.5, 7.5)
    );
    assert_eq!(s.mean, Some(7.5));
    assert_eq!(
        (s.sd, s.median_interval, s.mean_interval),
        (None, None, None)
    );
}

#[test]
fn equal_values_have_no_width() {
    let s = summary(&[0.1; 11]).unwrap();
    assert_eq!(s.sd, Some(0.0));
    assert_eq!((s.q1, s.median, s.q3), (0.1, 0.1, 0.1));
    for interval in [s.median_interval.unwrap(), s.mean_interval.unwrap()] {
        assert_eq!((interval.low, interval.high), (0.1, 0.1));
        assert_eq!(interval.precision(0.1), Some(0.0));
    }
}

#[test]
fn no_data_and_values_not_finite_are_refused() {
    let with = |bad: f64| vec![1.0, 2.0, bad, 3.0, 4.0, 5.0, 6.0];
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(with);
    for data in bad.into_iter().chain([Vec::new()]) {
        let numbers = [median(&data), mean(&data), sd(&data), mad(&data)];
        assert_eq!(numbers, [None; 4], "{data:?}");
        assert_eq!((quartiles(&data), summary(&data)), (None, None));
        let intervals = [median_interval(&data, 0.95), mean_interval(&data, 0.95)];
        assert_eq!(intervals, [None; 2], "{data:?}");
    }
}

#[test]
fn overflow_is_none_and_never_infinite() {
    let data = [f64::MAX, f64::MAX, f64::MAX];
    assert_eq!(median(&data), Some(f64::MAX));
    assert_eq!(mean(&data), None);
    assert_eq!(sd(&data), None);
    let apart = [-f64::MAX, f64::MAX];
    assert_eq!(median(&apart), Some(0.0));
    assert!(quartiles(&apart).unwrap().0.is_finite());
    assert_eq!(mean_interval(&apart, 0.95), None);
}

#[test]
fn a_confidence_outside_0_to_1_is_refused() {
    let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    for confidence in [0.0, 1.0, -1.0, 95.0, f64::NAN, f64::INFINITY] {
        assert_eq!(median_interval(&data, confidence), None);
        assert_eq!(mean_interval(&data, confidence), None);
    }
}

#[test]
fn a_centre_of_zero_has_no_precision() {
    let interval = median_interval(&[-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], 0.95).unwrap();
    assert_eq!(interval.precision(0.0), None);
    let still = median_interval(&[0.0; 6], 0.95).unwrap();
    assert_eq!(still.precision(0.0), None);
}
