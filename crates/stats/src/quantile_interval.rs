//! Intervals of any quantile, from data or from the number of values.

use statrs::distribution::{Beta, ContinuousCDF};

use crate::binomial::lower_tail;

/// Larger counts are not exact as `f64`.
const N_MAX: u64 = 1 << 53;

/// Ranks, from 1, of the order statistics around the quantile `q`, and the confidence of the interval between
/// them. Each rank is `None` if there are too few values for that end.
///
/// Let `B ~ Binomial(n, q)`. The lower rank `l` is the greatest with `P(B <= l - 1) <= (1 - confidence) / 2`.
/// The upper rank `u` is the least with `P(B >= u) <= (1 - confidence) / 2`. Each end thus misses with no more
/// than half of what is allowed. The confidence achieved is `1 - P(B <= l - 1) - P(B >= u)`. The cost hardly
/// grows with `n`. Source: Conover, Practical Nonparametric Statistics, 3rd ed. (1999), section 3.2; David and
/// Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1.
///
/// For 0.95 both ends take 6 values at `q = 0.5`, 368 at 0.99, 3688 at 0.999. There is no rank when `q` or `confidence` is not
/// between 0 and 1, or when `n` is above `2^53`.
pub fn quantile_ranks(n: u64, q: f64, confidence: f64) -> (Option<u64>, Option<u64>, f64) {
    let within = |x: f64| x > 0.0 && x < 1.0;
    if n == 0 || n > N_MAX || !within(q) || !within(confidence) || !within(1.0 - q) {
        return (None, None, 1.0);
    }
    let allowed = (1.0 - confidence) / 2.0;
    // The upper rank is the lower one of the mirror image.
    let (low, from_top) = (lower_rank(n, q, allowed), lower_rank(n, 1.0 - q, allowed));
    let miss = |end: Option<(u64, f64)>| end.map_or(0.0, |(_, miss)| miss);
    (
        low.map(|(rank, _)| rank),
        from_top.map(|(rank, _)| n + 1 - rank),
        1.0 - miss(low) - miss(from_top),
    )
}

/// The greatest rank from 1 with `P(B <= rank - 1)` within `allowed`, which is below one half, and that probability.
fn lower_rank(n: u64, q: f64, allowed: f64) -> Option<(u64, f64)> {
    // Tolerance for rounding, so that a confidence that equals an achievable one does not fail.
    const ROUNDING: f64 = 5e-13;
    let count = n as f64;
    let miss = |rank: u64| lower_tail(count, q, rank as f64 - 1.0);
    let fits = |rank: u64| miss(rank) <= allowed + ROUNDING;
    // Less than half is allowed, so the rank is at most the rank of B's median.
    let (mut yes, mut no) = (0, ((count * q).ceil() as u64).clamp(1, n) + 1);
    while no - yes > 1 {
        let middle = u64::midpoint(yes, no);
        if fits(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    (yes > 0).then(|| (yes, miss(yes)))
}

/// Clopper and Pearson's bounds for a share after `k` of `n` draws, each wrong with a probability of at most
/// `alpha`; they are quantiles of beta distributions. `k` and `n` need not be whole: dependent draws count as
/// fewer. Source: Clopper and Pearson, Biometrika 26 (1934).
///
/// `None` unless `0 <= k <= n`, `n > 0` and `alpha` is between 0 and 1.
pub fn share_bounds(k: f64, n: f64, alpha: f64) -> Option<(f64, f64)> {
    let possible = n > 0.0 && n.is_finite() && (0.0..=n).contains(&k) && alpha > 0.0 && alpha < 1.0;
    if !possible {
        return None;
    }
    let low = match k {
        0.0 => 0.0,
        _ => Beta::new(k, n - k + 1.0).ok()?.inverse_cdf(alpha),
    };
    let high = match n - k {
        0.0 => 1.0,
        left => Beta::new(k + 1.0, left).ok()?.inverse_cdf(1.0 - alpha),
    };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::median_interval;

    #[test]
    fn the_middle_quantile_is_the_median() {
        let data: Vec<f64> = (0..400).map(|i| f64::from(i * 37 % 401)).collect();
        for n in 0..400 {
            for confidence in [0.5, 0.9, 0.95, 0.96875, 0.999] {
                let median = median_interval(&data[..n], confidence);
                let (low, high, _) = quantile_ranks(n as u64, 0.5, confidence);
                let quantile = low
                    .zip(high)
                    .map(|(low, high)| (low as usize, high as usize));
                assert_eq!(median.and_then(|i| i.ranks), quantile, "{n} {confidence}");
            }
        }
    }

    #[test]
    fn the_fewest_values_for_a_tail() {
        for (q, fewest) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3688)] {
            assert_eq!(quantile_ranks(fewest - 1, q, 0.95).1, None);
            assert_eq!(quantile_ranks(fewest, q, 0.95).1, Some(fewest));
        }
    }

    #[test]
    fn shares_have_the_bounds_of_clopper_and_pearson() {
        // SciPy: beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
        for (k, n, low, high) in [
            (5.0, 500.0, 0.003_254_721, 0.023_181_388),
            (0.0, 30.0, 0.0, 0.115_703_3),
            (30.0, 30.0, 0.884_296_7, 1.0),
        ] {
            let (found_low, found_high) = share_bounds(k, n, 0.025).unwrap();
            assert!((found_low - low).abs() < 1e-6, "{found_low}");
            assert!((found_high - high).abs() < 1e-6, "{found_high}");
        }
        for (k, n, alpha) in [
            (-1.0, 5.0, 0.1),
            (6.0, 5.0, 0.1),
            (1.0, 0.0, 0.1),
            (1.0, 5.0, 0.0),
        ] {
            assert_eq!(share_bounds(k, n, alpha), None);
        }
    }

    #[test]
    fn degenerate_arguments_have_no_result() {
        const NONE: (Option<u64>, Option<u64>, f64) = (None, None, 1.0);
        assert_eq!(quantile_ranks(0, 0.5, 0.95), NONE);
        assert_eq!(quantile_ranks(u64::MAX, 0.5, 0.95), NONE);
        for x in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            assert_eq!(quantile_ranks(1000, x, 0.95), NONE, "{x}");
            assert_eq!(quantile_ranks(1000, 0.5, x), NONE, "{x}");
        }
    }
}
