//! Values of settings on a page.

use std::time::Duration;

use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::{Setting, Value, ValueKind};
use iolab_workload::units::{exact_duration, exact_size};

/// `4 KiB`, `30 s`, `rand`, `none`.
pub(crate) fn setting_value(setting: &Setting, value: &Value) -> String {
    match value {
        Value::Number(bytes) if setting.kind == ValueKind::Size => exact_size(*bytes),
        Value::Time(Duration::ZERO) => "0 s".to_owned(),
        Value::Time(time) => exact_duration(*time),
        other => escape_control(&other.text(setting.kind)).into_owned(),
    }
}
