//! By how much one sample lies above another.

use crate::describe::sorted;
use crate::interval::{Interval, is_confidence};
use crate::normal;
use crate::rank_sum;

/// An estimate of the shift between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The shift from `base` to `new`, in the unit of the data.
    pub estimate: f64,
    /// Its interval, whose ranks count the ordered differences; `None` when the samples are too
    /// small for the confidence.
    pub interval: Option<Interval>,
}

/// The Hodges-Lehmann estimate of the shift: the median of all differences `new - base`.
///
/// The interval is `[D_(k), D_(mn+1-k)]` of the ordered differences, with the greatest `k` for
/// which `1 - 2 P(U <= k-1)` reaches `confidence`, `U` being the Mann-Whitney statistic without
/// ties. It assumes independent values and two distributions that differ by a shift alone; with
/// ties the coverage is at least the stated one. Exact for samples as small as
/// [`mann_whitney`](crate::mann_whitney) is exact for without ties; beyond that the tail is the
/// normal approximation with continuity correction. Source: Hodges and Lehmann, Ann. Math.
/// Statist. 34 (1963); Moses in Walker and Lev, Statistical Inference (1953); Conover,
/// Practical Nonparametric Statistics, 3rd ed. (1999), section 5.4.
///
/// `None` when a sample is empty, when a value is not finite, when a difference overflows, or
/// when `confidence` is not between 0 and 1. It takes O(m + n) memory.
pub fn hodges_lehmann(base: &[f64], new: &[f64], confidence: f64) -> Option<Shift> {
    if !is_confidence(confidence) {
        return None;
    }
    let differences = Differences::new(sorted(base)?, sorted(new)?)?;
    let count = differences.count();
    let upper = differences.at_rank(count / 2 + 1);
    let estimate = if count % 2 == 1 {
        upper
    } else {
        f64::midpoint(differences.at_rank(count / 2), upper)
    };
    let rank = interval_rank(differences.base.len(), differences.new.len(), confidence);
    let interval = rank.map(|(rank, achieved)| Interval {
        low: differences.at_rank(rank),
        high: differences.at_rank(count + 1 - rank),
        confidence: achieved,
        ranks: Some((rank, count + 1 - rank)),
    });
    Some(Shift { estimate, interval })
}

/// All differences of two sorted samples in their order, without making them.
struct Differences {
    base: Vec<f64>,
    new: Vec<f64>,
}

impl Differences {
    /// `None` when a difference overflows.
    fn new(base: Vec<f64>, new: Vec<f64>) -> Option<Self> {
        let all = Self { base, new };
        let (least, greatest) = all.extremes();
        (least.is_finite() && greatest.is_finite()).then_some(all)
    }

    fn extremes(&self) -> (f64, f64) {
        let (base, new) = (&self.base, &self.new);
        (new[0] - base[base.len() - 1], new[new.len() - 1] - base[0])
    }

    fn count(&self) -> usize {
        self.base.len().saturating_mul(self.new.len())
    }

    /// The difference of rank `rank`, counted from 1, by bisection over all values that a
    /// floating-point number can take: 64 turns of O(m + n).
    fn at_rank(&self, rank: usize) -> f64 {
        let (least, greatest) = self.extremes();
        let (mut low, mut high) = (place(least), place(greatest));
        while low < high {
            let middle = low + ((high.wrapping_sub(low) as u64) / 2) as i64;
            if self.at_most(value(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // Adding 0 turns -0 into 0.
        value(low) + 0.0
    }

    /// How many differences are at most `limit`.
    fn at_most(&self, limit: f64) -> usize {
        let mut too_small = 0;
        let mut count = 0;
        for new in &self.new {
            // The greater the value of `new`, the more values of `base` are too small.
            while too_small < self.base.len() && new - self.base[too_small] > limit {
                too_small += 1;
            }
            count += self.base.len() - too_small;
        }
        count
    }
}

/// The place of a number among all floating-point numbers, as [`f64::total_cmp`] orders them.
fn place(x: f64) -> i64 {
    flip_below_0(x.to_bits() as i64)
}

/// The number at that place.
fn value(place: i64) -> f64 {
    f64::from_bits(flip_below_0(place) as u64)
}

fn flip_below_0(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The greatest rank `k` of the interval for samples of `m` and `n`, and its confidence.
fn interval_rank(m: usize, n: usize, confidence: f64) -> Option<(usize, f64)> {
    let scores: Vec<u64> = (1..=(m + n) as u64).collect();
    let size = m.min(n);
    match rank_sum::probabilities(&scores, size) {
        Some(sums) => exact_rank(&sums[size * (size + 1) / 2..], confidence),
        None => asymptotic_rank(m as f64, n as f64, confidence),
    }
}

/// From the probabilities of each U.
fn exact_rank(probabilities: &[f64], confidence: f64) -> Option<(usize, f64)> {
    // A confidence that can be had exactly must not fail by the last digit.
    const ROUNDING: f64 = 1e-12;
    let mut tail = 0.0;
    let mut best = None;
    for (i, p) in probabilities.iter().enumerate() {
        tail += p;
        let achieved = 1.0 - 2.0 * tail;
        if achieved + ROUNDING < confidence {
            break;
        }
        best = Some((i + 1, achieved));
    }
    best
}

fn asymptotic_rank(m: f64, n: f64, confidence: f64) -> Option<(usize, f64)> {
    let centre = m * n / 2.0;
    let spread = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let z = normal::quantile(f64::midpoint(1.0, confidence));
    let rank = (centre + 0.5 - z * spread).floor();
    let achieved = 1.0 - 2.0 * normal::cdf((rank - 0.5 - centre) / spread);
    (rank >= 1.0).then_some((rank as usize, achieved))
}
