//! Shifts of the level: data in order of time.

use crate::describe::{median, median_of_sorted, sorted};

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
/// shifts: see [`crate::lag1`] and [`crate::mann_kendall`]. Source: Killick, Fearnhead and Eckley, "Optimal detection of
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
