//! Tails of the binomial distribution, for any number of draws.
//!
//! The library's distribution function loses its digits above some ten thousand draws; the
//! histogram of a trial holds millions.

use std::f64::consts::TAU;

/// `P(B <= k)` for `B ~ Binomial(n, p)` with `k` not above the mean, to about 12 digits.
///
/// Where the standard deviation is small, the probabilities are summed. Elsewhere the tail
/// is the integral `n * ∫_p^1 P(Bin(n - 1, t) = k) dt` (David and Nagaraja, Order Statistics,
/// 3rd ed. (2003), section 2.1), whose integrand is close to a normal density.
///
/// `p` lies between 0 and 1, both excluded, and `n` is at least 1.
pub(crate) fn lower_tail(n: f64, p: f64, k: f64) -> f64 {
    const SUM_VARIANCE_MAX: f64 = 1e4;
    if n * p * (1.0 - p) <= SUM_VARIANCE_MAX {
        summed(n, p, k)
    } else {
        integrated(n, p, k)
    }
}

/// The sum of the probabilities from `k` downwards, each from its ratio to the previous one.
fn summed(n: f64, p: f64, k: f64) -> f64 {
    let odds = (1.0 - p) / p;
    let (mut sum, mut term, mut j) = (0.0, probability(n, p, k), k);
    while term > sum * f64::EPSILON * 1e-2 {
        sum += term;
        term *= j / (n - j + 1.0) * odds;
        j -= 1.0;
    }
    sum
}

/// Gauss-Legendre with five nodes on each of equal panels, until the integrand is negligible.
fn integrated(n: f64, p: f64, k: f64) -> f64 {
    const PANELS: u32 = 24;
    /// Range of integration, in standard deviations from the mean; the rest is below 1e-20 of a normal tail.
    const REACH: f64 = 10.0;
    let width = REACH * (p * (1.0 - p) / n).sqrt() / f64::from(PANELS);
    let (a, b) = (2.0 * (10.0_f64 / 7.0).sqrt(), 13.0 * 70.0_f64.sqrt());
    let (inner, outer) = ((5.0 - a).sqrt() / 3.0, (5.0 + a).sqrt() / 3.0);
    let rule = [
        (0.0, 128.0 / 225.0),
        (inner, (322.0 + b) / 900.0),
        (-inner, (322.0 + b) / 900.0),
        (outer, (322.0 - b) / 900.0),
        (-outer, (322.0 - b) / 900.0),
    ];
    let mut sum = 0.0;
    for panel in 0..PANELS {
        let centre = f64::from(panel) + 0.5;
        for (place, weight) in rule {
            let t = p + width * (centre + place / 2.0);
            if t < 1.0 {
                sum += weight * probability(n - 1.0, t, k);
            }
        }
    }
    sum * width / 2.0 * n
}

/// `P(B = k)` by the saddle-point expansion, which keeps its digits for large `n`.
///
/// Source: Loader, "Fast and accurate computation of binomial probabilities" (2000).
fn probability(n: f64, p: f64, k: f64) -> f64 {
    if k < 0.0 || k > n {
        return 0.0;
    }
    if k == 0.0 {
        return (n * (-p).ln_1p()).exp();
    }
    if k == n {
        return (n * p.ln()).exp();
    }
    let correction = stirling_error(n) - stirling_error(k) - stirling_error(n - k);
    let exponent = correction - deviance(k, n * p) - deviance(n - k, n * (1.0 - p));
    exponent.exp() * (n / (TAU * k * (n - k))).sqrt()
}

/// `ln(n!)` less Stirling's formula for it.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let factorial: f64 = (1..=n as u32).map(f64::from).product();
        return factorial.ln() - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
    }
    let m = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / m) / m) / m) / m)
        / n
}

/// `x ln(x / m) + m - x`, without cancellation where `x` is close to `m`.
fn deviance(x: f64, m: f64) -> f64 {
    let v = (x - m) / (x + m);
    if v.abs() >= 0.1 {
        return x * (x / m).ln() + m - x;
    }
    // 2 x artanh(v) - (x - m), as a series.
    let mut sum = (x - m) * v;
    let mut power = 2.0 * x * v;
    for j in 1..100 {
        power *= v * v;
        let next = sum + power / f64::from(2 * j + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_and_integral_agree() {
        for (n, p) in [(50_000.0, 0.5_f64), (1e6, 0.99), (3e6, 0.001)] {
            let sd = (n * p * (1.0 - p)).sqrt();
            for z in [0.0, 0.5, 1.96, 4.0] {
                let k = (n * p - z * sd).floor();
                let (sum, integral) = (summed(n, p, k), integrated(n, p, k));
                assert!(
                    (sum / integral - 1.0).abs() < 1e-11,
                    "{n} {p} {z} {sum} {integral}"
                );
            }
        }
    }
}
