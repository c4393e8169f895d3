//! Writes plain values to the rows of tables by their columns, and reads them. The file may come from elsewhere: rows and text are
//! limited, and every value is checked.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;

use iolab_record::column::{Access, Column, Null, Table};
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::{Error, Result, settings};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension, Params, params_from_iter};

use super::error::{damaged, fault, invalid, too_large};

/// Most rows of a table to read; a million samples take more than 1 GB of memory.
pub(crate) const ROWS_MAX: usize = 1_000_000;
/// Most further targets: as many as levels of a factor.
const TARGETS_MAX: usize = 1000;
/// Most cells: the most of a plan, and as many that its run has added.
const CELLS_MAX: usize = 2 * iolab_plan::experiment::CELLS_MAX;
/// Most bytes of text to read. Rows can have more text than the file, through defaults of columns.
const TEXT_MAX: u64 = 256 << 20;

/// Most rows that are looked up to find columns that differ; in a file with more, every column is fetched.
const DIFFERING_MAX: usize = 32;

/// Longest value, bytes; a definition has less than 1 MiB, a histogram less than 400 KiB.
pub(super) const VALUE_MAX: i32 = 4 << 20;

/// The tables of an open file, and how much text was read of them.
pub(super) struct Tables<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    /// Bytes of text read so far.
    text: Cell<u64>,
}

impl<'a> Tables<'a> {
    /// The tables of a file.
    pub(super) fn new(connection: &'a Connection, path: &'a Path) -> Self {
        Self {
            connection,
            path,
            text: Cell::default(),
        }
    }

    /// Executes a statement; returns how many rows it changed.
    pub(super) fn execute(&self, sql: &str, parameters: impl Params) -> Result<usize> {
        let changed = self.connection.execute(sql, parameters);
        changed.map_err(|error| fault(self.path, &error))
    }

    /// Inserts a row; returns its number, which SQLite gives to a row without one.
    pub(super) fn insert<T>(&self, table: &Table<T>, row: &T) -> Result<i64> {
        let names: Vec<&str> = table.stored().map(|column| column.name).collect();
        let marks = vec!["?"; names.len()].join(",");
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({marks})",
            table.name,
            names.join(",")
        );
        let wrong = |error| fault(self.path, &error);
        let mut statement = self.connection.prepare_cached(&sql).map_err(wrong)?;
        for (index, column) in (1..).zip(table.stored()) {
            let value = value(column, row)?;
            statement.raw_bind_parameter(index, value).map_err(wrong)?;
        }
        statement.raw_execute().map_err(wrong)?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Inserts rows.
    pub(super) fn insert_all<T>(&self, table: &Table<T>, rows: &[T]) -> Result<()> {
        let mut rows = rows.iter();
        rows.try_for_each(|row| self.insert(table, row).map(drop))
    }

