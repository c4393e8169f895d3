use super::super::lasting;
use super::*;
use crate::timeline::recurring_changes::level_changes;

/// Pseudorandom numbers from 0 to 1: xorshift64*.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly normal, with standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn autoregressive(&mut self, n: usize, coefficient: f64, deviation: f64) -> Vec<f64> {
        let own = deviation * (1.0 - coefficient * coefficient).sqrt();
        let mut value = deviation * self.normal();
        (0..n)
            .map(|_| {
                value = coefficient * value + own * self.normal();
                value
            })
            .collect()
    }
}

/// Logarithms of a course with noise of 5 %.
fn noisy(n: usize, mb_s: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut draws = Draws(7);
    (0..n)
        .map(|at| mb_s(at as f64 / n as f64).ln() + 0.05 * draws.normal())
        .collect()
}

/// Whether a change that is found falls; `None` without one.
fn falls(n: usize, mb_s: impl Fn(f64) -> f64) -> Option<bool> {
    let found = gradual(&noisy(n, mb_s), 1)?;
    assert!(found.has_direction, "{found:?}");
    Some(found.last_mb_s < found.first_mb_s)
}

#[test]
fn noise_is_rarely_taken_for_a_course() {
    for n in [100, 200] {
        for (coefficient, most) in [(0.0, 0.005), (0.6, 0.005), (0.8, 0.01), (0.9, 0.04)] {
            for deviation in [0.05, 0.2, 0.4] {
                let mut draws = Draws(11);
                let made_up = (0..1000).filter(|_| {
                    let course = draws.autoregressive(n, coefficient, deviation);
                    let changes = level_changes(&course, &lasting(n, 1));
                    gradual(&course, 1).is_some() || changes.is_none_or(|all| !all.is_empty())
                });
                let share = made_up.count() as f64 / 1000.0;
                assert!(share <= most, "{n} {coefficient} {deviation}: {share}");
            }
        }
    }
}

#[test]
fn a_decline_and_a_rise_have_a_direction() {
    for n in [100, 187, 200] {
        let decline = |at: f64| 41.0 / (1.0 + 6.0 * (at - 0.08).max(0.0));
        assert_eq!(falls(n, decline), Some(true));
        assert_eq!(falls(n, |at| 100.0 * (1.0 + at)), Some(false));
    }
    let found = gradual(&noisy(200, |at| 100.0 * 0.25_f64.powf(at)), 1);
    let factor = found.map(|found| found.last_mb_s / found.first_mb_s);
    assert!(factor.is_some_and(|factor| (0.27..0.31).contains(&factor)));
}

#[test]
fn fall_with_slow_recoveries_is_not_constant() {
    // Fast for 6 to 16 % of the time, then 4 to 16 in each pass.
    for (fast, passes) in [(0.06, 5.0), (0.08, 3.0), (0.16, 1.5)] {
        let course = noisy(187, |at| match at < fast {
            true => 41.0,
            false => 4.0 * 4.0_f64.powf((at * passes).fract()),
        });
        let changes = level_changes(&course, &lasting(187, 1)).unwrap_or_default();
        let is_seen = gradual(&course, 1).is_some() || !changes.is_empty();
        assert!(is_seen, "{fast}");
    }
}

#[test]
fn recurring_change_is_one_level() {
    // A range of addresses that is slow once per pass, and garbage collection after each burst of writes.
    let slow_range = |at: f64| {
        if (at * 20.0).fract() < 0.2 {
            20.0
        } else {
            100.0
        }
    };
    assert_eq!(falls(200, slow_range), None);
    let sawtooth = |at: f64| 100.0 * (1.0 - 0.8 * (at * 20.0).fract());
    assert_eq!(falls(200, sawtooth), None);
    assert_eq!(falls(60, |at| 100.0 * (1.0 + at)), None);
}
