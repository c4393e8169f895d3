//! Labels of figures: the form of factors, levels, responses and ticks.

use iolab_analysis::analysis::Response;
pub(super) use iolab_analysis::level_value::{level_value as position, number_kind};
use iolab_workload::group::split_group;
use iolab_workload::response::{LevelQuantity, Requests, ServiceLevel};
use iolab_workload::settings::ValueKind;
use iolab_workload::trial::Rate;
use iolab_workload::units::{format_percent, significant};

use super::RUN;
use iolab_workload::escape_control::escape_control;

/// The name of a factor on an axis or in a legend.
pub(super) fn noun(factor: &str) -> String {
    if let (Some(group), setting) = split_group(factor) {
        return format!("{} of {group}", noun(setting));
    }
    match factor {
        "bs" => "I/O size",
        "region" => "file or region size",
        "skip" => "skip after each I/O",
        "buffer_init" => "buffer",
        "read_percent" => "share of reads",
        "sync" => "sync policy",
        "cache" => "cache state",
        other => return escape_control(other).replace('_', " "),
    }
    .to_owned()
}

/// The label of an axis for a factor.
pub(super) fn axis(factor: &str) -> String {
    let unit = match (factor, number_kind(factor)) {
        ("depth", _) => " (outstanding requests per thread)",
        ("rate", _) => " (requests per second)",
        (_, Some(ValueKind::Rate)) => " (per second)",
        ("read_percent", _) => " (%)",
        (_, Some(ValueKind::Size)) => " (bytes)",
        _ => "",
    };
    capital(&format!("{}{unit}", noun(factor)))
}

/// The label of an axis for a response, without its unit.
pub fn of_response(response: Response) -> String {
    match response {
        Response::Iops => "requests per second".to_owned(),
        other => other.to_string(),
    }
}

/// The label of an axis for the quantity of a service level, without its unit. A search has a rate, so that times are response
/// times.
pub(super) fn of_level(level: &ServiceLevel) -> String {
    let times = match level.of {
        Requests::All => "response time".to_owned(),
        Requests::Syncs => "sync time".to_owned(),
        Requests::Reads | Requests::Writes => format!("response time of {}", level.of),
    };
    match level.quantity {
        LevelQuantity::Quantile(_) => {
            let of = Requests::All;
            format!("{times}, {}", ServiceLevel { of, ..*level }.subject())
        }
        LevelQuantity::Mean => format!("mean {times}"),
        LevelQuantity::Max => format!("maximum {times}"),
        LevelQuantity::Iops => of_response(Response::Iops),
        LevelQuantity::Throughput => of_response(Response::Throughput),
    }
}

/// A short name of a response: `p50`, `p99`.
pub(super) fn short(response: Response) -> &'static str {
    match response {
        Response::Latency => "p50",
        other => other.name(),
    }
}

/// The text with its first letter capitalised.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

/// A level in a legend, without its factor where it is self-explanatory.
pub(super) fn level(factor: &str, level: &str) -> String {
    let level = &*escape_control(level);
    match split_group(factor).1 {
        "threads" if level == "1" => "1 thread".to_owned(),
        "threads" => format!("{level} threads"),
        "depth" | "batch" => format!("{factor} {level}"),
        "read_percent" => format!("{level} % reads"),
        "skip" => format!("skip {}", spaced(level)),
        "sync" => format!("sync {level}"),
        RUN => level.to_owned(),
        _ => match number_kind(factor) {
            Some(ValueKind::Size | ValueKind::Time) => spaced(level),
            Some(ValueKind::Count) => format!("{} {level}", noun(factor)),
            Some(ValueKind::Rate) => match level.parse::<Rate>() {
                Ok(Rate::Requests(requests)) => format!("{requests}/s"),
                Ok(Rate::Bytes(_)) => spaced(level),
                Err(_) => level.to_owned(),
            },
            _ => level.to_owned(),
        },
    }
}

/// `64KiB` as `64 KiB`.
fn spaced(level: &str) -> String {
    let split = level
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(level.len());
    let (number, unit) = level.split_at(split);
    match unit {
        "" => format!("{number} B"),
        _ => format!("{number} {unit}"),
    }
}

/// A size at a tick: `512`, `4K`, `1M`.
pub(super) fn size(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value}{}", UNITS[unit])
    } else {
        format!("{}{}", significant(value), UNITS[unit])
    }
}

/// A time at a tick with its unit: `500 ns`, `10 µs`.
pub(super) fn time(ns: f64) -> String {
    let (factor, unit) = time_unit(ns);
    format!("{} {unit}", number(ns / factor))
}

/// The unit for a time: ns per unit, and its name.
pub(super) fn time_unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        x if x < 999.5 => (1.0, "ns"),
        x if x < 999.5e3 => (1e3, "µs"),
        x if x < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A number at a tick: as short as possible, with digits grouped by thousands.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e7 || value.abs() < 1e-4 {
        return format!("{value:e}");
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        // Four digits need no gap, by ISO 80000-1.
        if i > 0 && digits.len() > 4 && (digits.len() - i).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let sign = if whole.starts_with('-') { "−" } else { "" };
    match fraction {
        "" => format!("{sign}{grouped}"),
        _ => format!("{sign}{grouped}.{fraction}"),
    }
}

/// A quantile at a tick, given as 1 / (1 - p): `50 %`, `99.9 %`.
pub(super) fn quantile(odds: f64) -> String {
    // A histogram does not resolve more nines than the power of ten of the odds.
    let percent = 100.0 * (1.0 - 1.0 / odds);
    let text = format!("{percent:.7}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in a legend: `5 %`.
pub(super) fn share(share: f64) -> String {
    if (share * 100.0).fract().abs() < 1e-9 {
        format!("{:.0} %", share * 100.0)
    } else {
        format_percent(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        for (bytes, text) in [
            (8.0, "8"),
            (4096.0, "4K"),
            (65536.0, "64K"),
            (1_048_576.0, "1M"),
            (1536.0, "1.50K"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (1500.0, "1500"),
            (12000.0, "12\u{202f}000"),
            (-0.5, "−0.5"),
        ] {
            assert_eq!(number(value), text);
        }
        for (odds, text) in [
            (2.0, "50"),
            (10.0, "90"),
            (100.0, "99"),
            (1000.0, "99.9"),
            (1e5, "99.999"),
        ] {
            assert_eq!(quantile(odds), text);
        }
        assert_eq!(time(100_000.0), "100 µs");
    }

    #[test]
    fn levels_explain_themselves() {
        for (factor, name, text) in [
            ("bs", "64KiB", "64 KiB"),
            ("bs", "512", "512 B"),
            ("threads", "1", "1 thread"),
            ("threads", "8", "8 threads"),
            ("skip", "0", "skip 0 B"),
            ("pattern", "rand", "rand"),
            ("strange", "<b>", "<b>"),
        ] {
            assert_eq!(level(factor, name), text);
        }
        assert_eq!(position("bs", "4KiB"), Some(4096.0));
        assert_eq!(position("rate", "none"), None);
        assert_eq!(axis("bs"), "I/O size (bytes)");
    }
}
