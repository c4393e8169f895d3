//! Fitted curves: against SciPy (by curves_reference.py in this folder), on known shapes, and on noise.

use iolab_stats::{Breakpoint, fit_latency_bandwidth, fit_piecewise};
use proptest::prelude::*;

use crate::simulated::Draws;

type Curve = Vec<(f64, Vec<f64>)>;

#[track_caller]
fn close(ours: f64, scipy: f64, relative: f64) {
    let error = (ours - scipy).abs() / scipy.abs().max(1e-300);
    assert!(error < relative, "{ours} vs {scipy}");
}

fn sizes() -> [f64; 8] {
    std::array::from_fn(|i| 512.0 * 4.0_f64.powi(i as i32))
}

#[test]
fn latency_and_bandwidth() {
    let noise = [1.02, 0.97, 1.01, 1.03, 0.99, 0.96, 1.02, 1.0];
    let times: Vec<f64> = sizes()
        .iter()
        .zip(noise)
        .map(|(s, e)| (80e-6 + s / 500e6) * e)
        .collect();
    let fit = fit_latency_bandwidth(&sizes(), &times).unwrap();
    close(fit.t0, 8.029756993595208e-05, 1e-9);
    close(fit.bandwidth, 502575765.1399509, 1e-9);
    close(fit.n_half, 40355.61264943983, 1e-9);
    close(fit.relative_error_max, 0.03698108251128063, 1e-9);
}

#[test]
fn latency_is_not_negative() {
    let times = sizes().map(|s| s.powf(1.1) / 500e6);
    let fit = fit_latency_bandwidth(&sizes(), &times).unwrap();
    assert_eq!((fit.t0, fit.n_half), (0.0, 0.0));
    close(fit.bandwidth, 190495632.8229344, 1e-9);
    close(fit.relative_error_max, 0.46701376803266237, 1e-9);
}

/// The curve of the reference: bends at 13.4 and 18.7 octaves, with a wiggle.
fn bent(i: i32) -> f64 {
    let x = 9.0 + f64::from(i);
    let wiggle = 0.02 * (2.7 * f64::from(i)).sin();
    x.min(13.4) + 0.25 * (x - 13.4).max(0.0) - 0.6 * (x - 18.7).max(0.0) + wiggle
}

fn repeated() -> Curve {
    let trials = |i: i32| {
        let spread = 0.01 * f64::from(1 + i % 3);
        [-2.0, -1.0, 0.0, 1.5, 3.0].map(|t| (bent(i) + spread * t).exp2())
    };
    (0..14)
        .map(|i| (f64::from(9 + i).exp2(), trials(i).to_vec()))
        .collect()
}

fn single() -> Curve {
    (0..14)
        .map(|i| (f64::from(9 + i).exp2(), vec![bent(i).exp2()]))
        .collect()
}

fn octaves(fit: &[Breakpoint]) -> Vec<f64> {
    fit.iter().map(|bend| bend.x.log2()).collect()
}

#[test]
fn straight_pieces() {
    for (curve, places) in [
        (repeated(), [13.418025012067574, 18.745816392806027]),
        (single(), [13.426536589284698, 18.737835915431816]),
    ] {
        let fit = fit_piecewise(&curve, 2, 0, 1).unwrap();
        assert_eq!(fit.len(), 2);
        for (ours, scipy) in octaves(&fit).iter().zip(places) {
            assert!((ours - scipy).abs() < 1e-4, "{ours} {scipy}");
        }
        assert!(fit.iter().all(|bend| bend.interval.is_none()));
    }
}

/// Ten trials at each of 22 sizes, with lognormal noise, about a function of octaves.
fn noisy(source: &mut Draws, shape: impl Fn(f64) -> f64) -> Curve {
    (3..25)
        .map(|octave| {
            let x = f64::from(octave);
            let trial = |_| (shape(x) + 0.05 * source.normal()).exp2();
            (x.exp2(), (0..10).map(trial).collect())
        })
        .collect()
}

/// Bends at 7.4, 12.5 and 19.1 octaves.
fn three_bends(x: f64) -> f64 {
    x - 0.8 * (x - 7.4).max(0.0) - 0.5 * (x - 12.5).max(0.0) + 0.8 * (x - 19.1).max(0.0)
}

#[test]
fn known_knots_are_found_within_their_intervals() {
    let mut source = Draws::new(8);
    let mut held = 0;
    for seed in 0..8 {
        let fit = fit_piecewise(&noisy(&mut source, three_bends), 3, 60, seed).unwrap();
        assert_eq!(fit.len(), 3, "{fit:?}");
        let expected = [(7.4_f64, 1.0, 0.2), (12.5, 0.2, -0.3), (19.1, -0.3, 0.5)];
        for (breakpoint, (place, before, after)) in fit.iter().zip(expected) {
            assert!((breakpoint.x.log2() - place).abs() < 0.5, "{breakpoint:?}");
            assert!(
                (breakpoint.slope_before - before).abs() < 0.1,
                "{breakpoint:?}"
            );
            assert!(
                (breakpoint.slope_after - after).abs() < 0.1,
                "{breakpoint:?}"
            );
            let interval = breakpoint.interval.unwrap();
            assert!(interval.low <= breakpoint.x && breakpoint.x <= interval.high);
            held += u32::from(interval.low <= place.exp2() && place.exp2() <= interval.high);
        }
    }
    assert!(held >= 20, "{held} of 24 intervals hold the true place");
}