    /// Calls a function for each row of a table that the rest of a statement selects, without the values of the column
    /// `large`, which are read one by one. More than `most` rows are an error.
    pub(super) fn each<T: Default + Clone>(
        &self,
        table: &Table<T>,
        (large, rest): (&str, &str),
        parameters: impl Params,
        most: usize,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let fault = |error| fault(self.path, &error);
        let wrong = |error: rusqlite::Error| match &error {
            rusqlite::Error::SqlInputError { msg, .. } if msg.contains("no such column") => {
                let column = msg.rsplit(' ').next().unwrap_or_default();
                let table = table.name;
                let what = format!("table {table} has no column {column} of this schema");
                damaged(self.path, what)
            }
            _ => fault(error),
        };
        let (mut model, mut columns, mut missing) = (T::default(), Vec::new(), Vec::new());
        let alike = self.alike(table).map_err(wrong)?;
        let before = self.text.get();
        for column in table.stored() {
            match alike.iter().find(|(name, _)| *name == column.name) {
                Some((_, value)) => {
                    self.fill(table, column, value.into(), &mut model, &mut missing)?;
                }
                None => columns.push(column),
            }
        }
        let text = self.text.get() - before;
        let names = columns.iter().map(|column| match column.name == large {
            true => "x''",
            false => column.name,
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT {names} FROM {} {rest}", table.name);
        let mut statement = self.connection.prepare_cached(&sql).map_err(wrong)?;
        let mut rows = statement.query(parameters).map_err(fault)?;
        let (mut count, missing_in_all) = (0, missing.len());
        while let Some(row) = rows.next().map_err(fault)? {
            if count == most {
                let what = format!("table {} has more than {most} rows", table.name);
                return Err(too_large(self.path, what));
            }
            self.weigh(text)?;
            let mut into = model.clone();
            missing.truncate(missing_in_all);
            for (index, column) in columns.iter().enumerate() {
                let value = row.get_ref(index).map_err(fault)?;
                self.fill(table, column, value, &mut into, &mut missing)?;
            }
            if let Some(column) = missing.iter().find(|column| !column.is_null(&into)) {
                return Err(self::wrong(self.path, table, column, ValueRef::Null));
            }
            take(into)?;
            count += 1;
        }
        Ok(())
    }

    /// Names of the columns that have one value in all rows, and this value. Most columns of samples are such, and fetching them
    /// takes longer than all others.
    fn alike<T>(&self, table: &Table<T>) -> rusqlite::Result<Vec<(&'static str, Value)>> {
        let Some(key) = table.columns.iter().find(|column| column.key) else {
            return Ok(Vec::new());
        };
        let may_be = |column: &&Column<T>| {
            !column.key && !matches!(column.access, Access::Setting(..) | Access::Bytes(_))
        };
        let names = table.stored().filter(may_be).map(|column| column.name);
        self.alike_of(table.name, key.name, names.collect())
    }

    /// [`Tables::alike`] of the columns with these names, in a table with this key.
    fn alike_of(
        &self,
        table: &str,
        key: &str,
        names: Vec<&'static str>,
    ) -> rusqlite::Result<Vec<(&'static str, Value)>> {
        // Not yet compared with any row.
        let mut alike: Vec<(&str, Option<Value>)> = names.into_iter().map(|n| (n, None)).collect();
        let mut first = i64::MIN;
        for _ in 0..DIFFERING_MAX {
            let (mut names, mut differ) = (vec![key], Vec::new());
            let mut known = vec![Value::Integer(first)];
            for (name, value) in &alike {
                names.push(name);
                differ.push(match value {
                    None => "1".to_owned(),
                    Some(Value::Null) => format!("{name} IS NOT NULL"),
                    Some(value) => {
                        known.push(value.clone());
                        format!("{name} IS NOT ? COLLATE BINARY")
                    }
                });
            }
            let sql = format!(
                "SELECT {} FROM {table} WHERE {key} >= ? AND ({}) ORDER BY {key} LIMIT 1",
                names.join(", "),
                differ.join(" OR "),
            );
            let row = self
                .connection
                .query_row(&sql, params_from_iter(known), |row| {
                    first = row.get(0)?;
                    let mut place = 0;
                    alike.retain_mut(|(_, value)| {
                        place += 1;
                        let Ok(own) = row.get_ref(place) else {
                            return false;
                        };
                        match value {
                            Some(value) => ValueRef::from(&*value) == own,
                            // Real numbers that SQLite takes for equal may differ in their sign.
                            None => {
                                *value = Value::try_from(own).ok();
                                !matches!(value, None | Some(Value::Real(_)))
                            }
                        }
                    });
                    Ok(())
                });
            if row.optional()?.is_none() || alike.is_empty() {
                let alike = alike.into_iter();
                return Ok(alike
                    .filter_map(|(name, value)| Some((name, value?)))
                    .collect());
            }
        }
        Ok(Vec::new())
    }

    /// The rows of a table that the rest of a statement selects.
    pub(super) fn rows<T: Default + Clone>(
        &self,
        table: &Table<T>,
        select: (&str, &str),
        parameters: impl Params,
        most: usize,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(table, select, parameters, most, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// All rows of a table.
    pub(super) fn all<T: Default + Clone>(&self, table: &Table<T>, order: &str) -> Result<Vec<T>> {
        let most = match table.name {
            "cell" => CELLS_MAX,
            "target" => TARGETS_MAX,
            _ => ROWS_MAX,
        };
        self.rows(table, ("", &format!("ORDER BY {order}")), [], most)
    }

    /// The only row of a table.
    pub(super) fn only<T: Default + Clone>(&self, table: &Table<T>) -> Result<T> {
        let mut values = self.all(table, "id")?;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(damaged(
                self.path,
                format!("table {} has not exactly one row", table.name),
            )),
        }
    }

    /// Stores a value in a row, and checks it. Adds a column to `missing` whose value the row must not have, as it is NULL.
    fn fill<'t, T>(
        &self,
        table: &Table<T>,
        column: &'t Column<T>,
        value: ValueRef<'_>,
        into: &mut T,
        missing: &mut Vec<&'t Column<T>>,
    ) -> Result<()> {
        if value == ValueRef::Null && !matches!(column.access, Access::Setting(..)) {
            missing.extend((column.null != Null::Free).then_some(column));
            return Ok(());
        }
        if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = value {
            self.weigh(bytes.len() as u64)?;
        }
        match put(column, value, into) {
            true => Ok(()),
            false => Err(wrong(self.path, table, column, value)),
        }
    }

    /// Counts text before it is stored.
    fn weigh(&self, bytes: u64) -> Result<()> {
        self.text.set(self.text.get().saturating_add(bytes));
        match self.text.get() > TEXT_MAX {
            false => Ok(()),
            true => {
                let what = format!("it holds more than {} MiB of text", TEXT_MAX >> 20);
                Err(too_large(self.path, what))
            }
        }
    }
}

/// The value of a column in a row, for SQLite.
fn value<'a, T>(column: &'a Column<T>, row: &'a T) -> Result<ToSqlOutput<'a>> {
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
        Access::Bytes(get) => Some(Value::Blob(get(row).into_owned())),
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
fn wrong<T>(path: &Path, table: &Table<T>, column: &Column<T>, value: ValueRef<'_>) -> Error {
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
        (Access::Bytes(_), ValueRef::Blob(_)) => true,
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
