//! Number of trials that intervals of medians need to show a difference.

use crate::interval::end_of_median_interval;
use crate::normal;

/// Highest number of trials considered.
const MOST: usize = 1_000_000;

/// Fewest trials that show a ratio of medians to differ from 1, with the chance `power`. With two samples by
/// [`median_difference`](crate::median_difference); with one (of logarithms of ratios) if its interval excludes
/// 0.
///
/// `shift` is the logarithm of the ratio, `sd` the standard deviation of the logarithms of each sample. The ends of the intervals are
/// order statistics, on average `r` standard deviations from the median with a standard deviation `e` of their own (both as for
/// [`median_interval_reach`](crate::median_interval_reach)): the power is `F((|shift| - r s) / (e s))` with
/// `s = sqrt(sum(sd^2))`, `F` the normal distribution. It assumes about normal logarithms.
///
/// `None` when 1,000,000 are too few, when a value is not finite, or when `confidence` or `power` is not between 0 and 1.
pub fn trials_for_apart(shift: f64, sd: &[f64], confidence: f64, power: f64) -> Option<usize> {
    let room = shift.abs();
    least_trials(power, |n| ends_within(n, &[room], sd, confidence))
}

/// Fewest trials that show a ratio of medians to lie within a margin, with the chance `power`. `margin_log` is
/// `ln(1 + margin)`, `true_log_ratio` the logarithm of the true ratio, the rest is as for [`trials_for_apart`].
/// `None` as there: a true ratio on the margin or outside is never shown to lie within it.
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

/// The probability that the end of a median's interval stays within each of these distances. 0 where there are too few trials for
/// an interval.
fn ends_within(n: usize, rooms: &[f64], sd: &[f64], confidence: f64) -> Option<f64> {
    let all = sd.iter().chain(rooms);
    if !all.copied().all(f64::is_finite) {
        return None;
    }
    let Some((reach, error)) = end_of_median_interval(n, confidence) else {
        return Some(0.0);
    };
    let sd = sd.iter().map(|sd| sd * sd).sum::<f64>().sqrt();
    let (reach, error) = (reach * sd, error * sd);
    let beyond = rooms.iter().map(|room| match *room > reach {
        _ if error > 0.0 => normal::cdf((reach - room) / error),
        true => 0.0,
        false => 1.0,
    });
    Some((1.0 - beyond.sum::<f64>()).max(0.0))
}

/// The lowest `n` from 2 with the wanted power, which must grow with `n`.
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
