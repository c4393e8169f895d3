//! How many trials a test needs.

use crate::interval::end_of_median_interval;
use crate::normal;
use crate::t_distribution;

/// The most trials per group that are considered.
const MOST: usize = 1_000_000;

/// The power of the two-sided t test with `n_per_group` values in each of two groups.
///
/// `effect` is the difference of the means over the common standard deviation. With
/// `df = 2n - 2`, `d = |effect| sqrt(n / 2)` and `t` the critical value, the power is
/// `P(|T| > t)` for a noncentral t of parameter `d`: the mean of `F(d - t s) + F(-d - t s)`, `F`
/// the normal distribution, over `s = sqrt(chi^2_df / df)`, integrated numerically. It assumes
/// normal values of equal variance. Source: Johnson, Kotz and Balakrishnan, Continuous
/// Univariate Distributions 2, 2nd ed. (1995), chapter 31.
///
/// `None` below 2 or above 1,000,000 values, when `effect` is not finite, or when `alpha` is not
/// between 0 and 1.
pub fn power_of_t_test(n_per_group: usize, effect: f64, alpha: f64) -> Option<f64> {
    if !(2..=MOST).contains(&n_per_group) || !effect.is_finite() {
        return None;
    }
    let n = n_per_group as f64;
    let df = 2.0 * n - 2.0;
    let t = t_distribution::critical(alpha, df)?;
    let d = effect.abs() * (n / 2.0).sqrt();
    let spread = Spread::new(df, d);
    if spread.leaves_no_doubt(d, t) {
        return Some(1.0);
    }
    let power = spread.mean(f64::INFINITY, |s| {
        normal::cdf(d - t * s) + normal::cdf(-d - t * s)
    });
    Some(power.clamp(0.0, 1.0))
}

/// The fewest trials per group with which the two-sided t test finds a difference of `effect`
/// standard deviations at level `alpha` with the chance `power`; see [`power_of_t_test`].
///
/// `None` when 1,000,000 are too few (so always for an effect of 0 and a power above `alpha`), when
/// `effect` is not finite, or when `alpha` or `power` is not between 0 and 1.
pub fn trials_for_difference(effect: f64, alpha: f64, power: f64) -> Option<usize> {
    least_trials(power, |n| power_of_t_test(n, effect, alpha))
}

/// The fewest trials per group with which two one-sided t tests show at level `alpha` that a
/// ratio lies within a margin, with the chance `power`.
///
/// On the log scale: `margin_log` is `ln(1 + margin)`, `true_log_ratio` the logarithm of the ratio
/// that there really is, `sd_log` the common standard deviation of the logarithms. With
/// `e = sd sqrt(2 / n)`, `df = 2n - 2` and `t` the one-sided critical value, the power is the mean
/// of `max(0, F((L - r) / e - t s) - F(t s - (L + r) / e))` over `s = sqrt(chi^2_df / df)`,
/// `F` the normal distribution, integrated numerically: no approximation by z or by a noncentral
/// t. It assumes normal logarithms of equal variance. Source: Owen, "A special case of a bivariate
/// non-central t-distribution", Biometrika 52 (1965); Phillips, "Power of the two one-sided tests
/// procedure in bioequivalence", J. Pharmacokinet. Biopharm. 18 (1990); compare Chow, Shao and
/// Wang, Sample Size Calculations in Clinical Research, 2nd ed. (2008), 3.2.
///
/// `None` when 1,000,000 are too few, when the true ratio lies on the margin or outside, when an
/// argument is not finite, when `margin_log` is not positive or `sd_log` negative, when `alpha` is
/// not between 0 and 0.5, or when `power` is not between 0 and 1.
pub fn trials_for_equivalence(
    margin_log: f64,
    true_log_ratio: f64,
    sd_log: f64,
    alpha: f64,
    power: f64,
) -> Option<usize> {
    let inside = true_log_ratio.abs() < margin_log && margin_log.is_finite();
    if !inside || !(0.0..f64::INFINITY).contains(&sd_log) {
        return None;
    }
    least_trials(power, |n| {
        power_of_tost(n, margin_log, true_log_ratio, sd_log, alpha)
    })
}

/// The fewest trials with which a ratio of medians is shown to differ from 1, with the chance `power`: with two samples the exact
/// intervals of both medians then lie apart, with one (of logarithms of ratios) its interval leaves 0 out.
///
/// `shift` is the logarithm of the ratio, `sd` the standard deviation of the logarithms of each sample. The ends of the intervals are
/// order statistics, on average `r` standard deviations from the median with a standard deviation `e` of their own (both as for
/// [`median_interval_reach`](crate::median_interval_reach)): the power is `F((|shift| - r sum(sd)) / (e sqrt(sum(sd^2))))`, `F` the
/// normal distribution. It assumes about normal logarithms.
///
/// `None` when 1,000,000 are too few, when a value is not finite, or when `confidence` or `power` is not between 0 and 1.
pub fn trials_for_apart(shift: f64, sd: &[f64], confidence: f64, power: f64) -> Option<usize> {
    let room = shift.abs();
    least_trials(power, |n| ends_within(n, &[room], sd, confidence))
}

/// The fewest trials with which a ratio of medians is shown to lie within a margin, with the chance `power`: `margin_log` and
/// `true_log_ratio` as for [`trials_for_equivalence`], the rest as for [`trials_for_apart`].
pub fn trials_for_within(
    margin_log: f64,
    true_log_ratio: f64,
    sd: &[f64],
    confidence: f64,
    power: f64,
) -> Option<usize> {
    let room = [margin_log - true_log_ratio, margin_log + true_log_ratio];
    least_trials(power, |n| ends_within(n, &room, sd, confidence))
}

