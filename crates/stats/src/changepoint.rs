//! Shifts of the level: data in order of time.
//!
//! Lasting shifts of the level, in series whose values depend on each other. Data in order of time.
//!
//! Steady state of a series of rounds.

use schemars::JsonSchema;
use serde::Serialize;

use crate::describe::{mean, median, median_of_sorted, sorted};
use crate::time_series::welch_dependent;

/// The fewest values between two changes.
const SEGMENT_MIN: usize = 2;

/// The places at which the mean shifts, each the index of the first value of a new level.
///
/// PELT minimises `sum over segments of [sum (x - mean)^2 / s^2] + penalty * changes` exactly. That is the
/// Gaussian cost with the noise `s` known. `s = median |x_(t+1) - x_t| / (0.6745 sqrt(2))`, the MAD about 0, is
/// estimated from the differences of neighbours, so that the shifts themselves do not inflate it. When more
/// than half of the neighbours are equal, `s` is the root mean square of the differences over `sqrt(2)`.
/// Segments hold at least 2 values. Of equally good solutions the one whose last change is the earliest is
/// taken.
///
/// `penalty` is what a change must save, in units of `s^2`. The default is [`changepoint_penalty`]. On
/// independent normal values it finds a change in 2 % of series or less; of values with a long
/// tail in more, so give it their logarithms. Values that are autocorrelated or drift look like
/// shifts: see [`crate::autocorrelation`] and [`crate::mann_kendall`]. Source: Killick, Fearnhead and Eckley, "Optimal detection of
/// changepoints with a linear computational cost", JASA 107 (2012) 1590-1598.
///
/// The cost grows with `n` times the length of the segments: with `n^2` when nothing shifts.
///
/// All equal values have no change. `None` below 4 values, when a value is not finite, when
/// `penalty` is negative or not finite, or when a square overflows.
pub fn changepoints(data: &[f64], penalty: Option<f64>) -> Option<Vec<usize>> {
    let n = data.len();
    let penalty = penalty.unwrap_or_else(|| changepoint_penalty(n));
    if n < 2 * SEGMENT_MIN || !(penalty >= 0.0 && penalty.is_finite()) {
        return None;
    }
    let centre = median(data)?;
    let noise = noise(data)?;
    if noise == 0.0 {
        return Some(Vec::new());
    }
    let costs = Costs::of(data.iter().map(|x| (x - centre) / noise))?;
    Some(pelt(&costs, n, penalty))
}

/// The default penalty of a change in a series of `n` values: `3 ln(n) (1 + 20 / n)`. The second factor compensates for the
/// uncertain noise of short series.
pub fn changepoint_penalty(n: usize) -> f64 {
    let n = n.max(1) as f64;
    3.0 * n.ln() * (1.0 + 20.0 / n)
}

/// The standard deviation of the noise, from the differences of neighbours.
fn noise(data: &[f64]) -> Option<f64> {
    /// The third quartile of the standard normal distribution.
    const NORMAL_QUARTILE: f64 = 0.674_489_750_196_081_7;
    let steps: Vec<f64> = data
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .collect();
    let steps = sorted(&steps)?;
    let robust = median_of_sorted(&steps) / NORMAL_QUARTILE;
    if robust > 0.0 {
        return Some(robust / 2.0_f64.sqrt()).filter(|s| s.is_finite());
    }
    let greatest = steps[steps.len() - 1];
    if greatest == 0.0 {
        return Some(0.0);
    }
    let squares: f64 = steps.iter().map(|d| (d / greatest).powi(2)).sum();
    Some(greatest * (squares / steps.len() as f64 / 2.0).sqrt())
}

/// Cumulative sums, from which the cost of any segment follows.
struct Costs {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Costs {
    /// `None` when a sum is not finite.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        let (mut sum, mut square) = (0.0, 0.0);
        for x in values {
            sum += x;
            square += x * x;
            sums.push(sum);
            squares.push(square);
        }
        (sum.is_finite() && square.is_finite()).then_some(Self { sums, squares })
    }

