//! Sizes, durations and measured values: as users write them and as people read them.

use std::fmt::Display;
use std::time::Duration;

use crate::{Error, Result, usage_errors};

const BINARY: [(&str, u32); 6] = [
    ("", 0),
    ("k", 10),
    ("m", 20),
    ("g", 30),
    ("t", 40),
    ("p", 50),
];

/// Reads `4096`, `4k`, `4K`, `4Ki`, `4KiB` (all 4096 bytes), `1.5MiB`.
///
/// # Errors
///
/// Of kind [`Usage`](crate::Kind::Usage). Refuses `kB` and the like, which mean multiples of 1000 or of 1024.
pub fn parse_size(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, suffix) = (&trimmed[..split], trimmed[split..].trim());
    let wrong = || {
        Error::usage(format!("'{text}' is not a size"))
            .hint("write bytes (4096) or a binary size: 4k, 4KiB, 1.5MiB, 10G")
    };
    let lower = suffix.to_ascii_lowercase();
    let unit = lower
        .strip_suffix("ib")
        .or_else(|| lower.strip_suffix('i'))
        .unwrap_or(&lower);
    usage_errors! {
        unit.len() == 2 && unit.ends_with('b') =>
            format!("'{text}' is ambiguous: {suffix} is 1000-based to some and 1024-based to others"),
            format!("write {number}{}iB for a binary size, or the bytes as a bare number", &suffix[..1].to_ascii_uppercase());
    }
    let unit = if unit == "b" { "" } else { unit };
    let shift = BINARY
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, shift)| *shift)
        .ok_or_else(wrong)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole
            .checked_mul(1 << shift)
            .filter(|bytes| *bytes <= i64::MAX as u64)
            .ok_or_else(|| {
                Error::usage(format!("'{text}' is more than 8 EiB")).hint("choose a smaller size")
            });
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * (1u64 << shift) as f64;
    usage_errors! {
        value.fract() != 0.0 || value >= i64::MAX as f64 => format!("'{text}' is not a whole number of bytes"), "choose a size that is";
    }
    Ok(value as u64)
}

/// Formats a size exactly, as [`parse_size`] reads it: `4KiB`, `1MiB`, `1536`.
pub fn format_size(bytes: u64) -> String {
    let is_whole = |(_, shift): &&(&str, u32)| bytes.is_multiple_of(1 << shift);
    match BINARY.iter().rev().find(is_whole) {
        Some((unit, shift)) if bytes != 0 && *shift > 0 => {
            format!("{}{}iB", bytes >> shift, unit.to_uppercase())
        }
        _ => bytes.to_string(),
    }
}

/// Reads `30s`, `1.5s`, `100us`, `2min`, `1h`, `1h 30m`; a bare number is seconds.
///
/// # Errors
/// Of kind [`Usage`](crate::Kind::Usage).
pub fn parse_duration(text: &str) -> Result<Duration> {
    let wrong = || {
        Error::usage(format!("'{text}' is not a duration"))
            .hint("write seconds (30) or a number with a unit: 100us, 250ms, 1.5s, 2min, 1h")
    };
    // Both letters, micro and mu, as output has them.
    let plain = text.trim().replace(['µ', 'μ'], "u");
    let trimmed = plain.as_str();
    let duration = if trimmed.chars().all(|c| c.is_ascii_digit() || c == '.') {
        parse_seconds(trimmed).ok_or_else(wrong)?
    } else {
        // In `10M`, M means minutes, not months.
        if trimmed.contains('M') {
            return Err(wrong());
        }
        humantime::parse_duration(trimmed).map_err(|_| wrong())?
    };
    if duration < Duration::from_secs(366 * 86_400) {
        Ok(duration)
    } else {
        Err(Error::usage(format!("'{text}' is longer than a year")).hint("choose a shorter time"))
    }
}

/// Reads a duration as [`parse_duration`] does.
///
/// # Errors
/// As [`parse_duration`]; also a duration of 0.
pub fn parse_positive_duration(text: &str) -> Result<Duration> {
    let duration = parse_duration(text)?;
    match duration.is_zero() {
        false => Ok(duration),
        true => Err(Error::usage(format!("'{text}' is not above zero"))
            .hint("choose a longer time, for example 30s")),
    }
}

/// Reads digits with at most one point, exactly, rounded down to nanoseconds; floating point would lose precision for long times.
/// Saturates at the longest duration.
fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let digits = fraction.bytes().map(|digit| u32::from(digit - b'0'));
    let scales = std::iter::successors(Some(100_000_000_u32), |scale| Some(scale / 10));
    let ns = digits.zip(scales).map(|(digit, scale)| digit * scale).sum();
    let seconds = match whole {
        "" => Ok(0),
        digits => digits.parse(),
    };
    Some(seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, ns)))
}

