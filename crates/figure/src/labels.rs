//! Labels of figures: the form of factors, levels, responses, results, paths and ticks.

#[cfg(test)]
mod tests;

use super::RUN;
use iolab_analysis::analysis::{CellServed, ClientName, Response};
use iolab_analysis::doubt::RatioBound;
use iolab_record::ServedBy;
use iolab_workload::escape_control::escape_control;
use iolab_workload::group::split_group;
use iolab_workload::service_level::{LevelQuantity, Requests, ServiceLevel};
use iolab_workload::settings::ValueKind;
use iolab_workload::trial::Rate;
use iolab_workload::units::{format_bytes, format_percent};

pub(super) use iolab_analysis::curve::{level_value as position, number_kind};

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

/// Levels with their factors in a legend; empty levels are left out.
pub(super) fn levels<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let known = all.filter(|(_, own)| !own.is_empty());
    let named = known.map(|(factor, own)| level(factor, own));
    named.collect::<Vec<String>>().join(", ")
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
    format_bytes(bytes)
        .replace("iB", "")
        .replace([' ', 'B'], "")
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
    let text = decimal(value, 6);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let grouped = grouped(whole.trim_start_matches('-'), THIN);
    let sign = if whole.starts_with('-') { "−" } else { "" };
    match fraction {
        "" => format!("{sign}{grouped}"),
        _ => format!("{sign}{grouped}.{fraction}"),
    }
}

/// Separator of groups of three digits, narrow.
pub const THIN: char = '\u{202f}';

/// Digits in groups of three, with this separator.
pub fn grouped(digits: &str, separator: char) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        // Four digits need no gap, by ISO 80000-1.
        if place > 0 && digits.len() > 4 && (digits.len() - place).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// A quantile at a tick, given as 1 / (1 - p): `50 %`, `99.9 %`.
pub(super) fn quantile(odds: f64) -> String {
    // A histogram does not resolve more nines than the power of ten of the odds.
    decimal(100.0 * (1.0 - 1.0 / odds), 7)
}

/// A number with at most this many decimals, without an exponent.
pub(super) fn decimal(value: f64, most: usize) -> String {
    let text = format!("{value:.most$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A share that somebody chose, such as a margin: `5 %`.
pub fn share(share: f64) -> String {
    if (share * 100.0).fract().abs() < 1e-9 {
        format!("{:.0} %", share * 100.0)
    } else {
        format_percent(share)
    }
}

/// Origin of the bytes of a cell: `mixed (37 % device)`, `5 x device, 3 x page-cache`.
pub fn served(served: &CellServed) -> String {
    match (served.unanimous(), served.device_fraction) {
        (Some(only @ ServedBy::Mixed), Some(share)) => {
            format!("{only} ({} device)", format_percent(share))
        }
        (Some(only), _) => only.to_string(),
        (None, _) => {
            let trials = served.trials.iter();
            let parts: Vec<String> = trials
                .map(|(verdict, n)| format!("{n} x {verdict}"))
                .collect();
            parts.join(", ")
        }
    }
}

/// A client of a run across hosts: `node01`, `rank 3 on node01`.
pub fn client(name: &ClientName) -> String {
    match name.rank {
        None => name.host.clone(),
        Some(rank) => format!("rank {rank} on {}", name.host),
    }
}

/// `at least`, `at most`: what a ratio is where one side did not hold its rate.
pub fn bound(bound: RatioBound) -> &'static str {
    match bound {
        RatioBound::AtLeast => "at least",
        RatioBound::AtMost => "at most",
    }
}

/// Removes the folder that all these paths begin with. Leaves the names unchanged if any is not a path.
pub fn leave_out_common(names: &mut [String]) {
    let Some(folder) = common(names).map(str::to_owned) else {
        return;
    };
    for name in names {
        if let Some(rest) = name.strip_prefix(&*folder) {
            *name = rest.to_owned();
        }
    }
}

/// The longest folder that all names lie in, below the root; `None` without one.
fn common(names: &[String]) -> Option<&str> {
    let first = names.first()?;
    let mut folders = first.rmatch_indices('/').map(|(end, _)| &first[..=end]);
    let common = folders.find(|folder| names.iter().all(|name| name.starts_with(*folder)))?;
    (common.len() > 1).then_some(common)
}
