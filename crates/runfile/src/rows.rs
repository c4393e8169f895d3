//! Writes and reads rows of a table by its columns. The file may come from elsewhere: every value is checked.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use iolab_workload::{Error, Result};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, Statement};

use super::error::{damaged, fault, invalid, too_large};
use iolab_record::column::{Access, Column, Null, Table};
use iolab_workload::settings::{self, CellSpec, Setting};

/// A number of 2^63 or more.
struct Beyond;

/// The keys that a statement selects, at most this many; `what` says in an error what a file holds.
pub(super) fn keys<K>(
    connection: &Connection,
    path: &Path,
    sql: &str,
    (most, what): (usize, &str),
    key: impl Fn(&Row<'_>) -> Result<K>,
) -> Result<Vec<K>> {
    let wrong = |error| fault(path, &error);
    let mut statement = connection.prepare(sql).map_err(wrong)?;
    let mut rows = statement.query([]).map_err(wrong)?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        if keys.len() == most {
            return Err(too_large(path, format!("it holds too many {what}")));
        }
        keys.push(key(row)?);
    }
    Ok(keys)
}

/// Inserts rows; see [`insert`].
pub(super) fn insert_all<T>(
    connection: &Connection,
    path: &Path,
    table: &Table<T>,
    rows: &[T],
    with_key: bool,
) -> Result<()> {
    rows.iter()
        .try_for_each(|row| insert(connection, path, table, row, with_key).map(drop))
}

/// Inserts a row into the run file at `path`; returns its number. SQLite numbers rows unless `with_key`.
pub(super) fn insert<T>(
    connection: &Connection,
    path: &Path,
    table: &Table<T>,
    row: &T,
    with_key: bool,
) -> Result<i64> {
    let columns = || table.stored().filter(|column| with_key || !column.key);
    let (mut names, mut marks) = (String::new(), String::new());
    for column in columns() {
        let separator = if names.is_empty() { "" } else { "," };
        names.extend([separator, column.name]);
        marks.extend([separator, "?"]);
    }
    let sql = format!("INSERT INTO {} ({names}) VALUES ({marks})", table.name);
    let wrong = |error| fault(path, &error);
    let mut statement = connection.prepare_cached(&sql).map_err(wrong)?;
    for (index, column) in columns().enumerate() {
        let value = value(column, row).map_err(|Beyond| {
            Error::failed(format!(
                "{} is 2^63 or more and does not fit a run file",
                column.name
            ))
            .hint("choose a seed below 2^63; for any other number please report this")
        })?;
        statement
            .raw_bind_parameter(index + 1, value)
            .map_err(wrong)?;
    }
    statement.raw_execute().map_err(wrong)?;
    Ok(connection.last_insert_rowid())
}

/// The value of a column in a row, for SQLite.
fn value<'a, T>(column: &'a Column<T>, row: &'a T) -> std::result::Result<ToSqlOutput<'a>, Beyond> {
    let int = |number: u64| {
        let number = i64::try_from(number).map_err(|_| Beyond)?;
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

/// The columns of a table with their positions in the rows of a query.
pub(super) struct Reader<'a, T: 'static> {
    table: &'a Table<T>,
    places: Vec<(usize, &'a Column<T>)>,
    /// The positions of columns that can hold text or bytes, unknown ones too: of the others any such value is refused.
    pub(super) texts: Vec<usize>,
    path: &'a Path,
}

impl<'a, T> Reader<'a, T> {
    /// A reader for the rows of a query.
    ///
    /// # Errors
    ///
    /// The file lacks a column.
    pub(super) fn new(
        table: &'a Table<T>,
        statement: &Statement<'_>,
        path: &'a Path,
    ) -> Result<Self> {
        let names = statement.column_names();
        let places_by_name: HashMap<&str, usize> = names.into_iter().zip(0..).collect();
        let mut is_text = vec![true; statement.column_count()];
        let mut places = Vec::new();
        for column in table.stored() {
            match places_by_name.get(column.name) {
                Some(&index) => {
                    is_text[index] = match column.access {
                        Access::Text(..) | Access::Bytes(..) | Access::Setting(..) => true,
                        Access::Number(..) | Access::Real(..) | Access::Flag(..) => false,
                    };
                    places.push((index, column));
                }
                None => {
                    return Err(damaged(
                        path,
                        format!(
                            "table {} has no column {} of this schema",
                            table.name, column.name
                        ),
                    ));
                }
            }
        }
        let texts = (0..).zip(is_text).filter(|(_, is_text)| *is_text);
        Ok(Self {
            table,
            texts: texts.map(|(index, _)| index).collect(),
            places,
            path,
        })
    }

    /// The name of the table.
    pub(super) fn name(&self) -> &'static str {
        self.table.name
    }

    /// Reads the values of a row into `into`, which must hold the values for a file without the columns.
    ///
    /// # Errors
    ///
    /// An invalid value; a group of columns that is NULL in part.
    pub(super) fn read(&self, row: &Row<'_>, into: &mut T) -> Result<()> {
        let mut missing = Vec::with_capacity(self.places.len());
        for (index, column) in &self.places {
            let value = row
                .get_ref(*index)
                .map_err(|error| fault(self.path, &error))?;
            if value == ValueRef::Null && !matches!(column.access, Access::Setting(..)) {
                if column.null != Null::Free {
                    missing.push(*column);
                }
            } else if !put(column, value, into) {
                return Err(self.wrong(column, value));
            }
        }
        // Columns that are NULL together must be so in the whole row.
        for column in missing {
            if !matches!(value(column, into), Ok(ToSqlOutput::Owned(Value::Null))) {
                return Err(self.wrong(column, ValueRef::Null));
            }
        }
        Ok(())
    }

    /// The error for an invalid value of a column.
    pub(super) fn wrong(&self, column: &Column<T>, value: ValueRef<'_>) -> Error {
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
        let (name, table) = (column.name, self.table.name);
        invalid(self.path, format!("{name} in table {table} is {value}"))
    }
}

/// Stores a value that is not NULL; false for an invalid one.
fn put<T>(column: &Column<T>, value: ValueRef<'_>, into: &mut T) -> bool {
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
