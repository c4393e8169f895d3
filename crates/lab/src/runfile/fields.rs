//! One row of a run file by the names of its columns. The file may be a stranger's: every value is checked.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use iolab_engine::{Error, Result};
use rusqlite::Row;
use rusqlite::types::{FromSql, ValueRef};

use super::fault::{damaged, fault};

/// Greatest number of bytes, requests or nanoseconds that one trial can have had: 1 EiB, 36 years. The sum of a few
/// numbers of a sample stays within its type then.
const COUNT_MAX: i64 = 1 << 60;

/// Where the columns of a query are, by their names, as far as they were asked for: to look for each among all others again in
/// every row would take half of the time of reading.
#[derive(Default)]
pub(super) struct Columns(RefCell<HashMap<String, usize>>);

impl Columns {
    fn index(&self, row: &Row<'_>, name: &str) -> rusqlite::Result<usize> {
        if let Some(index) = self.0.borrow().get(name) {
            return Ok(*index);
        }
        let index = row.as_ref().column_index(name)?;
        self.0.borrow_mut().insert(name.to_owned(), index);
        Ok(index)
    }
}

/// One row, by the names of its columns.
pub(super) struct Fields<'a, 'r> {
    row: &'a Row<'r>,
    columns: &'a Columns,
    table: &'static str,
    path: &'a Path,
    version: i64,
}

impl<'a, 'r> Fields<'a, 'r> {
    /// A row of a table in the file at `path`, which has this schema version.
    pub(super) fn new(
        row: &'a Row<'r>,
        columns: &'a Columns,
        table: &'static str,
        path: &'a Path,
        version: i64,
    ) -> Self {
        Self {
            row,
            columns,
            table,
            path,
            version,
        }
    }
}

impl Fields<'_, '_> {
    /// The schema version of the file.
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    pub(super) fn get<T: FromSql>(&self, column: &str) -> Result<T> {
        let index = self.columns.index(self.row, column);
        let value = index.and_then(|index| self.row.get(index));
        value.map_err(|error| match error {
            rusqlite::Error::SqliteFailure(..) => fault(self.path, &error),
            _ => self.wrong(column),
        })
    }

    /// The value in a column cannot be.
    pub(super) fn wrong(&self, column: &str) -> Error {
        let value = match self.row.get_ref(column) {
            Ok(ValueRef::Null) => "missing".to_owned(),
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Real(number)) => number.to_string(),
            Ok(ValueRef::Text(text)) => {
                let text: String = String::from_utf8_lossy(text).chars().take(60).collect();
                format!("{text:?}")
            }
            Ok(ValueRef::Blob(bytes)) => format!("{} bytes", bytes.len()),
            Err(_) => "no column of this schema".to_owned(),
        };
        damaged(
            self.path,
            format!("{} in table {} is {value}", column, self.table),
        )
    }

    /// A column that came with schema version `since`; older files have no value for it.
    pub(super) fn added<T: FromSql>(&self, since: i64, column: &str) -> Result<Option<T>> {
        if self.version < since {
            return Ok(None);
        }
        self.get(column)
    }

    pub(super) fn text(&self, column: &str) -> Result<String> {
        self.get(column)
    }

    pub(super) fn int<T: TryFrom<i64>>(&self, column: &str) -> Result<T> {
        let value: i64 = self.get(column)?;
        self.check_count(column, value)?;
        T::try_from(value).map_err(|_| self.wrong(column))
    }

    /// Numbers of a sample and its series are counts, all but its seed.
    fn check_count(&self, column: &str, value: i64) -> Result<()> {
        let counts = self.table == "sample" && column != "seed" || self.table == "series";
        if counts && value > COUNT_MAX {
            return Err(self.wrong(column));
        }
        Ok(())
    }

    pub(super) fn positive<T: TryFrom<i64> + PartialEq + Default>(
        &self,
        column: &str,
    ) -> Result<T> {
        let value: T = self.int(column)?;
        if value == T::default() {
            return Err(self.wrong(column));
        }
        Ok(value)
    }

    pub(super) fn optional_int(&self, column: &str) -> Result<Option<u64>> {
        self.added_int(0, column)
    }

    /// A number in a column that came with schema version `since`.
    pub(super) fn added_int(&self, since: i64, column: &str) -> Result<Option<u64>> {
        let value: Option<i64> = self.added(since, column)?;
        self.check_count(column, value.unwrap_or(0))?;
        value
            .map(u64::try_from)
            .transpose()
            .map_err(|_| self.wrong(column))
    }

    /// A number that is not known is NULL in the file and NaN here.
    pub(super) fn real_or_nan(&self, column: &str) -> Result<f64> {
        let value: Option<f64> = self.get(column)?;
        Ok(value.unwrap_or(f64::NAN))
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool> {
        match self.get(column)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.wrong(column)),
        }
    }

    /// A text that `known` recognises.
    pub(super) fn named<T>(&self, column: &str, known: impl Fn(&str) -> Option<T>) -> Result<T> {
        known(&self.text(column)?).ok_or_else(|| self.wrong(column))
    }

    pub(super) fn one_of(&self, column: &str, names: &[&str]) -> Result<String> {
        self.named(column, |text| {
            names.contains(&text).then(|| text.to_owned())
        })
    }

    /// As [`Fields::setting`], in a column that came with schema version `since`; what it was `before`.
    pub(super) fn setting_since<T: FromStr + Display>(
        &self,
        since: i64,
        column: &str,
        before: T,
    ) -> Result<String> {
        if self.version < since {
            return Ok(before.to_string());
        }
        self.setting::<T>(column)
    }

    /// A text that is the name of a value of the engine.
    pub(super) fn setting<T: FromStr + Display>(&self, column: &str) -> Result<String> {
        self.named(column, |text| {
            text.parse::<T>().ok().map(|value| value.to_string())
        })
    }
}
