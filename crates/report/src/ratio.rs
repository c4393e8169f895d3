//! Ratios in words.

use iolab_analysis::claim::Estimate;
use iolab_analysis::doubt::RatioBound;
use iolab_figure::result_names;
use iolab_workload::quantity::{digits, significant};

/// Ratio below which a fraction is shown: `1/34.5` is easier to read than `0.0290`.
const FRACTION_BELOW: f64 = 0.1;
/// Value from which the ends of a fraction's interval are decimals.
const DECIMAL_FROM: f64 = 0.5;
/// Most digits of a ratio.
const DIGITS_MAX: usize = 4;

/// A ratio with the interval that decides, if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RatioShown {
    ratio: f64,
    interval: Option<(f64, f64)>,
    bound: Option<RatioBound>,
}

impl RatioShown {
    /// The ratio as a bound, if it is only one.
    pub(crate) fn bounded(self, bound: Option<RatioBound>) -> Self {
        Self { bound, ..self }
    }

    /// The bound on the true ratio and its number; `None` if the ratio is more than a bound.
    pub(crate) fn bound(self) -> Option<(RatioBound, f64)> {
        let bound = self.bound?;
        Some((bound, bound.of(self.ratio, self.interval)))
    }

    /// The number that is shown.
    fn shown(self) -> f64 {
        self.bound().map_or(self.ratio, |(_, ratio)| ratio)
    }

    /// The ratio of two medians, with the interval of its estimate. Next to two numbers, a ratio must be their
    /// ratio.
    pub(crate) fn beside(estimate: &Estimate, (base, other): (f64, f64)) -> Self {
        let ratio = Some(other / base).filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let ratio = ratio.unwrap_or(estimate.ratio);
        let interval = estimate.interval;
        Self {
            ratio,
            interval: interval.map(|(low, high)| (low.min(ratio), high.max(ratio))),
            bound: estimate.bound,
        }
    }

    /// `27.5× higher`, `34.5× lower`, or `at most 1.20× higher` for a bound: the larger number first.
    pub(crate) fn factor(self) -> String {
        match self.bound() {
            None => one_way(self.ratio),
            Some((bound, ratio)) => {
                // A bound of at most a tenth means at least ten times lower.
                let bound = match (bound, ratio < 1.0) {
                    (RatioBound::AtMost, true) => RatioBound::AtLeast,
                    (RatioBound::AtLeast, true) => RatioBound::AtMost,
                    (bound, false) => bound,
                };
                format!("{} {}", result_names::bound(bound), one_way(ratio))
            }
        }
    }

    /// `27.4 to 27.6×` in the direction of the ratio, or `1.05× lower to 1.10× higher` if the interval holds 1.
    /// `None` for a bound, and if both ends have the digits of the ratio.
    pub(crate) fn range(self) -> Option<String> {
        let (low, high) = self.interval.filter(|_| self.bound.is_none())?;
        if low < 1.0 && high > 1.0 {
            return Some(format!("{} to {}", one_way(low), one_way(high)));
        }
        let (near, far) = match self.ratio < 1.0 {
            true => (1.0 / high, 1.0 / low),
            false => (low, high),
        };
        let end = |value: f64| match significant(value) {
            hidden if value > 1.0 && hidden == "1.00" => "above 1".to_owned(),
            text => text,
        };
        let ratio = significant(self.ratio.max(1.0 / self.ratio));
        let ends = (end(near), end(far));
        (ends.0 != ratio || ends.1 != ratio).then(|| format!("{} to {}×", ends.0, ends.1))
    }

    /// The width of its interval, on the logarithm.
    pub(crate) fn width(self) -> f64 {
        self.interval.map_or(0.0, |(low, high)| (high / low).ln())
    }

    /// `27.5× higher (27.4 to 27.6×)`.
    pub(crate) fn in_words(self) -> String {
        match self.range() {
            None => self.factor(),
            Some(range) => format!("{} ({range})", self.factor()),
        }
    }

