//! The t tests of a difference of two means.
//!
//! Tests whether two samples are equivalent.
//!
//! Comparison of two groups of values, one of which may have a single value: runs compared with each other.

use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::distributions;
use crate::interval::{Interval, around, margin};

/// The result of a t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TTest {
    /// Difference over its standard error; `None` when that is infinite: the means differ and
    /// neither sample varies.
    pub t: Option<f64>,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p-value: of a difference at least so great, if the means were equal.
    pub p: f64,
    /// `mean(new) - mean(base)`, in the unit of the data.
    pub difference: f64,
    /// The t interval of the difference.
    pub interval: Interval,
}

/// Welch's t test, which lets the two variances differ: the one to use by default.
///
/// `t = (m2 - m1) / sqrt(v1/n1 + v2/n2)` with
/// `df = (v1/n1 + v2/n2)^2 / ((v1/n1)^2 / (n1-1) + (v2/n2)^2 / (n2-1))`; the interval is
/// `m2 - m1 ± t_df sqrt(v1/n1 + v2/n2)`. It assumes independent values and means that are about
/// normal. Source: Welch, "The generalization of 'Student's' problem when several different
/// population variances are involved", Biometrika 34 (1947); Satterthwaite, Biometrics 2 (1946).
///
/// Where neither sample varies, `df` is `n1 + n2 - 2`, the interval has no width, and p is 1
/// for equal means and 0 for different ones. `None` below two values in either sample, when a
/// value is not finite, when the result overflows, or when `confidence` is not between 0 and 1.
pub fn welch(base: &[f64], new: &[f64], confidence: f64) -> Option<TTest> {
    welch_of(&Sample::new(base)?, &Sample::new(new)?, confidence)
}

pub(crate) fn welch_of(base: &Sample, new: &Sample, confidence: f64) -> Option<TTest> {
    let difference = new.mean - base.mean;
    let (error, df) = welch_error(base.error(), base.n, new.error(), new.n);
    t_test(difference, error, df, confidence)
}

/// Student's t test, which assumes equal variances.
///
/// `t = (m2 - m1) / (s sqrt(1/n1 + 1/n2))` with `df = n1 + n2 - 2`. The pooled variance is `s^2 = ((n1-1) v1 +
/// (n2-1) v2) / (n1 + n2 - 2)`. The test assumes independent values, means that are about normal, and equal
/// variances. With unequal variances and unequal sizes its p-values are wrong. Source: Student, "The probable
/// error of a mean", Biometrika 6 (1908); Fisher, Metron 5 (1925).
///
/// No variance and `None` as for [`welch`].
pub fn student(base: &[f64], new: &[f64], confidence: f64) -> Option<TTest> {
    let (base, new) = (Sample::new(base)?, Sample::new(new)?);
    let df = base.n + new.n - 2.0;
    let share = |sample: &Sample| sample.sd * ((sample.n - 1.0) / df).sqrt();
    let pooled = share(&base).hypot(share(&new));
    let error = pooled * (1.0 / base.n + 1.0 / new.n).sqrt();
    t_test(new.mean - base.mean, error, df, confidence)
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

pub(crate) fn t_test(difference: f64, error: f64, df: f64, confidence: f64) -> Option<TTest> {
    let margin = margin(error, df, confidence)?;
    let ratio = if difference == 0.0 {
        0.0
    } else {
        difference / error
    };
    let t = Some(ratio).filter(|t| t.is_finite());
    Some(TTest {
        t,
        df,
        p: t.map_or(0.0, |t| distributions::two_sided_p(t, df)),
        difference,
        interval: Interval::between(difference - margin, difference + margin, confidence)?,
    })
}

/// The result of an equivalence test on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equivalence {
    /// p-value: the probability of a ratio this far inside the margin, if the true one were outside.
    pub p: f64,
    /// Ratio of the geometric means, new over base.
    pub ratio: f64,
    /// Interval of the ratio at confidence `1 - 2 alpha`: equivalence is shown at `alpha` where it lies within
    /// the margin.
    pub interval: Interval,
}

/// Two one-sided tests of equivalence of the ratio new/base within `1/(1+margin)..(1+margin)`.
///
/// With `d` the difference of the mean logarithms, `se` and `df` as in Welch's test, and `L = ln(1 + margin)`:
/// `p = max(P(T >= (d + L) / se), P(T <= (d - L) / se))`. It assumes independent values whose logarithms have
/// means that are about normal. Source: Schuirmann, "A comparison of the two one-sided tests procedure and the
/// power approach", J. Pharmacokinet. Biopharm. 15 (1987), with Welch's standard error.
///
/// Where neither sample varies, p is 0 for a ratio inside the margin and 1 for one on it or outside, and the
/// interval has no width. `None` below two values in either sample, or when a value or `margin` is not finite
/// and positive; also when `alpha` is not between 0 and 0.5, or when the ratio overflows.
pub fn tost_log(base: &[f64], new: &[f64], margin: f64, alpha: f64) -> Option<Equivalence> {
    let (base, new) = (Sample::new(&logs(base)?)?, Sample::new(&logs(new)?)?);
    tost_of(&base, &new, margin, alpha)
}

/// Tests two samples of logarithms.
fn tost_of(base: &Sample, new: &Sample, margin: f64, alpha: f64) -> Option<Equivalence> {
    let possible = margin > 0.0 && margin.is_finite() && alpha > 0.0 && alpha < 0.5;
    if !possible {
        return None;
    }
    let difference = new.mean - base.mean;
    let (error, df) = welch_error(base.error(), base.n, new.error(), new.n);
    let limit = margin.ln_1p();
    let p = f64::max(
        one_sided_p(limit + difference, error, df),
        one_sided_p(limit - difference, error, df),
    );
    let reach = self::margin(error, df, 1.0 - 2.0 * alpha)?;
    let ratio = Some(difference.exp()).filter(|r| r.is_finite())?;
    Some(Equivalence {
        p,
        ratio,
        interval: around(ratio, reach, 1.0 - 2.0 * alpha)?,
    })
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
/// `m2 - m1` is `s sqrt(1/n1 + 1/n2)`. With two values or more in each group this is Student's t test
/// ([`student`]). With a single new value the interval around `m1` is the prediction interval for that
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
        (2.0 * self.p_above().min(self.p_below())).min(1.0)
    }

    /// One-sided p value of a difference at least this far up, if the means were equal.
    pub fn p_above(&self) -> f64 {
        if self.difference == 0.0 {
            return 0.5;
        }
        one_sided_p(self.difference, self.error, self.df)
    }

    /// One-sided p value of a difference at least this far down, if the means were equal.
    pub fn p_below(&self) -> f64 {
        if self.difference == 0.0 {
            return 0.5;
        }
        one_sided_p(-self.difference, self.error, self.df)
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