/// Formats a duration in whole milliseconds, seconds or minutes, or tenths of hours, rounded up, for announcements: `50 ms`, `40 s`, `3 min`, `2.9 h`.
pub fn rough_duration(duration: Duration) -> String {
    if duration <= Duration::from_millis(999) {
        return format!("{} ms", duration.as_nanos().div_ceil(1_000_000));
    }
    let seconds = duration.as_secs_f64().ceil();
    match seconds {
        ..120.0 => format!("{seconds} s"),
        ..7200.0 => format!("{} min", (seconds / 60.0).ceil()),
        _ => format!("{:.1} h", (seconds / 360.0).ceil() / 10.0),
    }
}

/// A budget to recommend that is at least this long: whole minutes, and beyond three hours whole hours.
pub fn budget_to_recommend(time: Duration) -> Duration {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let seconds = time
        .as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0));
    let unit = match seconds <= 3 * HOUR {
        true => MINUTE,
        false => HOUR,
    };
    Duration::from_secs(seconds.div_ceil(unit).max(1).saturating_mul(unit))
}

/// Formats a duration with one unit and at most three decimal places: `250ms`, `1.5s`, `2min`. [`parse_duration`] reads it back,
/// exactly if the value fits that form.
pub fn format_duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    for (unit, size) in [
        ("h", 3_600_000_000_000_u128),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ] {
        let part = size / 1000;
        if ns >= size
            && part > 0
            && ns.is_multiple_of(part)
            && (ns.is_multiple_of(size) || !matches!(unit, "h" | "min"))
        {
            let (whole, thousandths) = (ns / size, ns % size / part);
            let number = format!("{whole}.{thousandths:03}");
            return format!(
                "{}{unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            );
        }
    }
    format!("{ns}ns")
}

/// Reads a share above 0 and below 1: `5%` or `0.05`.
///
/// # Errors
/// Of kind [`Usage`](crate::Kind::Usage) when it is none.
pub fn parse_share(text: &str) -> Result<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().map(|value| value / scale).ok();
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not a share above 0 and below 1"))
                .hint("write it as 5% or 0.05")
        })
}

/// Reads a throughput, MB/s: `510MB/s`, `1.2GB/s`, or a bare number. `None` unless it is above 0.
pub fn parse_throughput(text: &str) -> Option<f64> {
    let units = [("GB/s", 1e3), ("MB/s", 1.0), ("", 1.0)];
    let own = |(unit, scale)| Some((text.strip_suffix(unit)?, scale));
    let (number, scale) = units.into_iter().find_map(own)?;
    positive(number, scale)
}

/// Reads a number per second: `95000` or `95k`. `None` unless it is above 0.
pub fn parse_per_second(text: &str) -> Option<f64> {
    match text.strip_suffix(['k', 'K']) {
        Some(number) => positive(number, 1e3),
        None => positive(text, 1.0),
    }
}

fn positive(number: &str, scale: f64) -> Option<f64> {
    let value = number.trim_end().parse::<f64>().ok()? * scale;
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// A count with its noun: `1 cell`, `2 cells`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    let plural = match n == N::from(1) {
        true => "",
        false if what.ends_with("sh") || what.ends_with('s') => "es",
        false => "s",
    };
    format!("{n} {what}{plural}")
}

/// The possessive of a name: `reader's`, `reads'`.
pub fn possessive(name: &str) -> String {
    match name.ends_with('s') {
        true => format!("{name}'"),
        false => format!("{name}'s"),
    }
}

/// The text with nouns after `1` in the singular: `1 token/s` for `1 tokens/s`.
pub fn singular_after_one(text: &str) -> String {
    let mut before = "";
    let words = text.split(' ').map(|word| {
        let end = word.find(|c: char| !c.is_ascii_lowercase());
        let (noun, rest) = word.split_at(end.unwrap_or(word.len()));
        let one = noun.strip_suffix('s').filter(|one| one.len() > 2);
        let one = one.filter(|one| before == "1" && !one.ends_with('s'));
        before = word;
        [one.unwrap_or(noun), rest].concat()
    });
    words.collect::<Vec<_>>().join(" ")
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

/// Formats the values between two written ends: `36 to 40 %`, `980 µs to 1.1 ms`, `40 %` where both are written alike.
pub fn between(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        _ if low == high => high.to_owned(),
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
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
