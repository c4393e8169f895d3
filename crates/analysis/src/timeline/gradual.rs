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
}
