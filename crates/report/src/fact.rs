//! Facts of the environment and values of settings for people.

use std::time::Duration;

use crate::notation::clean;
use iolab_record::environment::{ALL, Bit, Flag, ValueType};
use iolab_workload::settings::{Setting, Value, ValueKind};
use iolab_workload::units::{exact_duration, exact_size, significant};

/// A unit at the end of a key, and a value with it.
type Unit = (&'static str, fn(f64) -> String);

/// Units by the ending of a name. Limits in requests per second keep their unit in the name, which distinguishes
/// them from limits in bytes.
const UNITS: [Unit; 7] = [
    ("_bytes", |bytes| exact_size(bytes as u64)),
    ("_kib", |kib| exact_size((kib * 1024.0) as u64)),
    ("_khz", |khz| format!("{} GHz", significant(khz / 1e6))),
    ("_bps", |bytes| format!("{} MB/s", significant(bytes / 1e6))),
    ("_mb_s", |mb_s| format!("{mb_s} MB/s")),
    ("_ns", |ns| format!("{ns} ns")),
    ("_s", |s| format!("{s} s")),
];

/// Endings of keys that would name a device or a link without their unit, and the words that take the place of
/// the unit.
const OF_OTHERS: [(&str, &str); 2] = [("device_bytes", "size"), ("device_link_mb_s", "rate")];

fn unit(key: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|(end, _)| key.ends_with(end))
}

/// The name of a fact.
pub fn name(key: &str) -> String {
    let end = unit(key).map_or("", |(end, _)| end);
    let bare = key.strip_suffix(end).unwrap_or(key);
    // Without their units, these facts would have the names of others.
    let bare = match OF_OTHERS.iter().find(|(of, _)| key.ends_with(of)) {
        Some((_, what)) => format!("{bare}_{what}"),
        None => bare.to_owned(),
    };
    // The name of an interface.
    let bare = match bare.strip_prefix("io_uring_") {
        Some(rest) => format!("io_uring {}", rest.replace('_', " ")),
        None => bare.replace('_', " "),
    };
    let words = bare.split(' ').map(|word| match word {
        "cpu" => "CPU",
        "id" => "ID",
        "io" => "I/O",
        "iops" => "IOPS",
        "l1d" => "L1d",
        "l1i" => "L1i",
        "l2" => "L2",
        "l3" => "L3",
        "tlb" => "TLB",
        other => other,
    });
    clean(&words.collect::<Vec<_>>().join(" "))
}

/// The value of a fact.
pub fn value(key: &str, text: &str) -> String {
    let known = ALL.iter().find(|entry| entry.name == key);
    let is_on = match known.map(|entry| entry.words) {
        Some(Bit::WORDS) => Bit::read(text),
        Some(Flag::WORDS) => Flag::read(text),
        _ => None,
    };
    if let Some(is_on) = is_on {
        return if is_on { "yes" } else { "no" }.to_owned();
    }
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    match unit(key).zip(number) {
        Some(((_, with_unit), number)) => with_unit(number),
        None => clean(text),
    }
}

/// `4 KiB`, `30 s`, `rand`, `none`.
pub(crate) fn setting_value(setting: &Setting, value: &Value) -> String {
    match value {
        Value::Number(bytes) if setting.kind == ValueKind::Size => exact_size(*bytes),
        Value::Time(Duration::ZERO) => "0 s".to_owned(),
        Value::Time(time) => exact_duration(*time),
        other => clean(&other.text(setting.kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_have_their_units_once() {
        let facts = [
            ("device_request_max_kib", "4096"),
            ("direct_memory_alignment_bytes", "512"),
            ("cpu_frequency_max_khz", "3400000"),
            ("device_limit_read_bps", "52428800"),
            ("device_limit_read_iops", "100"),
            ("peak_stated_read_mb_s", "550"),
            ("device_rotational", "1"),
            ("machine_is_virtual", "false"),
            ("io_uring_disabled", "2"),
            ("cache_l1d_bytes", "49152"),
            ("target_1_device", "sdb"),
            ("kernel_release", "6.1"),
            ("device_bytes", "4096"),
            ("page_bytes", "many"),
            ("unknown\u{1b}_key", "\u{1b}[0m"),
        ];
        let told: Vec<String> = facts
            .iter()
            .map(|(key, text)| format!("{}: {}", name(key), value(key, text)))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        device request max: 4 MiB
        direct memory alignment: 512 B
        CPU frequency max: 3.40 GHz
        device limit read: 52.4 MB/s
        device limit read IOPS: 100
        peak stated read: 550 MB/s
        device rotational: yes
        machine is virtual: no
        io_uring disabled: 2
        cache L1d: 48 KiB
        target 1 device: sdb
        kernel release: 6.1
        device size: 4 KiB
        page: many
        unknown\u{1b} key: \u{1b}[0m
        ");
    }

    /// Two facts with one name could not be distinguished.
    #[test]
    fn each_fact_has_a_name_of_its_own() {
        let mut names: Vec<String> = ALL.iter().map(|entry| name(entry.name)).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
