//! Ratios in words.

use iolab_analysis::claim::Estimate;
use iolab_workload::quantity::{digits, significant};

/// A lower ratio is a fraction: `1/34.5` is read at once, `0.0290` is not.
const FRACTION_BELOW: f64 = 0.1;
/// In the interval of a fraction, higher ends are decimals.
const DECIMAL_FROM: f64 = 0.5;
/// Most digits of a ratio.
const DIGITS_MAX: usize = 4;

/// A ratio with the interval that decides, where it has one.
pub(crate) type RatioShown = (f64, Option<(f64, f64)>);

/// `4.23 times (4.22 to 4.24)`, `1/34.5 (1/35.9 to 1/32.1)`; where an interval without 1 is that near to it, with as many digits as show that,
/// or `0.9635 times (0.9271 to below 1)`.
pub(crate) fn times(shown: RatioShown) -> String {
    times_noted(shown, "")
}

/// The same with a note behind the interval, where it has one.
fn times_noted(shown: RatioShown, note: &str) -> String {
    let (ratio, interval) = shown;
    let Some((low, high)) = interval else {
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
    // Both ends that near to 1: a difference of rounding.
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

/// The same before what it is a multiple or a fraction of: `4.23 times (4.22 to 4.24)` the IOPS, `1/34.5 (1/35.9 to 1/32.1) of` the IOPS.
pub(crate) fn times_of(shown: RatioShown) -> String {
    let of = if is_fraction(shown.0) { " of" } else { "" };
    times(shown) + of
}

/// The same where what it is a multiple or a fraction of is only pointed to: `1/34.5 (1/35.9 to 1/32.1) of it`.
pub(crate) fn times_of_that(shown: RatioShown, note: &str, that: &str) -> String {
    let of = match is_fraction(shown.0) {
        true => format!(" of {that}"),
        false => String::new(),
    };
    times_noted(shown, note) + &of
}

/// The same before what takes that time: `4.23 times (4.22 to 4.24) as long as` it, `1/34.5 (1/35.9 to 1/32.1) of the time of` it.
pub(crate) fn as_long_as(shown: RatioShown) -> String {
    let of = match is_fraction(shown.0) {
        true => " of the time of",
        false => " as long as",
    };
    times(shown) + of
}

/// The ratio of an estimate.
pub(crate) fn of(estimate: &Estimate) -> RatioShown {
    (estimate.ratio, estimate.interval)
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
    fn an_interval_without_one_never_looks_as_if_it_held_one() {
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
    fn a_small_ratio_is_a_fraction_and_names_what_it_is_of() {
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
