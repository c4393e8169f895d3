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
