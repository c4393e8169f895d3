//! Lasting shifts: found where there is one, and nowhere else, however the values depend on each other.

use iolab_stats::{Lasting, lasting_shifts};
use proptest::prelude::*;

use crate::simulated::Draws;

fn must(n: usize) -> Lasting {
    Lasting {
        length: (n / 20).max(4),
        shift: 1.25_f64.ln(),
        alpha: 0.01,
    }
}

fn shifts(data: &[f64]) -> Vec<usize> {
    lasting_shifts(data, &must(data.len())).expect("finite values")
}

/// A stationary series of standard deviation 1.
type Noise = fn(&mut Draws, usize) -> Vec<f64>;

fn independent(source: &mut Draws, n: usize) -> Vec<f64> {
    (0..n).map(|_| source.normal()).collect()
}

fn two_valued(source: &mut Draws, n: usize) -> Vec<f64> {
    let mode = |source: &mut Draws| if source.uniform() < 0.5 { 1.0 } else { -1.0 };
    (0..n)
        .map(|_| mode(source) + 0.1 * source.normal())
        .collect()
}

fn autoregressive(source: &mut Draws, n: usize, coefficient: f64) -> Vec<f64> {
    let rest = (1.0 - coefficient * coefficient).sqrt();
    let mut x = source.normal();
    (0..n)
        .map(|_| {
            x = coefficient * x + rest * source.normal();
            x
        })
        .collect()
}

#[test]
fn stationary_noise_has_none() {
    let kinds: [(&str, Noise); 4] = [
        ("independent", independent),
        ("two values", two_valued),
        ("autoregressive 0.5", |s, n| autoregressive(s, n, 0.5)),
        ("autoregressive 0.8", |s, n| autoregressive(s, n, 0.8)),
    ];
    for (name, noise) in kinds {
        for n in [8, 16, 40, 150] {
            let mut source = Draws::new(n as u64);
            let false_alarms = (0..500)
                .filter(|_| {
                    let series: Vec<f64> = noise(&mut source, n).iter().map(|x| 0.1 * x).collect();
                    !shifts(&series).is_empty()
                })
                .count();
            // 1 % of 500 and twice its standard deviation.
            assert!(false_alarms <= 9, "{name}, {n}: {false_alarms} of 500");
        }
    }
}

#[test]
fn a_shift_is_found_where_it_is() {
    for (n, at) in [(8, 4), (12, 6), (20, 5), (60, 40), (200, 20)] {
        let mut source = Draws::new(n as u64);
        let found = (0..100)
            .filter(|_| {
                let noise = autoregressive(&mut source, n, 0.4);
                let series: Vec<f64> = (0..n)
                    .map(|i| 0.05 * noise[i] - f64::from(u8::from(i >= at)))
                    .collect();
                shifts(&series) == [at]
            })
            .count();
        assert!(found >= 85, "{n}: {found} of 100");
    }
}

#[test]
fn what_is_short_or_small_is_not_lasting() {
    let level = |short: usize, by: f64| -> Vec<f64> {
        (0..40)
            .map(|i| (i % 5) as f64 * 0.001 + if i < 20 || i >= 20 + short { 0.0 } else { by })
            .collect()
    };
    assert!(shifts(&level(3, 1.0)).is_empty());
    assert_eq!(shifts(&level(6, 1.0)), [20, 26]);
    assert!(shifts(&level(20, 0.1)).is_empty());
    assert_eq!(shifts(&level(20, 0.3)), [20]);
}

#[test]
fn a_steady_slope_is_no_shift() {
    let series: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01).collect();
    assert!(shifts(&series).is_empty());
}

#[test]
fn equal_or_few_values_have_no_shift() {
    assert!(shifts(&[2.0; 30]).is_empty());
    assert_eq!(lasting_shifts(&[1.0, 2.0], &must(2)), None);
    assert_eq!(lasting_shifts(&[1.0, 2.0, f64::NAN, 1.0], &must(4)), None);
}

proptest! {
    #[test]
    fn levels_have_at_least_the_requested_length(
        values in prop::collection::vec(any::<f64>(), 0..60), length in 0usize..20,
    ) {
        let must = Lasting { length, ..must(0) };
        if let Some(found) = lasting_shifts(&values, &must) {
            let mut ends = vec![0];
            ends.extend(&found);
            ends.push(values.len());
            prop_assert!(found.is_empty() || ends.windows(2).all(|w| w[1] - w[0] >= length));
        }
    }
}
