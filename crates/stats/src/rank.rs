//! Comparison of two samples by ranks.

use crate::describe::sorted;
use crate::normal;
use crate::rank_sum;

/// How a p-value was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankMethod {
    /// By all ways to assign the ranks.
    Exact,
    /// By the normal approximation.
    Asymptotic,
}

/// The result of a Mann-Whitney test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs in which the value of `new` is the greater, ties counting one half.
    pub u: f64,
    /// Two-sided p-value: of a U at least so far out, if both samples came from one distribution.
    pub p: f64,
    /// Method by which `p` was computed.
    pub method: RankMethod,
}

/// The Mann-Whitney U test (Wilcoxon's rank sum test).
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
pub fn mann_whitney(base: &[f64], new: &[f64]) -> Option<MannWhitney> {
    let ranks = Ranks::new(base, new)?;
    let u = ranks.u();
    Some(match exact_p(&ranks) {
        Some(p) => MannWhitney {
            u,
            p,
            method: RankMethod::Exact,
        },
        None => MannWhitney {
            u,
            p: asymptotic_p(&ranks),
            method: RankMethod::Asymptotic,
        },
    })
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
    let sums = rank_sum::probabilities(&scores, size)?;
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
    (2.0 * normal::upper_tail(distance / variance.sqrt())).min(1.0)
}
