//! Student's t distribution: tails and critical values.
//!
//! `statrs` gives both to nine or ten digits and loses them far out or with many degrees of
//! freedom; p-values and intervals here need more.

use std::f64::consts::PI;

use crate::normal;

/// `P(|T| > |t|)` with `df` degrees of freedom, at least 1, relative to about 1e-13 down to 1e-300.
///
/// The regularised incomplete beta function `I_x(df/2, 1/2)` at `x = df / (df + t^2)`:
/// Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.1 and 26.5.27.
pub(crate) fn two_sided_p(t: f64, df: f64) -> f64 {
    let (a, b) = (df / 2.0, 0.5);
    let point = Point::new(t, df);
    let front = point.power_of_x(a) * point.y.sqrt() * gamma_ratio(a) / PI.sqrt();
    // Each of the two continued fractions converges fast on its own side of the mean.
    if point.x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, point.x) / a
    } else {
        (1.0 - front * continued_fraction(b, a, point.y) / b).max(0.0)
    }
}

/// `P(T > t)` with `df` degrees of freedom, at least 1.
pub(crate) fn upper_tail(t: f64, df: f64) -> f64 {
    let half = two_sided_p(t, df) / 2.0;
    if t >= 0.0 { half } else { 1.0 - half }
}

/// The `t` with `P(|T| > t) = alpha`; `None` unless `alpha` lies between 0 and 1, `df` is
/// at least 1, and `t` is finite.
///
/// Newton's iteration on `ln P` as a function of `ln t`. That function is concave and
/// falls, so the iteration cannot diverge: after one step it approaches from one side.
pub(crate) fn critical(alpha: f64, df: f64) -> Option<f64> {
    const STEPS: usize = 100;
    let possible = alpha > 0.0 && alpha < 1.0 && df >= 1.0 && df.is_finite();
    if !possible {
        return None;
    }
    let mut log_t = (-normal::quantile(alpha / 2.0)).ln();
    for _ in 0..STEPS {
        let t = log_t.exp();
        let p = two_sided_p(t, df);
        let step = (p / alpha).ln() * p / (2.0 * t * density(t, df));
        log_t += step;
        if step.abs() <= 1e-15 {
            break;
        }
    }
    Some(log_t.exp()).filter(|t| t.is_finite())
}

/// The density of the distribution at `t`.
fn density(t: f64, df: f64) -> f64 {
    let point = Point::new(t, df);
    gamma_ratio(df / 2.0) / (df * PI).sqrt() * point.power_of_x((df + 1.0) / 2.0)
}

/// Where `t` lies on the scale of the beta distribution, without cancellation or overflow.
struct Point {
    /// `df / (df + t^2)`
    x: f64,
    /// `1 - x`
    y: f64,
    ln_x: f64,
}

impl Point {
    fn new(t: f64, df: f64) -> Self {
        let ratio = t.abs() / df.sqrt();
        let hypotenuse = ratio.hypot(1.0);
        let ln_x = if ratio < 1e100 {
            -(ratio * ratio).ln_1p()
        } else {
            -2.0 * ratio.ln()
        };
        Self {
            x: (1.0 / hypotenuse).powi(2),
            y: (ratio / hypotenuse).powi(2),
            ln_x,
        }
    }

    fn power_of_x(&self, exponent: f64) -> f64 {
        (exponent * self.ln_x).exp()
    }
}

/// `Gamma(a + 1/2) / Gamma(a)`, without the cancellation of two great logarithms.
///
/// The asymptotic series of the logarithm (Abramowitz and Stegun 6.1.47), after stepping `a`
/// up to where it has all digits.
fn gamma_ratio(a: f64) -> f64 {
    const ENOUGH: f64 = 24.0;
    let (mut a, mut factor) = (a, 1.0);
    while a < ENOUGH {
        factor *= a / (a + 0.5);
        a += 1.0;
    }
    let r = 1.0 / (a * a);
    let series = -1.0 / 8.0
        + r * (1.0 / 192.0 + r * (-1.0 / 640.0 + r * (17.0 / 14336.0 - r * 31.0 / 18432.0)));
    factor * a.sqrt() * (series / a).exp()
}

/// The continued fraction of the incomplete beta function by Lentz's method:
/// Press et al., Numerical Recipes, 3rd ed. (2007), 6.4.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    // It takes about sqrt(max(a, b)) turns; the bound only stops what never converges.
    const TURNS: u32 = 1_000_000;
    const TINY: f64 = 1e-300;
    let away_from_0 = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_0(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for turn in 1..TURNS {
        let m = f64::from(turn);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_0(1.0 + even * d);
        c = away_from_0(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_0(1.0 + odd * d);
        c = away_from_0(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}
