//! The t tests of a difference of two means.
//!
//! Tests whether two samples are equivalent.
//!
//! Comparison of two groups of values, one of which may have a single value: runs compared with each other.

use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::distributions;
use crate::interval::{Interval, margin};

/// Two-sided p-value of Welch's t test, which lets the two variances differ: the one to use by default.
///
/// `t = (m2 - m1) / sqrt(v1/n1 + v2/n2)` with
/// `df = (v1/n1 + v2/n2)^2 / ((v1/n1)^2 / (n1-1) + (v2/n2)^2 / (n2-1))`. It assumes independent
/// values and means that are about normal. Source: Welch, "The generalization of 'Student's'
/// problem when several different population variances are involved", Biometrika 34 (1947);
/// Satterthwaite, Biometrics 2 (1946).
///
/// Where neither sample varies, it is 1 for equal means and 0 for different ones. `None` below two
/// values in either sample, when a value is not finite, or when the result overflows.
pub fn welch(base: &[f64], new: &[f64]) -> Option<f64> {
    welch_of(&Sample::new(base)?, &Sample::new(new)?)
}

pub(crate) fn welch_of(base: &Sample, new: &Sample) -> Option<f64> {
    let difference = new.mean - base.mean;
    let (error, df) = welch_error(base.error(), base.n, new.error(), new.n);
    let is_finite = difference.is_finite() && error.is_finite();
    is_finite.then(|| two_sided_p(difference, error, df))
}

/// Two-sided p-value of Student's t test, which assumes equal variances: of a [`contrast`] of two samples that both
/// have a spread.
///
/// With unequal variances and unequal sizes it is wrong. Source: Student, "The probable error of a mean", Biometrika
/// 6 (1908); Fisher, Metron 5 (1925).
///
/// No variance and `None` as for [`welch`].
pub fn student(base: &[f64], new: &[f64]) -> Option<f64> {
    let vary = base.len() > 1 && new.len() > 1;
    vary.then(|| Some(contrast(base, new, 0.0)?.p()))?
}

/// The moments of a sample of at least two values, as a t test needs them.
pub(crate) struct Sample {
    pub(crate) n: f64,
    pub(crate) mean: f64,
    pub(crate) sd: f64,
}

impl Sample {
    /// `None` below two values, when a value is not finite, or on overflow.
    pub(crate) fn new(data: &[f64]) -> Option<Self> {
        let x = sorted(data)?;
        Some(Self {
            n: x.len() as f64,
            mean: mean_of_sorted(&x)?,
            sd: sd_of_sorted(&x)?,
        })
    }

    /// The standard error of the mean.
    pub(crate) fn error(&self) -> f64 {
        self.sd / self.n.sqrt()
    }
}

/// The standard error of a difference of two independent estimates with the errors `e1` and
/// `e2`, and its degrees of freedom after Welch and Satterthwaite.
fn welch_error(e1: f64, n1: f64, e2: f64, n2: f64) -> (f64, f64) {
    let error = e1.hypot(e2);
    let most = n1 + n2 - 2.0;
    if error == 0.0 {
        return (0.0, most);
    }
    // Shares of the variance instead of squares, which may overflow or underflow.
    let (w1, w2) = ((e1 / error).powi(2), (e2 / error).powi(2));
    let df = 1.0 / (w1 * w1 / (n1 - 1.0) + w2 * w2 / (n2 - 1.0));
    (error, df.clamp(n1.min(n2) - 1.0, most))
}

/// p-value of two one-sided tests of equivalence of the ratio new/base within `1/(1+margin)..(1+margin)`: the probability
/// of a ratio this far inside the margin, if the true one were outside.
///
/// With `d` the difference of the mean logarithms, `se` and `df` as in Welch's test, and `L = ln(1 + margin)`:
/// `p = max(P(T >= (d + L) / se), P(T <= (d - L) / se))`. It assumes independent values whose logarithms have
/// means that are about normal. Source: Schuirmann, "A comparison of the two one-sided tests procedure and the
/// power approach", J. Pharmacokinet. Biopharm. 15 (1987), with Welch's standard error.
///
/// Where neither sample varies, p is 0 for a ratio inside the margin and 1 for one on it or outside. `None` below two
/// values in either sample, or when a value or `margin` is not finite and positive.
pub fn tost_log(base: &[f64], new: &[f64], margin: f64) -> Option<f64> {
    if !(margin > 0.0 && margin.is_finite()) {
        return None;
    }
    let (base, new) = (Sample::new(&logs(base)?)?, Sample::new(&logs(new)?)?);
    let difference = new.mean - base.mean;
    let (error, df) = welch_error(base.error(), base.n, new.error(), new.n);
    let limit = margin.ln_1p();
    Some(f64::max(
        one_sided_p(limit + difference, error, df),
        one_sided_p(limit - difference, error, df),
    ))
}