    /// Distance from 1, on the logarithm.
    pub(crate) fn size(self) -> f64 {
        self.shown().ln().abs()
    }
}

impl From<(f64, Option<(f64, f64)>)> for RatioShown {
    fn from((ratio, interval): (f64, Option<(f64, f64)>)) -> Self {
        Self {
            ratio,
            interval,
            bound: None,
        }
    }
}

/// `4.23 times (4.22 to 4.24)`, `1/34.5 (1/35.9 to 1/32.1)`, or `at most 1/861` for a bound. If an interval
/// without 1 is very near to 1, it has enough digits to show that, or reads `0.9635 times (0.9271 to below 1)`.
pub(crate) fn times(shown: impl Into<RatioShown>) -> String {
    times_noted(shown.into(), "")
}

/// The ratio as [`times`] writes it, with a note after the interval if it has one.
fn times_noted(shown: RatioShown, note: &str) -> String {
    if let Some((bound, ratio)) = shown.bound() {
        return format!("{} {}", result_names::bound(bound), alone(ratio));
    }
    let ratio = shown.ratio;
    let Some((low, high)) = shown.interval else {
        return alone(ratio);
    };
    if is_fraction(ratio) {
        return format!(
            "{} ({} to {}{note})",
            fraction(ratio),
            fraction(low),
            fraction(high)
        );
    }
    let is_one = |value: f64, count: usize| digits(value, count).parse() == Ok(1.0);
    let hides = |value: f64, count: usize| value != 1.0 && is_one(value, count);
    // Both ends are so near to 1 that only rounding separates them.
    let is_one_place = hides(low, DIGITS_MAX) && hides(high, DIGITS_MAX);
    let is_hidden =
        |count: usize| (low > 1.0 && hides(low, count)) || (high < 1.0 && hides(high, count));
    let count = match is_one_place || !is_hidden(3) {
        true => 3,
        false => DIGITS_MAX,
    };
    let end = |value: f64| match hides(value, count) && !is_one_place {
        true if value < 1.0 && high < 1.0 => "below 1".to_owned(),
        true if value > 1.0 && low > 1.0 => "above 1".to_owned(),
        _ => digits(value, count),
    };
    format!(
        "{} times ({} to {}{note})",
        digits(ratio, count),
        end(low),
        end(high)
    )
}

/// The ratio in front of its reference: `4.23 times (4.22 to 4.24)` the IOPS, `1/34.5 (1/35.9 to 1/32.1) of` the
/// IOPS.
pub(crate) fn times_of(shown: impl Into<RatioShown>) -> String {
    let shown = shown.into();
    let of = match is_fraction(shown.shown()) {
        true => " of",
        false => "",
    };
    times(shown) + of
}

/// The ratio with a pronoun as its reference: `1/34.5 (1/35.9 to 1/32.1) of it`.
pub(crate) fn times_of_that(shown: impl Into<RatioShown>, note: &str, that: &str) -> String {
    let shown = shown.into();
    let of = match is_fraction(shown.shown()) {
        true => format!(" of {that}"),
        false => String::new(),
    };
    times_noted(shown, note) + &of
}

/// The ratio of two times, in front of the reference: `4.23 times (4.22 to 4.24) as long as` it, `1/34.5 (1/35.9
/// to 1/32.1) of the time of` it.
pub(crate) fn as_long_as(shown: impl Into<RatioShown>) -> String {
    let shown = shown.into();
    let of = match is_fraction(shown.shown()) {
        true => " of the time of",
        false => " as long as",
    };
    times(shown) + of
}

/// The ratio of an estimate.
pub(crate) fn of(estimate: &Estimate) -> RatioShown {
    RatioShown::from((estimate.ratio, estimate.interval)).bounded(estimate.bound)
}

/// `27.5× higher`, `34.5× lower`.
fn one_way(ratio: f64) -> String {
    match ratio < 1.0 {
        true => format!("{}× lower", significant(1.0 / ratio)),
        false => format!("{}× higher", significant(ratio)),
    }
}

