//! Comparison of two samples by ranks.
//!
//! The exact distribution of the rank sum of one of two samples.
//!
//! Centre of symmetric values by signed ranks, mainly for paired differences.
//!
//! p-values adjusted for many tests at once.

use crate::describe::sorted;
use crate::distributions;
use crate::interval::{Interval, is_confidence, last_within};

/// Two-sided p-value of the Mann-Whitney U test (Wilcoxon's rank sum test).
///
/// `U = R - n(n+1)/2`, `R` being the sum of the ranks of `new` among all values, tied values
/// sharing the mean of their ranks. `p = min(1, 2 min(P(U' <= U), P(U' >= U)))`, where `U'` runs
/// over all ways to share the ranks out between the two samples. With ties these are the ranks
/// as they are tied, so that p is exact given the ties. It assumes independent values; a small p
/// says that one sample tends to have the greater values.
///
/// Exact as long as counting takes at most 5e7 steps: to 60 values in each sample without ties, to 50 with
/// them. Beyond that p comes from the normal approximation with a continuity correction of 1/2. Its variance is
/// `m n / 12 ((N+1) - sum(t^3 - t) / (N (N-1)))`, `t` running over the sizes of the ties. Source: Mann and
/// Whitney, Ann. Math. Statist. 18 (1947); Lehmann, Nonparametrics (1975), 1.2 to 1.4.
///
/// p is 1 where all values are equal. `None` when a sample is empty or a value is not finite.
pub fn mann_whitney(base: &[f64], new: &[f64]) -> Option<f64> {
    let ranks = Ranks::new(base, new)?;
    Some(exact_p(&ranks).unwrap_or_else(|| asymptotic_p(&ranks)))
}

/// The ranks of two samples together, doubled, since the mean of tied ranks may be a multiple of 1/2.
struct Ranks {
    base: usize,
    new: usize,
    /// Doubled ranks of all values, ascending.
    doubled: Vec<u64>,
    /// Sums of the doubled ranks of each sample.
    base_sum: u64,
    new_sum: u64,
    /// The sum of `t^3 - t` over the sizes `t` of ties.
    ties: f64,
}

impl Ranks {
    fn new(base: &[f64], new: &[f64]) -> Option<Self> {
        let (base, new) = (sorted(base)?, sorted(new)?);
        let mut ranks = Self {
            base: base.len(),
            new: new.len(),
            doubled: Vec::with_capacity(base.len() + new.len()),
            base_sum: 0,
            new_sum: 0,
            ties: 0.0,
        };
        let (mut i, mut j) = (0, 0);
        while i < base.len() || j < new.len() {
            let least = match (base.get(i), new.get(j)) {
                (Some(b), Some(n)) => b.min(*n),
                (Some(x), None) | (None, Some(x)) => *x,
                (None, None) => break,
            };
            let of_base = base[i..].iter().take_while(|x| **x == least).count();
            let of_new = new[j..].iter().take_while(|x| **x == least).count();
            ranks.push_tie(of_base, of_new);
            i += of_base;
            j += of_new;
        }
        Some(ranks)
    }

    /// Adds the next higher value, which occurs this often in each sample.
    fn push_tie(&mut self, of_base: usize, of_new: usize) {
        let (before, size) = (self.doubled.len(), of_base + of_new);
        // Twice the mean of the ranks from before + 1 to before + size.
        let rank = (2 * before + size + 1) as u64;
        self.doubled.extend(std::iter::repeat_n(rank, size));
        self.base_sum += rank * of_base as u64;
        self.new_sum += rank * of_new as u64;
        let t = size as f64;
        self.ties += t * t * t - t;
    }

    fn u(&self) -> f64 {
        let n = self.new as u64;
        (self.new_sum - n * (n + 1)) as f64 / 2.0
    }
}

fn exact_p(ranks: &Ranks) -> Option<f64> {
    let (size, sum) = if ranks.base < ranks.new {
        (ranks.base, ranks.base_sum)
    } else {
        (ranks.new, ranks.new_sum)
    };
    // Without ties every doubled rank is even; halving them saves steps.
    let unit = if ranks.doubled.iter().all(|r| r % 2 == 0) {
        2
    } else {
        1
    };
    let scores: Vec<u64> = ranks.doubled.iter().map(|r| r / unit).collect();
    let sums = probabilities(&scores, size)?;
    let at = (sum / unit) as usize;
    let lower: f64 = sums[..=at].iter().sum();
    let upper: f64 = sums[at..].iter().sum();
    Some((2.0 * lower.min(upper)).min(1.0))
}

