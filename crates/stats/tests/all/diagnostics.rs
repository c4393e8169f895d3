//! Diagnostics against SciPy, statsmodels and mpmath, by diagnostics_reference.py in this folder.

use iolab_stats::{
    autocorrelation, effective_sample_size, ljung_box, mann_kendall, quantile_ranks,
};

struct Reference {
    data: Vec<f64>,
    /// Autocorrelations at lags 1 to 5.
    autocorrelations: [f64; 5],
    /// Lags, statistic, p.
    ljung_box: [(usize, f64); 3],
    effective: f64,
    /// tau, p.
    kendall: (f64, f64),
    /// Slope, and the ends of its interval.
    slope: f64,
}

fn series(n: u32, value: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..n).map(|i| value(f64::from(i))).collect()
}

fn references() -> [Reference; 4] {
    let [a, b] = short_series();
    let [c, d] = long_series();
    [a, b, c, d]
}

fn short_series() -> [Reference; 2] {
    [
        Reference {
            data: vec![
                101.5, 99.2, 100.4, 98.7, 250.0, 100.9, 99.9, 100.1, 102.3, 97.8,
            ],
            autocorrelations: [
                -0.1274104721574876, -0.1319904576883014, -0.1502274420901552,
                -0.12934071139309097, -0.07255105269159075,
            ],
            ljung_box: [
                (1, 0.6417615555472564),
                (5, 0.9322796311582521),
                (8, 0.9933720323060601),
            ],
            effective: 10.0,
            kendall: (-0.1111111111111111, 0.7274895282186948),
            slope: -0.125,
        },
        Reference {
            data: vec![1.0, 2.5, 2.0, 4.0, 3.5, 5.5, 5.0, 7.5, 6.5, 9.0, 8.5, 8.0],
            autocorrelations: [
                0.682601880877743, 0.5783699059561129, 0.19827586206896552, 0.11128526645768026,
                -0.1967084639498433,
            ],
            ljung_box: [
                (1, 0.00763880706509024),
                (5, 0.011924996555433564),
                (8, 0.00044613028821549307),
            ],
            effective: 3.0623999999999993,
            kendall: (0.7878787878787877, 0.00010742344075677409),
            slope: 0.75,
        },
    ]
}

fn long_series() -> [Reference; 2] {
    [
        Reference {
            data: series(40, |i| (17.0 * i % 41.0).sqrt() + 0.02 * i),
            autocorrelations: [
                -0.30518677572743397, 0.05160219678818899, -0.0343010192753507,
                -0.2794028904501981, 0.5382681598563788,
            ],
            ljung_box: [
                (1, 0.04517377427093736),
                (5, 0.0005883187971561251),
                (8, 0.00022355641812359952),
            ],
            effective: 40.0,
            kendall: (0.13333333333333333, 0.2317636406442522),
            slope: 0.025007814508568486,
        },
        Reference {
            data: series(300, |i| (37.0 * i % 101.0).sqrt() + 0.01 * i),
            autocorrelations: [
                -0.1847582835161132, -0.03701509204985397, 0.4682273912148005,
                -0.25581981037944457, 0.206085574977666,
            ],
            ljung_box: [
                (1, 0.0012993588811644598),
                (5, 2.895879980307183e-22),
                (8, 2.9082003215751555e-45),
            ],
            effective: 200.9500878223783,
            kendall: (0.23741360089186178, 8.687782711713068e-10),
            slope: 0.010000000000000016,
        },
    ]
}

#[track_caller]
fn close(ours: f64, reference: f64) {
    let error = (ours - reference).abs() / reference.abs().max(1e-300);
    assert!(error < 1e-9, "{ours} vs {reference}");
}

#[test]
fn diagnostics_agree_with_scipy_and_statsmodels() {
    for r in references() {
        for (lag, expected) in (1..).zip(r.autocorrelations) {
            close(autocorrelation(&r.data, lag).unwrap(), expected);
        }
        for (lags, p) in r.ljung_box {
            close(ljung_box(&r.data, lags).unwrap(), p);
        }
        close(effective_sample_size(&r.data).unwrap(), r.effective);
        let trend = mann_kendall(&r.data).unwrap();
        close(trend.tau, r.kendall.0);
        close(trend.p, r.kendall.1);
        close(trend.slope_per_trial, r.slope);
    }
}

/// Both ranks and the confidence achieved.
type Ranks = (u64, u64, f64);

#[test]
fn ranks_of_quantiles() {
    let expected: [(u64, f64, f64, Ranks); 10] = [
        (20, 0.5, 0.95, (6, 15, 0.9586105346679688)),
        (40, 0.9, 0.95, (32, 40, 0.9697238116441209)),
        (400, 0.99, 0.95, (392, 400, 0.9612808870665179)),
        (1_000, 0.25, 0.99, (215, 287, 0.9914813201038662)),
        (5_000, 0.999, 0.95, (4990, 5000, 0.9796289355159518)),
        (100_000, 0.999, 0.95, (99880, 99920, 0.9547890568019047)),
        (1_000_000, 0.5, 0.95, (499020, 500981, 0.9501210313476318)),
        (3_000_000, 0.99, 0.9, (2969716, 2970284, 0.9006336589900489)),
        (
            1_000_000_000,
            0.9999,
            0.95,
            (999899380, 999900620, 0.9500873251136901),
        ),
        (
            1_000_000_000_000,
            0.99,
            0.95,
            (989999804986, 990000195014, 0.9500000538305718),
        ),
    ];
    for (n, q, confidence, (low, high, achieved)) in expected {
        let ranks = quantile_ranks(n, q, confidence);
        assert_eq!((ranks.0, ranks.1), (Some(low), Some(high)), "{n} {q}");
        close(ranks.2, achieved);
    }
}

#[test]
fn values_that_do_not_vary_have_no_order() {
    for data in [&[][..], &[1.0], &[3.0; 9], &[f64::NAN, 1.0, 2.0]] {
        assert_eq!(mann_kendall(data), None, "{data:?}");
    }
    assert_eq!(mann_kendall(&[1.0, 2.0]), None);
    assert_eq!(mann_kendall(&[f64::MAX, -f64::MAX, f64::MAX]), None);
}
