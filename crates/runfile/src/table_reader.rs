//! Reads the rows of tables into plain values. The file may come from elsewhere: rows and text are limited.

use std::cell::Cell;
use std::path::Path;

use iolab_record::column::Table;
use iolab_workload::Result;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::error::{damaged, fault, too_large};
use super::rows::Reader;
use super::schema::ROWS_MAX;

/// Most further targets: as many as levels of a factor.
const TARGETS_MAX: usize = 1000;
/// Most cells: the most of a plan, and as many that its run has added.
const CELLS_MAX: usize = 2 * iolab_plan::experiment::CELLS_MAX;
/// Most bytes of text to read. Rows can have more text than the file, through defaults of columns.
const TEXT_MAX: u64 = 256 << 20;

/// The tables of an open file, and how much text was read of them.
pub(super) struct Tables<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    /// Bytes of text read so far.
    text: Cell<u64>,
}

impl<'a> Tables<'a> {
    pub(super) fn of(connection: &'a Connection, path: &'a Path) -> Self {
        Self {
            connection,
            path,
            text: Cell::new(0),
        }
    }

    /// Calls a function for each row of a table.
    pub(super) fn each<T>(
        &self,
        table: &Table<T>,
        order: &str,
        mut take: impl FnMut(&Reader<'_, T>, &Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let wrong = |error| fault(self.path, &error);
        let sql = format!("SELECT * FROM {} ORDER BY {order}", table.name);
        let mut statement = self.connection.prepare(&sql).map_err(wrong)?;
        let reader = Reader::new(table, &statement, self.path)?;
        let mut rows = statement.query([]).map_err(wrong)?;
        let most = match table.name {
            "cell" => CELLS_MAX,
            "target" => TARGETS_MAX,
            _ => ROWS_MAX,
        };
        let mut count = 0;
        while let Some(row) = rows.next().map_err(wrong)? {
            self.weigh(&reader, row)?;
            if count == most {
                let what = format!("table {} has more than {most} rows", table.name);
                return Err(too_large(self.path, what));
            }
            take(&reader, row)?;
            count += 1;
        }
        Ok(())
    }

    /// All rows of a table.
    pub(super) fn all<T: Default>(&self, table: &Table<T>, order: &str) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.each(table, order, |reader, row| {
            let mut value = T::default();
            reader.read(row, &mut value)?;
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    /// The only row of a table.
    pub(super) fn only<T: Default>(&self, table: &Table<T>) -> Result<T> {
        let mut values = self.all(table, "id")?;
        match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(damaged(
                self.path,
                format!("table {} has not exactly one row", table.name),
            )),
        }
    }

    /// Counts the text of a row before storing any of it.
    pub(super) fn weigh<T>(&self, reader: &Reader<'_, T>, row: &Row<'_>) -> Result<()> {
        let columns = reader
            .texts
            .iter()
            .filter_map(|place| row.get_ref(*place).ok());
        let bytes = columns.map(|value| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
            _ => 0,
        });
        self.text.set(self.text.get() + bytes.sum::<u64>());
        if self.text.get() > TEXT_MAX {
            let what = format!("it holds more than {} MiB of text", TEXT_MAX >> 20);
            return Err(too_large(self.path, what));
        }
        Ok(())
    }
}