    /// The sum of squared deviations from the mean of `from..to`, which must not be empty.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        let square = self.squares[to] - self.squares[from];
        (square - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// The lowest cost of `..end`, and the last change in it.
#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    last_change: usize,
}

fn pelt(costs: &Costs, n: usize, penalty: f64) -> Vec<usize> {
    // Compensates for the penalty of the first segment, which is not a change.
    let start = Best {
        cost: -penalty,
        last_change: 0,
    };
    let unreachable = Best {
        cost: f64::INFINITY,
        last_change: 0,
    };
    let mut best = vec![unreachable; n + 1];
    best[0] = start;
    let mut candidates: Vec<usize> = Vec::new();
    for end in SEGMENT_MIN..=n {
        let newest = end - SEGMENT_MIN;
        if best[newest].cost.is_finite() {
            candidates.push(newest);
        }
        for &change in &candidates {
            let cost = best[change].cost + costs.cost(change, end) + penalty;
            if cost < best[end].cost {
                best[end] = Best {
                    cost,
                    last_change: change,
                };
            }
        }
        prune(&mut candidates, &best, costs, end);
    }
    trace(&best, n)
}

/// Drops the changes that lose for good.
///
/// Where a change up to some place costs more than the best that ends there, a new segment
/// from that place is better whatever follows. The place is the newest that the next step
/// can begin a segment at.
fn prune(candidates: &mut Vec<usize>, best: &[Best], costs: &Costs, end: usize) {
    let newest = end + 1 - SEGMENT_MIN;
    let bound = best[newest].cost;
    candidates.retain(|&change| best[change].cost + costs.cost(change, newest) <= bound);
}

fn trace(best: &[Best], n: usize) -> Vec<usize> {
    let mut changes = Vec::new();
    let mut end = n;
    while best[end].last_change > 0 {
        end = best[end].last_change;
        changes.push(end);
    }
    changes.reverse();
    changes
}

/// Least size of a shift, in standard deviations within the levels. Values that depend on each other wander; the levels that they
/// seem to have for a while are closer together.
const SEPARATION: f64 = 5.0;

/// Criteria for a lasting shift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lasting {
    /// Fewest values of a level.
    pub length: usize,
    /// Least difference of the medians of adjacent levels.
    pub shift: f64,
    /// Level of the test of each shift, before division by the number of possible positions.
    pub alpha: f64,
}

/// The places at which the level shifts and stays, each the index of the first value of a new level.
///
/// [`changepoints`] proposes. While any proposed change fails a condition, the one with the least shift among
/// those is dropped, and the levels on both sides become one. Each of the two levels must have `length` values.
/// Their medians must differ by `shift`, and by five standard deviations of the values about the means of their
/// levels (all levels pooled). [`welch_dependent`] must distinguish them at `alpha` divided by the number of
/// values. The test alone is not enough: it is unknown how much a short piece of a wandering series wanders.
///
/// Its errors are known by simulation: 1000 to 4000 series each of 8, 12, 24, 48, 96 and 200 values of standard
/// deviation 0.1 or 0.2. `length` was 4 or a twentieth, `shift` ln 1.25, `alpha` 0.01. The test finds a shift
/// in at most 0.3 % of independent series, normal or Student's t with 3 degrees of freedom. The same holds for
/// first-order autoregressive series with coefficients up to 0.6. With coefficients of 0.8 and 0.9 it is at
/// most 1.5 %. For series that jump at random between two values it is at most 1 %. One true shift by ten
/// standard deviations in the middle is found in nine of ten series of 8 values and in all of 12.
///
/// Source: for the proposals as [`changepoints`], for the test as [`welch_dependent`]; the division is Bonferroni's.
///
/// `None` where [`changepoints`] gives none, or a result overflows.
pub fn lasting_shifts(data: &[f64], must: &Lasting) -> Option<Vec<usize>> {
    let mut changes = changepoints(data, None)?;
    loop {
        let levels = levels(data, &changes);
        let spread = spread_within(&levels)?;
        let weakest = levels
            .windows(2)
            .enumerate()
            .filter_map(|(change, pair)| {
                let shift = (median(pair[0])? - median(pair[1])?).abs();
                let lasts = must.holds(pair, shift, spread, data.len());
                (!lasts).then_some((change, shift))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1));
        match weakest {
            Some((change, _)) => changes.remove(change),
            None => return Some(changes),
        };
    }
}