#[test]
fn a_straight_line_has_no_knots() {
    let mut source = Draws::new(9);
    let straight = (0..40)
        .filter(|_| {
            let fit = fit_piecewise(&noisy(&mut source, |x| 0.7 * x), 3, 0, 1).unwrap();
            fit.is_empty()
        })
        .count();
    assert!(straight >= 37, "{straight} of 40");
}

#[test]
fn a_fit_without_residuals_is_judged_too() {
    let line: Curve = (0..12)
        .map(|i| (f64::from(i).exp2(), vec![3.0 * f64::from(i).exp2()]))
        .collect();
    assert_eq!(fit_piecewise(&line, 3, 100, 1), Some(Vec::new()));
}

#[test]
fn points_bound_the_knots() {
    for n in 2..14 {
        let fit = fit_piecewise(&repeated()[..n], 9, 0, 1).unwrap();
        let allowed = n.saturating_sub(5) / 2;
        assert!(fit.len() <= allowed, "{n} points");
        let mut places = octaves(&fit);
        places.insert(0, 9.0);
        places.push(8.0 + n as f64);
        let apart = places.windows(2).all(|w| w[1] - w[0] >= 1.0 - 1e-9);
        assert!(apart || n < 3, "{places:?}");
    }
}

#[test]
fn equal_seeds_give_equal_intervals() {
    let curve = noisy(&mut Draws::new(1), three_bends);
    let fit = |seed| fit_piecewise(&curve, 2, 40, seed).unwrap();
    assert_eq!(fit(5), fit(5));
    assert_ne!(fit(5), fit(6));
}

#[test]
fn intervals_need_resamples_and_repeated_trials() {
    let with = |curve: &Curve, resamples| {
        let fit = fit_piecewise(curve, 2, resamples, 1).unwrap();
        fit.iter().all(|bend| bend.interval.is_some())
    };
    assert!(with(&repeated(), 40));
    assert!(!with(&repeated(), 39));
    assert!(!with(&single(), 40));
}

#[test]
fn degenerate_curves_have_no_fit() {
    let fit = |curve: &[(f64, Vec<f64>)]| fit_piecewise(curve, 3, 50, 1);
    assert_eq!(fit(&[]), None);
    assert_eq!(fit(&[(1.0, vec![1.0])]), None);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(fit(&[(1.0, vec![1.0]), (bad, vec![1.0])]), None);
        assert_eq!(fit(&[(1.0, vec![1.0]), (2.0, vec![1.0, bad])]), None);
    }
    assert_eq!(fit(&[(1.0, vec![1.0]), (2.0, vec![])]), None);
    assert_eq!(fit(&[(1.0, vec![1.0]), (1.0, vec![2.0])]), None);
    let flat: Curve = (1..20).map(|i| (f64::from(i), vec![5.0; 4])).collect();
    assert_eq!(fit(&flat), Some(Vec::new()));
}

#[test]
fn vanishing_bandwidth_is_none() {
    let sizes = [5.96e-309, 4.23e-282, 7.55e-309];
    let times = [3.21e85, 7.0, 1.0];
    assert_eq!(fit_latency_bandwidth(&sizes, &times), None);
}

/// Mostly usable numbers from the least to the greatest, occasionally anything.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        40 => prop::num::f64::POSITIVE | prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
        40 => (1..50_i32).prop_map(f64::from),
        1 => prop::num::f64::ANY,
    ]
}

proptest! {
    #[test]
    fn any_times_give_finite_numbers(
        points in prop::collection::vec((number(), number()), 0..10),
    ) {
        let (sizes, times): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        if let Some(fit) = fit_latency_bandwidth(&sizes, &times) {
            prop_assert!(fit.t0 >= 0.0 && fit.bandwidth > 0.0);
            let all = [fit.t0, fit.bandwidth, fit.n_half, fit.relative_error_max];
            prop_assert!(all.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn no_other_latency_and_bandwidth_is_better(
        noise in prop::collection::vec(0.5..2.0, 8), t0 in 0.0..1e-3, other in 0.5..2.0, shift in -1e-4..1e-4,
    ) {
        let times: Vec<f64> = sizes().iter().zip(noise).map(|(s, e)| (t0 + s / 5e8) * e).collect();
        if let Some(fit) = fit_latency_bandwidth(&sizes(), &times) {
            let error = |t0: f64, bandwidth: f64| -> f64 {
                let relative = |(s, t): (&f64, &f64)| ((t0 + s / bandwidth) / t - 1.0).powi(2);
                sizes().iter().zip(&times).map(relative).sum()
            };
            let best = error(fit.t0, fit.bandwidth);
            let moved = f64::max(0.0, fit.t0 + shift);
            prop_assert!(best <= error(moved, fit.bandwidth * other) + 1e-9);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_order_of_the_points_does_not_matter(turn in 1..14_usize) {
        let mut turned = repeated();
        turned.rotate_left(turn);
        prop_assert_eq!(fit_piecewise(&turned, 2, 0, 1), fit_piecewise(&repeated(), 2, 0, 1));
    }

    #[test]
    fn any_curve_gives_finite_numbers(
        curve in prop::collection::vec((number(), prop::collection::vec(number(), 1..5)), 0..15),
        breakpoints_max in 0..5_usize,
    ) {
        if let Some(fit) = fit_piecewise(&curve, breakpoints_max, 40, 1) {
            for breakpoint in &fit {
                let ends = breakpoint.interval.map_or([0.0; 2], |i| [i.low, i.high]);
                let all = [breakpoint.x, breakpoint.slope_before, breakpoint.slope_after, ends[0], ends[1]];
                prop_assert!(all.iter().all(|x| x.is_finite()), "{:?}", breakpoint);
            }
        }
    }
}
