//! Comparison of two groups of values, one of which may have a single value: runs compared with each other.

use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::equivalence::one_sided_p;
use crate::interval::{Interval, margin};
use crate::t_distribution;

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
/// ([`crate::student`]). With a single new value the interval around `m1` is the prediction interval for that
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
        let critical = |tail: f64| t_distribution::critical(2.0 * tail, self.df);
        possible.then(|| Some((critical(alpha)? + critical(1.0 - power)?) * self.error))?
    }
}