impl Lasting {
    fn holds(&self, pair: &[&[f64]], shift: f64, spread: f64, places: usize) -> bool {
        pair.iter().all(|level| level.len() >= self.length)
            && shift >= self.shift
            && shift >= SEPARATION * spread
            && welch_dependent(pair[0], pair[1]).is_some_and(|p| p * places as f64 <= self.alpha)
    }
}

/// The values between consecutive changes.
fn levels<'a>(data: &'a [f64], changes: &[usize]) -> Vec<&'a [f64]> {
    let starts = std::iter::once(0).chain(changes.iter().copied());
    let ends = changes.iter().copied().chain([data.len()]);
    starts.zip(ends).map(|(from, to)| &data[from..to]).collect()
}

/// The standard deviation of all values about the means of their levels; `None` when a level is empty or a value is not
/// finite.
pub fn spread_within(levels: &[&[f64]]) -> Option<f64> {
    let mut squares = 0.0;
    for level in levels {
        let centre = mean(level)?;
        squares += level.iter().map(|x| (x - centre).powi(2)).sum::<f64>();
    }
    let n: usize = levels.iter().map(|level| level.len()).sum();
    let spread = (squares / (n - levels.len()).max(1) as f64).sqrt();
    spread.is_finite().then_some(spread)
}

/// Criteria for a steady window of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyLimits {
    /// Number of rounds in the window.
    pub window: usize,
    /// Largest range of the window, over its mean.
    pub range: f64,
    /// Largest change of the fitted line over the window, over its mean.
    pub slope: f64,
}

impl SteadyLimits {
    /// Five rounds within 20 %, whose line rises or falls by at most 10 %: SNIA, Solid State Storage Performance Test Specification,
    /// version 2.0.2 (2020), section 2.1.24.
    pub const SNIA: Self = Self {
        window: 5,
        range: 0.2,
        slope: 0.1,
    };
}

/// Steadiness of the last window of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Steadiness {
    /// Range of the window, over its mean.
    pub range: f64,
    /// Change of the fitted line from the first to the last round of the window, over its mean; never negative.
    pub slope: f64,
    /// Whether both are within their limits.
    pub reached: bool,
}

/// Whether the last window of rounds is steady. An earlier steady window does not count.
///
/// A window is steady if two numbers are within their limits, both over the mean of the window: its range, and
/// the rise or fall of its least-squares line. [`SteadyLimits::SNIA`] explains both.
///
/// `None` with fewer rounds than the window has (at least two), when a round of the window is not finite, or
/// when its mean is not positive.
pub fn steady_state(rounds: &[f64], limits: SteadyLimits) -> Option<Steadiness> {
    let length = limits.window.max(2);
    let window = rounds.get(rounds.len().checked_sub(length)?..)?;
    let mean = mean(window).filter(|mean| *mean > 0.0)?;
    let greatest = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = window.iter().copied().fold(f64::INFINITY, f64::min);
    let range = (greatest - least) / mean;
    let middle = (window.len() - 1) as f64 / 2.0;
    let places = || (0..window.len()).map(|i| i as f64 - middle);
    let covariance: f64 = places().zip(window).map(|(at, y)| at * (y / mean)).sum();
    let slope = covariance / places().map(|at| at * at).sum::<f64>();
    let slope = slope.abs() * 2.0 * middle;
    (range.is_finite() && slope.is_finite()).then_some(Steadiness {
        range,
        slope,
        reached: range <= limits.range && slope <= limits.slope,
    })
}

