//! The standard normal distribution.
//!
//! Student's t distribution: tails and critical values. Tails have ten digits up to 1,000 degrees of freedom, and seven up to a million.
//!
//! Tails of the binomial distribution, for any number of draws.
//!
//! The library's distribution function loses its digits above some ten thousand draws; the
//! histogram of a trial holds millions.
//!
//! Seeded resampling with replacement.

use std::f64::consts::{SQRT_2, TAU};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

/// `P(Z > z)` with full relative accuracy down to the smallest positive number.
///
/// Uses `libm`, because the `erfc` of `statrs` has ten digits.
pub(crate) fn normal_upper_tail(z: f64) -> f64 {
    libm::erfc(z / SQRT_2) / 2.0
}

/// `P(Z <= z)`.
pub(crate) fn cdf(z: f64) -> f64 {
    normal_upper_tail(-z)
}

/// The `z` with `P(Z <= z) = p`; infinite for 0 and 1, NaN outside.
pub(crate) fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(p)
}

/// `P(T > t)` with `df` degrees of freedom, at least 1.
pub(crate) fn upper_tail(t: f64, df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |student| student.sf(t))
}

/// The `t` with `P(|T| > t) = alpha`; `None` unless `alpha` lies between 0 and 1, `df` is
/// at least 1, and `t` is finite.
///
/// Newton's iteration on `ln P` as a function of `ln t`. That function is concave and
/// falls, so the iteration cannot diverge: after one step it approaches from one side. The library's own inverse can loop without end.
pub(crate) fn critical(alpha: f64, df: f64) -> Option<f64> {
    const STEPS: usize = 100;
    /// The error after a step is below the square of the step.
    const LAST_STEP: f64 = 1e-8;
    let possible = alpha > 0.0 && alpha < 1.0 && df >= 1.0 && df.is_finite();
    if !possible {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, df).ok()?;
    let mut log_t = (-quantile(alpha / 2.0)).ln();
    for _ in 0..STEPS {
        let t = log_t.exp();
        let p = 2.0 * student.sf(t);
        // Change of `ln t` that lowers `ln p` by 1.
        let reach = p / (2.0 * t * student.pdf(t));
        let step = (p.ln() - alpha.ln()) * reach;
        if !step.is_finite() {
            return None;
        }
        log_t += step;
        if step.abs() <= LAST_STEP {
            break;
        }
    }
    Some(log_t.exp()).filter(|t| t.is_finite())
}

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

/// Draws resamples; equal seeds draw equal ones, on every machine.
///
/// Source: xoshiro256++ of Blackman and Vigna, "Scrambled linear pseudorandom number
/// generators", ACM TOMS 47 (2021), its state filled from the seed by SplitMix64.
#[derive(Debug, Clone)]
pub struct Resampler {
    rng: Xoshiro256PlusPlus,
}

impl Resampler {
    /// A stream of draws, determined by the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// An index below `n`; 0 when `n` is 0.
    ///
    /// The high word of `draw * n`: Lemire, ACM TOMACS 29 (2019). Without his rejection step the
    /// bias is below `n / 2^64`.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        ((u128::from(self.rng.next_u64()) * n as u128) >> 64) as usize
    }

    /// Replaces `into` by as many draws from `from`, with replacement, as `from` has values.
    pub fn resample(&mut self, from: &[f64], into: &mut Vec<f64>) {
        into.clear();
        into.extend((0..from.len()).map(|_| from[self.index(from.len())]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(ours: f64, exact: f64, df: f64) {
        let error = (ours - exact).abs() / exact;
        assert!(
            error < (1e-12 * df).max(1e-9),
            "{ours:e} vs {exact:e}: {error:e}"
        );
    }

    fn two_sided_p(t: f64, df: f64) -> f64 {
        2.0 * upper_tail(t.abs(), df)
    }

    /// By mpmath with 40 digits: tests/all/reference_two_samples.py.
    #[test]
    fn tails_from_the_middle_to_the_least_number() {
        for (t, df, p) in [
            (0.0, 3.0, 1.0),
            (1e-9, 4.0, 0.99999999925),
            (0.1, 1.0, 0.9365489651388929),
            (1.0, 1.0, 0.5),
            (2.5, 3.7, 0.07182202291182677),
            (2.776, 4.0, 0.05002277831997641),
            (12.0, 8.0, 2.143866747688771e-6),
            (40.0, 30.0, 1.37260451944064e-27),
            (1e5, 9.0, 5.091794055466976e-42),
            (1e150, 2.0, 1e-300),
            (30.0, 1000.0, 1.537468744404348e-141),
            (37.0, 1e5, 1.197462824342466e-297),
            (1.0, 198.0, 0.3185310379087348),
            (0.01, 2e6, 0.9920212883681423),
            (1.5, 2e6, 0.1336145603872702),
            (1.9, 2e6, 0.05743326331425275),
            (5.0, 2e6, 5.733514637831463e-7),
            (3.0, 1e9, 0.002699796129737916),
        ] {
            close(two_sided_p(t, df), p, df);
            close(two_sided_p(-t, df), p, df);
            close(upper_tail(t, df), p / 2.0, df);
            let rest = if t == 0.0 { 0.5 } else { 1.0 - p / 2.0 };
            close(upper_tail(-t, df), rest, df);
        }
    }

    #[test]
    fn a_critical_value_has_its_tail() {
        for df in [1.0, 1.5, 3.0, 10.0, 77.0, 200.0, 3000.0] {
            for alpha in [1e-100, 1e-20, 1e-3, 0.05, 0.3, 0.7, 0.999] {
                close(two_sided_p(critical(alpha, df).unwrap(), df), alpha, df);
            }
        }
    }

    #[test]
    fn what_has_no_critical_value() {
        for alpha in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
            assert_eq!(critical(alpha, 5.0), None);
        }
        for df in [0.0, 0.9, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(critical(0.05, df), None);
        }
        // Exceeds the largest number.
        assert_eq!(critical(1e-320, 1.0), None);
    }

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

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // From the Python implementation of the generator in tests/all/reference_bootstrap.py.
        let mut draws = Resampler::new(42);
        let indexes: Vec<usize> = (0..12).map(|_| draws.index(1000)).collect();
        assert_eq!(
            indexes,
            [814, 318, 983, 701, 793, 588, 125, 605, 207, 933, 559, 850]
        );
    }
}