/// The chance that the end of an interval of medians comes no farther than each of these rooms. 0 where there are too few trials for
/// an interval.
fn ends_within(n: usize, rooms: &[f64], sd: &[f64], confidence: f64) -> Option<f64> {
    let all = sd.iter().chain(rooms);
    if !all.copied().all(f64::is_finite) {
        return None;
    }
    let Some((reach, error)) = end_of_median_interval(n, confidence) else {
        return Some(0.0);
    };
    let reach = reach * sd.iter().sum::<f64>();
    let error = error * sd.iter().map(|sd| sd * sd).sum::<f64>().sqrt();
    let beyond = rooms.iter().map(|room| match *room > reach {
        _ if error > 0.0 => normal::cdf((reach - room) / error),
        true => 0.0,
        false => 1.0,
    });
    Some((1.0 - beyond.sum::<f64>()).max(0.0))
}

/// The power of two one-sided t tests, for a true ratio inside the margin.
fn power_of_tost(n: usize, margin: f64, truth: f64, sd: f64, alpha: f64) -> Option<f64> {
    let n = n as f64;
    let df = 2.0 * n - 2.0;
    let t = t_distribution::critical(2.0 * alpha, df)?;
    let error = sd * (2.0 / n).sqrt();
    let (above, below) = ((margin - truth) / error, (margin + truth) / error);
    let spread = Spread::new(df, above.max(below));
    if spread.leaves_no_doubt(above.min(below), t) {
        return Some(1.0);
    }
    // Beyond this s the interval is wider than the margin wherever it lies.
    let most = f64::midpoint(above, below) / t;
    Some(spread.mean(most, |s| {
        normal::cdf(above - t * s) - normal::cdf(t * s - below)
    }))
}

/// The least `n` from 2 whose power reaches `wanted`, power growing with `n`.
fn least_trials(wanted: f64, power: impl Fn(usize) -> Option<f64>) -> Option<usize> {
    if !(wanted > 0.0 && wanted < 1.0) {
        return None;
    }
    let (mut too_few, mut enough) = (1, 2);
    while power(enough)? < wanted {
        if enough == MOST {
            return None;
        }
        too_few = enough;
        enough = (enough * 2).min(MOST);
    }
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if power(middle)? < wanted {
            too_few = middle;
        } else {
            enough = middle;
        }
    }
    Some(enough)
}

/// The distribution of a sample's standard deviation over the true one, `s = sqrt(chi^2_df / df)`,
/// on the scale of `u = ln s`, where its density is `exp(-df/2 (e^2u - 1 - 2u))` times a constant.
struct Spread {
    half_df: f64,
    low: f64,
    high: f64,
    panels: usize,
}

impl Spread {
    /// `steepness` is the greatest slope in `u` of what will be averaged.
    fn new(df: f64, steepness: f64) -> Self {
        /// The density beyond is below `exp(-60)` of its peak.
        const CUT: f64 = 60.0;
        const PANELS: f64 = 256.0;
        const MOST_PANELS: f64 = 16384.0;
        let half_df = df / 2.0;
        let (low, high) = where_reached(CUT / half_df);
        let panels = ((high - low) * steepness).clamp(PANELS, MOST_PANELS);
        Self {
            half_df,
            low,
            high,
            panels: panels as usize,
        }
    }

    /// Whether `F(d - t s)` is 1 in all its digits for every `s` that may occur.
    fn leaves_no_doubt(&self, d: f64, t: f64) -> bool {
        d - t * self.high.exp() > 9.0
    }

    /// The mean of `f(s)`, `f` counting as 0 above `most`.
    fn mean(&self, most: f64, f: impl Fn(f64) -> f64) -> f64 {
        let weight = |u: f64| (-self.half_df * excess(u)).exp();
        let high = self.high.min(most.ln());
        if high <= self.low {
            return 0.0;
        }
        let part = integral(self.low, high, self.panels, |u| weight(u) * f(u.exp()));
        part / integral(self.low, self.high, self.panels, weight)
    }
}

/// `e^2u - 1 - 2u`, without cancellation near 0.
fn excess(u: f64) -> f64 {
    let exact = (2.0 * u).exp_m1() - 2.0 * u;
    if u.abs() > 1e-2 {
        return exact;
    }
    let v = 2.0 * u;
    v * v
        * (0.5
            + v * (1.0 / 6.0
                + v * (1.0 / 24.0 + v * (1.0 / 120.0 + v * (1.0 / 720.0 + v / 5040.0)))))
}

/// The two `u` where [`excess`] reaches `level`, by Newton's iteration from outside: the
/// function is convex, so that it cannot pass them.
fn where_reached(level: f64) -> (f64, f64) {
    const STEPS: usize = 60;
    let approach = |from: f64| {
        (0..STEPS).fold(from, |u, _| {
            u - (excess(u) - level) / (2.0 * (2.0 * u).exp_m1())
        })
    };
    (
        approach(-(level + 1.0) / 2.0),
        approach((level / 2.0).sqrt()),
    )
}

/// The integral by Gauss and Legendre's rule of five points on each of equal panels.
fn integral(low: f64, high: f64, panels: usize, f: impl Fn(f64) -> f64) -> f64 {
    // Abramowitz and Stegun, Handbook of Mathematical Functions (1964), table 25.4.
    const RULE: [(f64, f64); 5] = [
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    let half = (high - low) / panels as f64 / 2.0;
    let panel = |i: usize| {
        let centre = low + half * (2 * i + 1) as f64;
        RULE.iter()
            .map(|(x, w)| w * f(centre + half * x))
            .sum::<f64>()
    };
    half * (0..panels).map(panel).sum::<f64>()
}