/// `4.23 times`, `1/34.5`.
fn alone(ratio: f64) -> String {
    match is_fraction(ratio) {
        true => fraction(ratio),
        false => format!("{} times", significant(ratio)),
    }
}

fn is_fraction(ratio: f64) -> bool {
    ratio > 0.0 && ratio < FRACTION_BELOW
}

/// A fraction, or an end of its interval: `1/34.5`.
fn fraction(value: f64) -> String {
    let parts = 1.0 / value;
    match value > 0.0 && value < DECIMAL_FROM && parts.is_finite() {
        true => format!("1/{}", digits(parts, 3)),
        false => significant(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ratio: f64, low: f64, high: f64) -> String {
        times((ratio, Some((low, high))))
    }

    #[test]
    fn interval_without_one_never_appears_to_hold_it() {
        let of = [
            shown(4.23, 4.2203, 4.2399),
            shown(0.98, 0.97, 0.99963),
            shown(0.963541, 0.927083, 0.999999),
            shown(1.02, 1.000004, 1.05),
            shown(1.0, 0.999999, 1.000001),
            shown(1.0 + 4e-16, 1.0 + 4e-16, 1.0 + 4e-16),
        ];
        insta::assert_snapshot!(of.join("\n"), @r"
        4.23 times (4.22 to 4.24)
        0.9800 times (0.9700 to 0.9996)
        0.9635 times (0.9271 to below 1)
        1.020 times (above 1 to 1.050)
        1.00 times (1.00 to 1.00)
        1.00 times (1.00 to 1.00)
        ");
    }

    #[test]
    fn a_bound_has_no_interval() {
        let of = |bound, ratio: f64| {
            let shown = RatioShown::from((ratio, Some((0.9 * ratio, 1.1 * ratio))));
            times_of_that(shown.bounded(Some(bound)), "; a note", "the base")
        };
        let told = [
            of(RatioBound::AtMost, 0.001),
            of(RatioBound::AtMost, 0.5),
            of(RatioBound::AtLeast, 1000.0),
            of(RatioBound::AtLeast, 1.5),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        at most 1/909 of the base
        at most 0.550 times
        at least 900 times
        at least 1.35 times
        ");
    }

    #[test]
    fn small_ratio_is_a_fraction_of_its_reference() {
        let of = [
            shown(0.029, 0.0285, 0.0295),
            shown(0.0183, 0.0092, 0.0598),
            shown(0.0995, 0.05, 0.15),
            shown(0.05, 0.0, 0.8),
            shown(0.05, 0.001, 1.6),
            shown(0.1, 0.09, 0.11),
            shown(1e-300, f64::MIN_POSITIVE / 4.0, 1e-299),
            shown(0.0, -1.0, f64::NAN),
            times((0.01, None)),
            times((34.2, None)),
            times_of((0.01, None)) + " the IOPS",
            times_of((34.2, None)) + " the IOPS",
            times_of_that((0.01, Some((0.009, 0.011))), "; a note", "the base"),
            times_of_that((34.2, None), "", "the base"),
            as_long_as((0.01, None)) + " it",
            as_long_as((34.2, None)) + " it",
        ];
        insta::assert_snapshot!(of.join("\n"), @r"
        1/34.5 (1/35.1 to 1/33.9)
        1/54.6 (1/109 to 1/16.7)
        1/10.1 (1/20.0 to 1/6.67)
        1/20.0 (0 to 0.800)
        1/20.0 (1/1000 to 1.60)
        0.100 times (0.0900 to 0.110)
        1/1.00e300 (5.56e-309 to 1/1.00e299)
        0 times (-1.00 to NaN)
        1/100
        34.2 times
        1/100 of the IOPS
        34.2 times the IOPS
        1/100 (1/111 to 1/90.9; a note) of the base
        34.2 times
        1/100 of the time of it
        34.2 times as long as it
        ");
    }
}
