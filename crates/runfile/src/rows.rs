//! Writes and reads rows of a table by its columns. The file may come from elsewhere: every value is checked.

use std::borrow::Cow;
use std::path::Path;

use iolab_workload::{Error, Result};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

use super::error::invalid;
use iolab_record::column::{Access, Column, Table};
use iolab_workload::settings::{self, CellSpec, Setting};

/// The value of a column in a row, for SQLite.
pub(super) fn value<'a, T>(column: &'a Column<T>, row: &'a T) -> Result<ToSqlOutput<'a>> {
    let int = |number: u64| {
        let number = i64::try_from(number).map_err(|_| {
            let name = column.name;
            Error::failed(format!(
                "{name} is 2^63 or more and does not fit a run file"
            ))
            .hint("choose a seed below 2^63; for any other number please report this")
        })?;
        Ok(Some(Value::Integer(number)))
    };
    let value = match &column.access {
        Access::Number(get, _) => get(row).map_or(Ok(None), int)?,
        Access::Real(get, _) => get(row).map(Value::Real),
        Access::Flag(get, _) => get(row).map(|on| Value::Integer(on.into())),
        Access::Text(get, _) => match get(row) {
            Some(Cow::Borrowed(text)) => {
                return Ok(ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())));
            }
            text => text.map(|text| Value::Text(text.into_owned())),
        },
        Access::Bytes(get, _) => return Ok(ToSqlOutput::Borrowed(ValueRef::Blob(get(row)))),
        Access::Setting(setting, get, _) => match setting.value(get(row)) {
            settings::Value::None | settings::Value::Unknown => None,
            settings::Value::Flag(on) => Some(Value::Integer(on.into())),
            settings::Value::Number(number) => int(number)?,
            settings::Value::Time(time) => int(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))?,
            settings::Value::Rate(rate) => rate.requests().map_or(Ok(None), int)?,
            settings::Value::Word(name) => Some(Value::Text(name)),
        },
    };
    Ok(ToSqlOutput::Owned(value.unwrap_or(Value::Null)))
}

/// The error for an invalid value of a column.
pub(super) fn wrong<T>(
    path: &Path,
    table: &Table<T>,
    column: &Column<T>,
    value: ValueRef<'_>,
) -> Error {
    let value = match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => {
            let text: String = String::from_utf8_lossy(text).chars().take(60).collect();
            format!("{text:?}")
        }
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    };
    let (name, table) = (column.name, table.name);
    invalid(path, format!("{name} in table {table} is {value}"))
}

/// Stores a value that is not NULL; false for an invalid one.
pub(super) fn put<T>(column: &Column<T>, value: ValueRef<'_>, into: &mut T) -> bool {
    let within = |number: f64| (column.range.0..=column.range.1).contains(&number);
    let between = |number: u64| (column.bounds.0..=column.bounds.1).contains(&number);
    match (&column.access, value) {
        (Access::Number(_, put), ValueRef::Integer(number)) => {
            let number = u64::try_from(number).ok().filter(|number| between(*number));
            number.map(|number| put(into, number)).is_some()
        }
        (Access::Flag(_, put), ValueRef::Integer(number @ 0..=1)) => {
            put(into, number == 1);
            true
        }
        (Access::Real(_, put), ValueRef::Real(number)) if within(number) => {
            put(into, number);
            true
        }
        (Access::Real(_, put), ValueRef::Integer(number)) if within(number as f64) => {
            put(into, number as f64);
            true
        }
        (Access::Text(_, put), ValueRef::Text(bytes)) => {
            let text = std::str::from_utf8(bytes);
            text.is_ok_and(|text| put(into, text))
        }
        (Access::Bytes(_, put), ValueRef::Blob(bytes)) => {
            put(into, bytes);
            true
        }
        (Access::Setting(setting, _, spec), value) => put_setting(setting, value, spec(into)),
        _ => false,
    }
}

/// Reads a setting as if a user wrote it, with the same checks.
fn put_setting(setting: &Setting, value: ValueRef<'_>, spec: &mut CellSpec) -> bool {
    if spec.unknown.contains(setting.name) {
        return value == ValueRef::Null;
    }
    let text = match (value, setting.kind.is_number()) {
        (ValueRef::Null, _) => "none".to_owned(),
        (ValueRef::Integer(number), true) if setting.kind.is_time() => format!("{number}ns"),
        (ValueRef::Integer(number), true) => number.to_string(),
        (ValueRef::Text(bytes), false) => String::from_utf8_lossy(bytes).into_owned(),
        _ => return false,
    };
    setting.set(spec, &text).is_ok()
}