fn asymptotic_p(ranks: &Ranks) -> f64 {
    let (m, n) = (ranks.base as f64, ranks.new as f64);
    let all = m + n;
    let variance = m * n / 12.0 * ((all + 1.0) - ranks.ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (ranks.u() - m * n / 2.0).abs() - 0.5;
    (2.0 * distributions::normal_upper_tail(distance / variance.sqrt())).min(1.0)
}

/// The most steps of the computation, some milliseconds: suffices for 50 values in each sample with ties, and for 60 without.
const MOST_STEPS: f64 = 5e7;

/// The probability of each sum of `size` of the `scores`, drawn without replacement, every
/// choice being equally likely: entry `s` is `P(sum = s)`.
///
/// `scores` are ascending. Each score in turn is either left out or added to every choice
/// so far: the recurrence of Mann and Whitney, Ann. Math. Statist. 18 (1947), which with tied
/// scores becomes the shift algorithm of Streitberg and Röhmel, Statistical Software Newsletter
/// 12 (1986). `None` when that takes more than 5e7 steps.
fn probabilities(scores: &[u64], size: usize) -> Option<Vec<f64>> {
    let greatest: u64 = scores.iter().rev().take(size).sum();
    if scores.len() as f64 * size as f64 * greatest as f64 > MOST_STEPS {
        return None;
    }
    let mut sum_before = vec![0; scores.len() + 1];
    for (i, score) in scores.iter().enumerate() {
        sum_before[i + 1] = sum_before[i] + score;
    }
    // Counts stay below C(n, size), far from overflow: the bound keeps n below 400.
    let mut counts = vec![vec![0.0_f64; greatest as usize + 1]; size + 1];
    counts[0][0] = 1.0;
    for (i, &score) in scores.iter().enumerate() {
        for chosen in (1..=size.min(i + 1)).rev() {
            let others = chosen - 1;
            // The other scores cannot add up to more than the largest ones before this score.
            let reach = (sum_before[i] - sum_before[i - others]) as usize;
            let (fewer, more) = counts.split_at_mut(chosen);
            let to = &mut more[0][score as usize..];
            for (to, from) in to.iter_mut().zip(&fewer[others][..=reach]) {
                *to += from;
            }
        }
    }
    let mut sums = counts.swap_remove(size);
    let total: f64 = sums.iter().sum();
    sums.iter_mut().for_each(|p| *p /= total);
    Some(sums)
}

/// Most values for which the distribution of signed ranks is counted exactly.
const EXACT_MAX: usize = 100;

/// Centre of values that are as likely above it as below it by any amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The estimate: the median of the means of all pairs of values, each with itself too; in the unit of the data.
    pub centre: f64,
    /// Two-sided p-value that the centre is 0.
    pub p: f64,
    /// Interval of the estimate; `None` where there are too few values for the confidence (below 6 for 0.95).
    pub interval: Option<Interval>,
}

/// Wilcoxon's signed-rank test that the centre is 0, with the estimate of Hodges and Lehmann and the interval that belongs to
/// the test: it runs between order statistics of the means of all pairs of values, `(x_i + x_j) / 2` with `i <= j`.
///
/// The values are independent and symmetric about one centre; their spreads may differ. That holds for differences of two
/// samples of one shape, whatever the shape: then the coverage is at least the confidence, with ties too. Up to 100 values the
/// distribution is counted out, beyond it is normal with a continuity correction. The interval leaves 0 out exactly where p is
/// at most `1 - confidence`. Source: Wilcoxon, Biometrics Bulletin 1 (1945) 80-83; Hodges and Lehmann, Ann. Math. Statist. 34
/// (1963) 598-611; Hollander and Wolfe, Nonparametric Statistical Methods, 2nd ed. (1999), 3.1 to 3.3.
///
/// `None` when the data is empty or holds a value that is not finite, or when `confidence` is not between 0 and 1.
pub fn signed_rank(data: &[f64], confidence: f64) -> Option<SignedRank> {
    if !is_confidence(confidence) {
        return None;
    }
    let x = sorted(data)?;
    let ranks = SignedRanks::of(x.len());
    let pairs = ranks.pairs();
    let centre = f64::midpoint(
        mean_of_pair(&x, pairs.div_ceil(2)),
        mean_of_pair(&x, pairs / 2 + 1),
    );
    let interval = ranks
        .greatest_within((1.0 - confidence) / 2.0)
        .map(|rank| Interval {
            low: mean_of_pair(&x, rank),
            high: mean_of_pair(&x, pairs + 1 - rank),
            confidence: 1.0 - 2.0 * ranks.at_most(rank - 1),
            ranks: None,
        });
    let less = at_most(&x, 0.0).min(pairs - at_most(&x, 0.0_f64.next_down()));
    Some(SignedRank {
        centre,
        p: (2.0 * ranks.at_most(less)).min(1.0),
        interval,
    })
}

