//! Reads and writes sizes and durations as users write them. Sizes are binary, rates decimal.

use std::time::Duration;

use crate::usage_errors;
use crate::{Error, Result};

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
    for (unit, shift) in [
        ("PiB", 50),
        ("TiB", 40),
        ("GiB", 30),
        ("MiB", 20),
        ("KiB", 10),
    ] {
        if bytes != 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
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

/// Formats a duration with two digits, rounded up, for announcements: `40 s`, `3 min`, `2.9 h`.
pub fn rough_duration(duration: Duration) -> String {
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