/// Whether the line through the last window of rounds rises or falls by more than its limit, and by more than
/// scatter explains. Scatter alone tilts a line through a few rounds, in 95 % of cases by less than 1.96
/// standard errors.
///
/// The scatter is estimated from all rounds: its variance is half of the mean square of the differences between
/// neighbours, which a change of level hardly inflates. Source: von Neumann, Ann. Math. Statist. 12 (1941)
/// 367-395. `None` as for [`steady_state`], or where a difference is not finite.
pub fn window_slopes(rounds: &[f64], limits: SteadyLimits) -> Option<bool> {
    let slope = steady_state(rounds, limits)?.slope;
    let length = limits.window.max(2);
    let window = mean(rounds.get(rounds.len() - length..)?)?;
    let squares = rounds.windows(2);
    let squares: Vec<f64> = squares
        .map(|pair| ((pair[1] - pair[0]) / window).powi(2))
        .collect();
    let scatter = (mean(&squares)? / 2.0).sqrt();
    let span = (length - 1) as f64;
    // Positions in the window are one apart around their middle.
    let places = span * length as f64 * (length + 1) as f64 / 12.0;
    let error = scatter * span / places.sqrt();
    error
        .is_finite()
        .then_some(slope > limits.slope && slope > NORMAL_95 * error)
}

/// Half of the 95 % interval of a normal distribution, in standard deviations.
const NORMAL_95: f64 = 1.96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_scatter_tilts_does_not_slope() {
        let slopes = |rounds: &[f64]| window_slopes(rounds, SteadyLimits::SNIA);
        // Falls by 26 % over the window, as earlier rounds did before they rose again.
        let scattered = [
            100.0, 75.0, 120.0, 80.0, 115.0, 78.0, 118.0, 110.0, 90.0, 105.0, 85.0,
        ];
        assert_eq!(slopes(&scattered), Some(false));
        let steady = by_snia(&scattered).unwrap();
        assert!(steady.slope > SteadyLimits::SNIA.slope, "{steady:?}");
        let falls = [100.0, 101.0, 99.0, 100.0, 90.0, 80.0, 70.0, 60.0];
        assert_eq!(slopes(&falls), Some(true));
        let level = [100.0, 101.0, 99.0, 100.0, 101.0, 50.0, 51.0, 49.0];
        assert_eq!(slopes(&level), Some(true));
        assert_eq!(slopes(&[100.0; 5]), Some(false));
        assert_eq!(slopes(&[100.0; 4]), None);
    }

    fn by_snia(rounds: &[f64]) -> Option<Steadiness> {
        steady_state(rounds, SteadyLimits::SNIA)
    }

    /// The range alone would pass: 18 % from end to end. NumPy: `polyfit(range(5), y, 1)[0] * 4 / y.mean()`.
    #[test]
    fn a_slope_within_the_range_is_not_steady() {
        let steady = by_snia(&[100.0, 104.0, 109.0, 114.0, 119.0]).unwrap();
        assert!(steady.range < SteadyLimits::SNIA.range && !steady.reached);
        assert!(
            (steady.slope - 19.2 / 109.2).abs() < 1e-12,
            "{}",
            steady.slope
        );
    }

    #[test]
    fn too_few_rounds_and_impossible_values_have_none() {
        for rounds in [
            &[][..],
            &[1.0; 4],
            &[1.0, 1.0, f64::NAN, 1.0, 1.0],
            &[1.0, 1.0, f64::INFINITY, 1.0, 1.0],
            &[0.0; 5],
            &[-1.0; 5],
            &[f64::MAX; 5],
        ] {
            let steady = by_snia(rounds);
            assert!(steady.is_none_or(|s| s.range.is_finite() && s.slope.is_finite()));
            assert!(steady.is_none() || rounds == [f64::MAX; 5], "{rounds:?}");
        }
        assert!(by_snia(&[7.0; 5]).unwrap().reached);
    }

    #[test]
    fn other_limits_judge_another_window() {
        let rounds = [900.0, 100.0, 110.0, 120.0];
        let limits = |window, range, slope| SteadyLimits {
            window,
            range,
            slope,
        };
        let reached = |limits| steady_state(&rounds, limits).map(|steady| steady.reached);
        assert_eq!(reached(limits(3, 0.19, 0.19)), Some(true));
        assert_eq!(reached(limits(3, 0.18, 0.19)), Some(false));
        assert_eq!(reached(limits(3, 0.19, 0.18)), Some(false));
        assert_eq!(reached(limits(4, 1.0, 1.0)), Some(false));
        assert_eq!(reached(limits(5, 1.0, 1.0)), None);
    }
}