/// The p-value of two one-sided tests that the centre lies within `-limit..limit`; assumptions and source as for
/// [`signed_rank`].
///
/// `None` as there, and when `limit` is not finite and positive.
pub fn signed_rank_within(data: &[f64], limit: f64) -> Option<f64> {
    let x = sorted(data)?;
    let ranks = SignedRanks::of(x.len());
    let above = ranks.pairs() - at_most(&x, limit.next_down());
    (limit > 0.0 && limit.is_finite()).then(|| ranks.at_most(at_most(&x, -limit).max(above)))
}

/// Distribution of the sum of signed ranks of `n` values about their centre.
enum SignedRanks {
    /// Chance of each sum from 0 on.
    Counted {
        n: usize,
        chances: Vec<f64>,
    },
    Normal {
        n: usize,
    },
}

impl SignedRanks {
    fn of(n: usize) -> Self {
        if n > EXACT_MAX {
            return Self::Normal { n };
        }
        // Each rank counts or does not, one as likely as the other.
        let mut chances = vec![1.0];
        for rank in 1..=n {
            let mut next = vec![0.0; chances.len() + rank];
            for (sum, chance) in chances.iter().enumerate() {
                next[sum] += chance / 2.0;
                next[sum + rank] += chance / 2.0;
            }
            chances = next;
        }
        Self::Counted { n, chances }
    }

    /// Number of pairs of values, each with itself too: the greatest sum.
    fn pairs(&self) -> usize {
        let (Self::Counted { n, .. } | Self::Normal { n }) = *self;
        n * (n + 1) / 2
    }

    /// Chance of a sum of at most `sum`.
    fn at_most(&self, sum: usize) -> f64 {
        match self {
            Self::Counted { chances, .. } => chances.iter().take(sum + 1).sum::<f64>().min(1.0),
            Self::Normal { n } => {
                let n = *n as f64;
                let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
                distributions::cdf((sum as f64 + 0.5 - n * (n + 1.0) / 4.0) / variance.sqrt())
            }
        }
    }

    /// Greatest rank from 1 for which the chance of a smaller sum is within `tail`; `None` if even rank 1
    /// exceeds it.
    fn greatest_within(&self, tail: f64) -> Option<usize> {
        // A tail that equals an achievable one must not fail by the last digit.
        const ROUNDING: f64 = 1e-12;
        let is_within = |rank: usize| self.at_most(rank - 1) <= tail + ROUNDING;
        is_within(1).then(|| last_within(1, self.pairs() / 2 + 1, is_within))
    }
}

/// Number of pairs of values, each with itself too, with a mean of at most `limit`.
fn at_most(x: &[f64], limit: f64) -> usize {
    let mut end = x.len();
    let mut count = 0;
    for (first, low) in x.iter().enumerate() {
        while end > first && f64::midpoint(*low, x[end - 1]) > limit {
            end -= 1;
        }
        if end <= first {
            break;
        }
        count += end - first;
    }
    count
}