/// The p-value of the hypothesis that `difference`, with standard error `error`, is 0.
fn two_sided_p(difference: f64, error: f64, df: f64) -> f64 {
    match difference {
        0.0 => 1.0,
        _ => 2.0 * one_sided_p(difference.abs(), error, df),
    }
}

/// The p-value of the hypothesis that `distance`, with standard error `error`, is not above 0.
fn one_sided_p(distance: f64, error: f64, df: f64) -> f64 {
    let t = distance / error;
    if t.is_finite() {
        distributions::upper_tail(t, df)
    } else if distance > 0.0 {
        0.0
    } else {
        1.0
    }
}

/// The natural logarithms; `None` unless all values are finite and positive.
fn logs(data: &[f64]) -> Option<Vec<f64>> {
    data.iter()
        .map(|&x| (x > 0.0 && x.is_finite()).then(|| x.ln()))
        .collect()
}

/// A difference of two means, with its standard error from the pooled standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// `mean(new) - mean(base)`, in the unit of the data.
    pub difference: f64,
    /// The standard deviation within the groups, pooled.
    pub sd: f64,
    /// Standard error of the difference.
    pub error: f64,
    /// Degrees of freedom of `sd`.
    pub df: f64,
}

/// Compares two groups by their common spread; either may have a single value.
///
/// `s^2 = (sum (x - m1)^2 + sum (y - m2)^2) / df` with `df = n1 + n2 - 2`, at least 1. The standard error of
/// `m2 - m1` is `s sqrt(1/n1 + 1/n2)`. With a single new value the interval around `m1` is the prediction interval for that
/// value. `sd_least` is the resolution of the values: a smaller spread is raised to it. The test assumes
/// independent values that are about normal, with equal variances. Sources: Fisher, Metron 5 (1925) 90-104; for
/// the prediction Hahn and Meeker, Statistical Intervals (1991), 4.7.
///
/// `None` where a group is empty, or the two have fewer than three values together; also when a value or
/// `sd_least` is not finite, when `sd_least` is negative, or on overflow.
pub fn contrast(base: &[f64], new: &[f64], sd_least: f64) -> Option<Contrast> {
    let (n1, n2) = (base.len() as f64, new.len() as f64);
    let df = n1 + n2 - 2.0;
    if df < 1.0 || !(0.0..f64::INFINITY).contains(&sd_least) {
        return None;
    }
    let (m1, s1) = mean_and_sd(base)?;
    let (m2, s2) = mean_and_sd(new)?;
    let share = |s: f64, n: f64| s * ((n - 1.0) / df).sqrt();
    let sd = share(s1, n1).hypot(share(s2, n2)).max(sd_least);
    let difference = m2 - m1;
    let error = sd * (1.0 / n1 + 1.0 / n2).sqrt();
    (difference.is_finite() && error.is_finite()).then_some(Contrast {
        difference,
        sd,
        error,
        df,
    })
}

/// Mean and standard deviation; the latter is 0 for a single value.
fn mean_and_sd(data: &[f64]) -> Option<(f64, f64)> {
    let x = sorted(data)?;
    let sd = if x.len() < 2 { 0.0 } else { sd_of_sorted(&x)? };
    Some((mean_of_sorted(&x)?, sd))
}

impl Contrast {
    /// Two-sided p value of the difference, if the means were equal.
    pub fn p(&self) -> f64 {
        two_sided_p(self.difference, self.error, self.df)
    }

    /// The interval of the difference, `difference ± t error`.
    ///
    /// `None` when `confidence` is not between 0 and 1, or on overflow.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let reach = margin(self.error, self.df, confidence)?;
        Interval::between(self.difference - reach, self.difference + reach, confidence)
    }

    /// The difference that a one-sided test at level `alpha` finds with the chance `power`:
    /// `(t_(1-alpha; df) + t_(power; df)) error`. On average over the spreads that groups of these sizes show, a
    /// difference that is this many of the standard deviations *seen* is found with that chance. Source: Bloom,
    /// "Minimum detectable effects", Evaluation Review 19 (1995) 547-556.
    ///
    /// `None` when `alpha` is not between 0 and 0.5 or `power` not between 0.5 and 1.
    pub fn detectable(&self, alpha: f64, power: f64) -> Option<f64> {
        let possible = alpha < 0.5 && power > 0.5;
        let critical = |tail: f64| distributions::critical(2.0 * tail, self.df);
        possible.then(|| Some((critical(alpha)? + critical(1.0 - power)?) * self.error))?
    }
}
