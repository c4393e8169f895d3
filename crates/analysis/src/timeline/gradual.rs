//! Throughput that changes within a trial without a step: a drift, or tenths that differ by far more than the values within them.

use iolab_stats::{mann_kendall, mean, median};
use schemars::JsonSchema;
use serde::Serialize;

use super::FACTOR_MIN;

/// Parts of a trial that are compared.
const PARTS: usize = 10;
/// Fewest values: with fewer, tenths of dependent values differ too often.
const VALUES_MIN: usize = 100;
/// Level of the test for a trend of the tenths, over all trials of a run.
const ALPHA: f64 = 0.001;
/// Least distance between the first and the last tenth of a trend, in standard deviations within the tenths.
const TREND_SEPARATION: f64 = 4.0;
/// Least distance between the lowest and the highest tenth where there is no trend, likewise.
const RANGE_SEPARATION: f64 = 8.0;

/// Direction in which throughput changes over the tenths of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The test of Mann and Kendall shows a fall, or the first tenth is the highest and the last one the lowest.
    Falls,
    /// Throughput rises gradually.
    Rises,
    /// Neither holds.
    Neither,
}

/// Throughput that is not constant over a trial, though no step is found in it: medians of tenths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Gradual {
    /// Throughput of the first tenth, MB/s.
    pub first_mb_s: f64,
    /// Throughput of the last tenth, MB/s.
    pub last_mb_s: f64,
    /// Throughput of the lowest tenth, MB/s.
    pub lowest_mb_s: f64,
    /// Throughput of the highest tenth, MB/s.
    pub highest_mb_s: f64,
    /// Direction of the change.
    pub direction: Direction,
}

impl Gradual {
    /// Ratio of the throughput of the last tenth to the first.
    pub fn factor(&self) -> f64 {
        self.last_mb_s / self.first_mb_s
    }
}

/// Gradual course of the logarithms of throughput in one of `trials` trials. `None` if they show a constant
/// level, or are fewer than 100.
///
/// False positives by simulation (a test below, with 1000 series each of 100 and 200 values and of standard
/// deviation up to 0.4): at most 0.5 % of independent series, and of first-order autoregressive ones with a
/// coefficient of 0.6. With coefficients of 0.8 and 0.9 at most 1 % and 4 %.
pub(super) fn gradual(values: &[f64], trials: usize) -> Option<Gradual> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let bounds = |part: usize| part * values.len() / PARTS;
    let parts: Vec<&[f64]> = (0..PARTS)
        .map(|part| &values[bounds(part)..bounds(part + 1)])
        .collect();
    let medians: Vec<f64> = parts
        .iter()
        .map(|part| median(part))
        .collect::<Option<_>>()?;
    let (first, last) = (medians[0], medians[PARTS - 1]);
    let lowest = medians.iter().copied().reduce(f64::min)?;
    let highest = medians.iter().copied().reduce(f64::max)?;
    let spread = spread(&parts)?;
    let is_apart = |difference: f64, separation: f64| {
        difference.abs() >= FACTOR_MIN.ln().max(separation * spread)
    };
    let trend = mann_kendall(&medians)
        .filter(|trend| trend.p * trials.max(1) as f64 <= ALPHA)
        .filter(|_| is_apart(last - first, TREND_SEPARATION));
    let direction = match trend {
        Some(trend) if trend.tau < 0.0 => Direction::Falls,
        Some(_) => Direction::Rises,
        // One that reaches a level early has ties, or no order, for the rest of its time.
        None if first == highest && last == lowest => Direction::Falls,
        None if first == lowest && last == highest => Direction::Rises,
        None => Direction::Neither,
    };
    let is_shown = trend.is_some() || is_apart(highest - lowest, RANGE_SEPARATION);
    is_shown.then(|| Gradual {
        first_mb_s: first.exp(),
        last_mb_s: last.exp(),
        lowest_mb_s: lowest.exp(),
        highest_mb_s: highest.exp(),
        direction,
    })
}

/// The standard deviation of all values about the means of their parts.
fn spread(parts: &[&[f64]]) -> Option<f64> {
    let of_part = |part: &&[f64]| {
        let centre = mean(part)?;
        Some(part.iter().map(|x| (x - centre).powi(2)).sum::<f64>())
    };
    let squares: f64 = parts.iter().map(of_part).sum::<Option<f64>>()?;
    let n: usize = parts.iter().map(|part| part.len()).sum();
    Some((squares / (n - parts.len()).max(1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::lasting;
    use super::super::short_levels::level_changes;
    use super::*;

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

    fn shown(n: usize, mb_s: impl Fn(f64) -> f64) -> Option<Direction> {
        gradual(&noisy(n, mb_s), 1).map(|found| found.direction)
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
            assert_eq!(shown(n, decline), Some(Direction::Falls));
            assert_eq!(shown(n, |at| 100.0 * (1.0 + at)), Some(Direction::Rises));
        }
        let found = gradual(&noisy(200, |at| 100.0 * 0.25_f64.powf(at)), 1);
        let factor = found.map(|found| found.factor());
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
        assert_eq!(shown(200, slow_range), None);
        let sawtooth = |at: f64| 100.0 * (1.0 - 0.8 * (at * 20.0).fract());
        assert_eq!(shown(200, sawtooth), None);
        assert_eq!(shown(60, |at| 100.0 * (1.0 + at)), None);
    }
}
