//! Formats values for people: measured ones with three significant digits, and the unit after a space.

use std::fmt::Display;
use std::time::Duration;

use crate::units::{format_duration, format_size};

/// A count with its noun: `1 cell`, `2 cells`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    let plural = match n == N::from(1) {
        true => "",
        false if what.ends_with("sh") || what.ends_with('s') => "es",
        false => "s",
    };
    format!("{n} {what}{plural}")
}

/// Formats a value with three significant digits, and all digits before the decimal point: `0.123`, `1.23`, `12.3`, `123`,
/// `1234`.
pub fn significant(value: f64) -> String {
    digits(value, 3)
}

/// Formats a value with `count` significant digits, at least one.
pub fn digits(value: f64, count: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let after = count.saturating_sub(1);
    // Rounding may add a digit (9.996 becomes 10.0), so the digits are counted afterwards.
    let rounded = format!("{value:.after$e}");
    if !value.is_finite() || value.abs() >= 1e15 || value.abs() < 1e-6 {
        return rounded;
    }
    let exponent = rounded
        .split_once('e')
        .and_then(|(_, e)| e.parse::<i32>().ok())
        .unwrap_or(0);
    let decimals = usize::try_from(after as i32 - exponent).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Formats a time in nanoseconds: `890 ns`, `12.3 µs`, `1.25 ms`, `36.0 s`.
pub fn format_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        // Thresholds are where three digits would round up to the next unit.
        x if x < 999.5 => {
            let whole = if ns.fract() == 0.0 {
                format!("{ns}")
            } else {
                significant(ns)
            };
            return format!("{whole} ns");
        }
        x if x < 999.5e3 => (ns / 1e3, "µs"),
        x if x < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", significant(value))
}

/// A size in words, exact: `4 KiB`, `1536 B`. For what a command takes, see [`format_size`].
pub fn exact_size(bytes: u64) -> String {
    let typed = format_size(bytes);
    match typed.ends_with('B') {
        true => apart(&typed),
        false => format!("{typed} B"),
    }
}

/// A duration in words, as exact as [`format_duration`]: `1.5 s`, `100 µs`.
pub fn exact_duration(duration: Duration) -> String {
    let typed = apart(&format_duration(duration));
    match typed.strip_suffix(" us") {
        Some(number) => format!("{number} µs"),
        None => typed,
    }
}

/// A number and its unit with a space between them.
pub(crate) fn apart(typed: &str) -> String {
    let end = typed.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = typed.split_at(end.unwrap_or(typed.len()));
    format!("{number} {unit}")
}

/// Formats an estimated size: `512 B`, `34.2 KiB`, `1.50 MiB`. For levels, see `units::format_size`.
pub fn format_bytes(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    let (value, unit) = match bytes.abs() {
        x if x < KIB => (bytes, "B"),
        x if x < KIB * KIB => (bytes / KIB, "KiB"),
        x if x < KIB * KIB * KIB => (bytes / KIB / KIB, "MiB"),
        x if x < KIB * KIB * KIB * KIB => (bytes / KIB / KIB / KIB, "GiB"),
        _ => (bytes / KIB / KIB / KIB / KIB, "TiB"),
    };
    if value.fract() == 0.0 {
        format!("{value} {unit}")
    } else {
        format!("{} {unit}", significant(value))
    }
}

/// Formats a share as a percentage: `3.2 %`, `45 %`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Formats a share of which a little that is missing matters: `100 %` only for the whole, rounded down to a tenth from 99.5 % on.
pub fn format_percent_of_whole(share: f64) -> String {
    match (0.995..1.0).contains(&share) {
        true => format!("{:.1} %", (share * 1000.0).floor() / 10.0),
        false => format_percent(share),
    }
}

/// Formats a p value: two significant digits, `<0.0001` below that.
pub fn format_p(p: f64) -> String {
    match p {
        p if p < 0.000_1 => "<0.0001".to_owned(),
        p if p < 0.000_995 => format!("{p:.5}"),
        p if p < 0.009_95 => format!("{p:.4}"),
        p if p < 0.099_5 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_called_the_whole() {
        let all = [0.032, 0.45, 0.9949, 0.9967, 0.999_99, 1.0, 1.2].map(format_percent_of_whole);
        assert_eq!(
            all,
            [
                "3.2 %", "45 %", "99 %", "99.6 %", "99.9 %", "100 %", "120 %"
            ]
        );
    }

    #[test]
    fn three_digits_count_after_rounding() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (0.9996, "1.00"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (512.4, "512"),
            (123_456.0, "123456"),
            (-12.34, "-12.3"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn times_change_unit_at_a_thousand() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (890.0, "890 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (999_600.0, "1.00 ms"),
            (1_250_000.0, "1.25 ms"),
            (36e9, "36.0 s"),
        ] {
            assert_eq!(format_ns(ns), text);
        }
    }

    #[test]
    fn sizes_are_binary() {
        for (bytes, text) in [
            (8.0, "8 B"),
            (11.31, "11.3 B"),
            (1024.0, "1 KiB"),
            (35_000.0, "34.2 KiB"),
            (1_572_864.0, "1.50 MiB"),
            (33_554_432.0, "32 MiB"),
            (3e9, "2.79 GiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }

    #[test]
    fn words_have_a_space_before_the_unit() {
        let sizes = [4096, 1536, 3 << 30].map(exact_size);
        assert_eq!(sizes, ["4 KiB", "1536 B", "3 GiB"]);
        let times = [1_500_000_000, 100_000, 120_000_000_000];
        let times = times.map(|ns| exact_duration(Duration::from_nanos(ns)));
        assert_eq!(times, ["1.5 s", "100 µs", "2 min"]);
    }

    #[test]
    fn p_values_keep_two_digits() {
        for (p, text) in [
            (0.0, "<0.0001"),
            (0.000_123, "0.00012"),
            (0.001_23, "0.0012"),
            (0.012_3, "0.012"),
            (0.0999, "0.10"),
            (0.5, "0.50"),
            (1.0, "1.00"),
        ] {
            assert_eq!(format_p(p), text);
        }
    }

    #[test]
    fn percentages_keep_a_digit_when_small() {
        assert_eq!(format_percent(0.0321), "3.2 %");
        assert_eq!(format_percent(0.0996), "10 %");
        assert_eq!(format_percent(0.45), "45 %");
    }
}
