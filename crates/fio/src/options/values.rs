//! Values and names of options as fio reads them, and messages about values that iolab cannot carry out.

use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::foreign_options::answer;

use super::{Fault, Options, Read};

/// A size as fio reads it if `kb_base` is not given: `4k`, `4kb` and `4Ki` are 4096, and `4KiB` is 4000.
pub(crate) fn size(name: &'static str, text: &str) -> Read<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (base, power): (u64, u32) = match lower[digits.len()..].trim() {
        "" | "b" => (1, 1),
        "k" | "kb" | "ki" => (1024, 1),
        "m" | "mb" | "mi" => (1024, 2),
        "g" | "gb" | "gi" => (1024, 3),
        "t" | "tb" | "ti" => (1024, 4),
        "kib" => (1000, 1),
        "mib" => (1000, 2),
        "gib" => (1000, 3),
        "tib" => (1000, 4),
        _ => return Err(unknown(name, text)),
    };
    let bytes = digits.parse::<u64>().ok();
    bytes
        .and_then(|bytes| bytes.checked_mul(base.pow(power)))
        .filter(|bytes| *bytes <= i64::MAX as u64)
        .ok_or_else(|| unknown(name, text))
}

/// A time as fio reads it: a bare number is seconds.
pub(crate) fn duration(name: &'static str, text: &str) -> Read<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let us = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "" | "s" | "sec" | "seconds" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(unknown(name, text)),
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(us))
        .map(Duration::from_micros)
        .ok_or_else(|| unknown(name, text))
}

/// A value, shortened to the room of a message.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The fault of a value that stands for another option, with iolab's answer to that option.
pub(super) fn refused(option: &'static str, text: &str, of: &str) -> Fault {
    let hint = answer(of).map_or_else(String::new, |answer| answer.hint(None));
    let error = Error::usage(format!("iolab cannot carry out {option}={}", short(text)));
    Fault {
        option,
        error: error.hint(hint),
    }
}

/// A value that iolab has no words for.
pub(super) fn unknown(option: &'static str, text: &str) -> Fault {
    let text = short(text);
    let error = Error::usage(format!("iolab cannot carry out {option}={text}")).hint(
        "sizes are like 4k, 1m or 4096, times like 30 or 500ms; see 'iolab list --settings --all' for what there is",
    );
    Fault { option, error }
}

/// The names of each option that has several.
const ALIASES: &[&[&str]] = &[
    &["rw", "readwrite"],
    &["bs", "blocksize"],
    &["ba", "blockalign"],
    &["bsrange", "blocksize_range"],
    &["io_size", "io_limit"],
    &["fill_device", "fill_fs"],
    &["nrfiles", "nr_files"],
    &["runtime", "timeout"],
    &["iodepth_batch", "iodepth_batch_submit"],
    &["iodepth_batch_complete", "iodepth_batch_complete_min"],
    &["stonewall", "wait_for_previous"],
    &["mem", "iomem"],
];
/// Options that say the opposite of each other.
const OPPOSITES: &[&[&str]] = &[&["rwmixread", "rwmixwrite"], &["direct", "buffered"]];

/// The others in the row of a name.
fn others<'a>(
    rows: &'static [&[&'static str]],
    name: &'a str,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let row = rows.iter().find(|names| names.contains(&name));
    let row = row.copied().unwrap_or_default();
    row.iter().copied().filter(move |other| *other != name)
}

/// The other names of an option.
pub(super) fn of(name: &str) -> impl Iterator<Item = &'static str> {
    others(ALIASES, name)
}

/// The other names of an option and its opposite, whose values it replaces.
pub(crate) fn replaced_by(name: &str) -> impl Iterator<Item = &'static str> {
    of(name).chain(others(OPPOSITES, name))
}

/// Gives an option its value, under the name that was written: the last value given counts, whichever name it has. File names
/// add up, as in fio.
pub fn give(options: &mut Options, name: String, mut value: String) {
    if let Some(before) = options.get(&name).filter(|_| name == "filename") {
        value = format!("{before}:{value}");
    }
    for other in replaced_by(&name) {
        options.remove(other);
    }
    options.insert(name, value);
}
