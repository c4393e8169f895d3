//! The t tests of a difference of two means.

use crate::describe::{mean_of_sorted, sd_of_sorted, sorted};
use crate::interval::{Interval, margin};
use crate::t_distribution;

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
pub(crate) fn welch_error(e1: f64, n1: f64, e2: f64, n2: f64) -> (f64, f64) {
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
        p: t.map_or(0.0, |t| t_distribution::two_sided_p(t, df)),
        difference,
        interval: Interval::between(difference - margin, difference + margin, confidence)?,
    })
}
