//! The number that a level stands for.

use iolab_workload::group::split_group;
use iolab_workload::settings::{Setting, ValueKind};
use iolab_workload::trial::Rate;
use iolab_workload::units::{parse_duration, parse_size};

/// The kind of a factor's values, where they are numbers.
pub fn number_kind(factor: &str) -> Option<ValueKind> {
    let kind = Setting::find(split_group(factor).1)?.kind;
    (kind.is_number() && kind != ValueKind::Flag).then_some(kind)
}

/// The number that a level of a factor stands for, in bytes, ns, per second, or as it is; `None` for names.
pub fn level_value(factor: &str, level: &str) -> Option<f64> {
    match number_kind(factor)? {
        ValueKind::Size => parse_size(level).ok().map(|bytes| bytes as f64),
        ValueKind::Count => level.parse().ok().filter(|value: &f64| value.is_finite()),
        ValueKind::Time => parse_duration(level)
            .ok()
            .map(|time| time.as_nanos() as f64),
        ValueKind::Rate => level.parse::<Rate>().ok().map(|rate| rate.per_second(1.0)),
        ValueKind::Flag | ValueKind::Word | ValueKind::Path | ValueKind::List => None,
    }
}
