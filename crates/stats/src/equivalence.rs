//! Tests whether two samples are equivalent.

use crate::interval::{Interval, margin};
use crate::ratio::around;
use crate::t_distribution;
use crate::t_test::{Sample, welch_error};

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
pub(crate) fn one_sided_p(distance: f64, error: f64, df: f64) -> f64 {
    let t = distance / error;
    if t.is_finite() {
        t_distribution::upper_tail(t, df)
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