/// Mean of the pair with this rank among all, from 1.
///
/// By bisection over all floating-point numbers, because the number of pairs is quadratic.
fn mean_of_pair(x: &[f64], rank: usize) -> f64 {
    let (mut low, mut high) = (place(x[0]), place(x[x.len() - 1]));
    while low < high {
        let middle = low + (high - low) / 2;
        if at_most(x, at_place(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Not the negative zero.
    at_place(low) + 0.0
}

/// Position of a number among all floating-point numbers, in ascending order.
fn place(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ if x.is_sign_negative() {
        u64::MAX
    } else {
        1 << 63
    }
}

fn at_place(place: u64) -> f64 {
    f64::from_bits(place ^ if place >> 63 == 0 { u64::MAX } else { 1 << 63 })
}

/// Holm's step-down adjustment: below `alpha` it holds the chance of any false finding in the
/// family to `alpha`, however the tests depend on each other.
///
/// With `p_(1) <= ... <= p_(m)`, `adjusted_(i) = min(1, max over j <= i of (m - j + 1) p_(j))`.
/// Source: Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist.
/// 6 (1979). Answers in the order given; an empty family has an empty answer. `None` when a p-value
/// is not between 0 and 1.
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut greatest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        greatest = greatest.max((p.len() - rank) as f64 * p[i]).min(1.0);
        adjusted[i] = greatest;
    }
    Some(adjusted)
}

/// The indices of the p-values in ascending order.
fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tied_scores_fall_together() {
        let sums = probabilities(&[2, 5, 5], 1).unwrap();
        assert_eq!(sums, [0.0, 0.0, 1.0 / 3.0, 0.0, 0.0, 2.0 / 3.0]);
    }

    #[test]
    fn too_much_work_is_refused() {
        let scores: Vec<u64> = (1..=1000).collect();
        assert_eq!(probabilities(&scores, 500), None);
        assert!(probabilities(&scores, 1).is_some());
    }

    /// Hamilton's depression scale of nine patients before and after treatment: Hollander and Wolfe, table 3.1.
    /// Expected values are from R's `wilcox.test(x, y, paired = TRUE, conf.int = TRUE)` as SciPy reproduces
    /// them (`tests/all/reference_intervals.py`).
    #[test]
    #[allow(clippy::approx_constant, reason = "a value that was measured")]
    fn a_published_example_comes_out() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let d: Vec<f64> = before.iter().zip(after).map(|(x, y)| x - y).collect();
        let test = signed_rank(&d, 0.95).unwrap();
        assert_eq!(test.p, 0.0390625);
        assert!((test.centre - 0.46).abs() < 1e-12, "{}", test.centre);
        let interval = test.interval.unwrap();
        assert!((interval.low - 0.01).abs() < 1e-12, "{interval:?}");
        assert!((interval.high - 0.786).abs() < 1e-12, "{interval:?}");
        assert_eq!(interval.confidence, 1.0 - 2.0 * 10.0 / 512.0);
    }

    /// All means of pairs, by enumeration.
    fn means(x: &[f64]) -> Vec<f64> {
        let mut all: Vec<f64> = (0..x.len())
            .flat_map(|i| (i..x.len()).map(move |j| f64::midpoint(x[i], x[j])))
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    #[test]
    fn ranks_are_those_of_all_pairs() {
        let x: Vec<f64> = (0..23).map(|i| f64::from(i * i % 17) / 3.0 - 2.0).collect();
        let x = sorted(&x).unwrap();
        let all = means(&x);
        for (mean, rank) in all.iter().zip(1..) {
            assert_eq!(mean_of_pair(&x, rank), *mean, "{rank}");
            assert_eq!(
                at_most(&x, *mean),
                all.iter().filter(|m| *m <= mean).count()
            );
        }
        for x in [0.0, -1.5, 7e300, -7e-310] {
            assert_eq!(at_place(place(x)), x);
        }
    }

    #[test]
    fn the_interval_leaves_out_what_the_test_rejects() {
        let x: Vec<f64> = (0..12).map(|i| f64::from(i * 7 % 12) / 4.0 - 0.6).collect();
        let interval = signed_rank(&x, 0.95).unwrap().interval.unwrap();
        for shift in means(&sorted(&x).unwrap()) {
            let moved: Vec<f64> = x.iter().map(|x| x - shift).collect();
            let p = signed_rank(&moved, 0.95).unwrap().p;
            let inside = interval.low <= shift && shift <= interval.high;
            assert_eq!(p > 0.05, inside, "{shift} {p} {interval:?}");
        }
    }

    #[test]
    fn beyond_the_counted_the_distribution_goes_on() {
        let (counted, normal) = (SignedRanks::of(100), SignedRanks::Normal { n: 100 });
        for sum in [1700, 1955, 2300, 2525] {
            let (exact, near) = (counted.at_most(sum), normal.at_most(sum));
            // The tail of the normal distribution is slightly longer.
            assert!(
                (0.92..1.005).contains(&(exact / near)),
                "{sum} {exact} {near}"
            );
        }
        let x: Vec<f64> = (0..3000).map(|i| f64::from(i * 37 % 3000)).collect();
        let test = signed_rank(&x, 0.95).unwrap();
        assert_eq!(test.centre, 1499.5);
        assert!(test.p < 1e-200);
    }

    #[test]
    fn equivalence_agrees_with_the_tests_interval() {
        let x = [0.01, -0.02, 0.03, 0.005, -0.01, 0.02, -0.004];
        let within = signed_rank_within(&x, 0.05).unwrap();
        assert_eq!(within, 1.0 / 128.0);
        let interval = signed_rank(&x, 0.9).unwrap().interval.unwrap();
        let edge = interval.high.max(-interval.low);
        assert!(signed_rank_within(&x, edge * 1.01).unwrap() <= 0.05);
        assert!(signed_rank_within(&x, edge * 0.99).unwrap() > 0.05);
    }

    #[test]
    fn too_few_or_bad_values_have_no_result() {
        let five = signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!((five.p, five.interval, five.centre), (0.0625, None, 3.0));
        assert!(signed_rank(&[1.0; 6], 0.95).unwrap().interval.is_some());
        assert_eq!(signed_rank(&[0.0; 6], 0.95).unwrap().p, 1.0);
        for bad in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert_eq!(signed_rank(bad, 0.95), None);
            assert_eq!(signed_rank_within(bad, 0.1), None);
        }
        assert_eq!(signed_rank(&[1.0], 1.0), None);
        assert_eq!(signed_rank_within(&[1.0], f64::NAN), None);
        let far = signed_rank(&[f64::MAX, f64::MAX, -f64::MAX], 0.5).unwrap();
        assert!(far.centre.is_finite());
    }
}
