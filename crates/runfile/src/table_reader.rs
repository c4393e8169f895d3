//! Reads the rows of tables into plain values. The file may come from elsewhere: rows and text are limited.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use iolab_record::column::Table;
use iolab_workload::Result;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Rows};

use super::error::{damaged, fault, too_large};
use super::layout::ROWS_MAX;
use super::opening::FileIdentity;
use super::rows::Reader;

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
    /// The file that further threads may open to read it too; `None` if only this thread reads.
    pub(super) file: Option<FileIdentity>,
    /// Bytes of text read so far, by all threads.
    pub(super) text: &'a AtomicU64,
}

impl Tables<'_> {
    /// Calls a function for each row of a table.
    pub(super) fn each<T>(
        &self,
        table: &Table<T>,
        order: &str,
        mut take: impl FnMut(&Reader<'_, T>, &Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let most = match table.name {
            "cell" => CELLS_MAX,
            "target" => TARGETS_MAX,
            _ => ROWS_MAX,
        };
        self.each_of(table, ("*", order), most, &mut take)
    }

    /// Calls a function for each row of a table, with some of its columns and others as SQL names them.
    fn each_of<T>(
        &self,
        table: &Table<T>,
        (columns, order): (&str, &str),
        most: usize,
        take: &mut dyn FnMut(&Reader<'_, T>, &Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let wrong = |error| fault(self.path, &error);
        let sql = format!("SELECT {columns} FROM {} ORDER BY {order}", table.name);
        let mut statement = self.connection.prepare(&sql).map_err(wrong)?;
        let reader = Reader::new(table, &statement, self.path)?;
        let rows = statement.query([]).map_err(wrong)?;
        self.each_row(&reader, rows, most, |row| take(&reader, row))
    }

    /// All rows of a table without the values of one column, which are read one by one.
    pub(super) fn all_but<T: Default>(
        &self,
        table: &Table<T>,
        large: &str,
        order: &str,
        most: usize,
    ) -> Result<Vec<T>> {
        let columns = table.stored().map(|column| match column.name == large {
            true => format!("x'' AS {large}"),
            false => column.name.to_owned(),
        });
        let columns = columns.collect::<Vec<String>>().join(", ");
        let mut values = Vec::new();
        self.each_of(table, (&columns, order), most, &mut |reader, row| {
            reader.read(row, values.push_mut(T::default()))
        })?;
        Ok(values)
    }

    /// Calls a function for each of these rows; more than `most` rows are an error.
    pub(super) fn each_row<T>(
        &self,
        reader: &Reader<'_, T>,
        mut rows: Rows<'_>,
        most: usize,
        mut take: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut count = 0;
        while let Some(row) = rows.next().map_err(|error| fault(self.path, &error))? {
            self.weigh(reader, row)?;
            if count == most {
                let what = format!("table {} has more than {most} rows", reader.name());
                return Err(too_large(self.path, what));
            }
            take(row)?;
            count += 1;
        }
        Ok(())
    }

    /// All rows of a table.
    pub(super) fn all<T: Default>(&self, table: &Table<T>, order: &str) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.each(table, order, |reader, row| {
            reader.read(row, values.push_mut(T::default()))
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
    fn weigh<T>(&self, reader: &Reader<'_, T>, row: &Row<'_>) -> Result<()> {
        let columns = reader
            .texts
            .iter()
            .filter_map(|place| row.get_ref(*place).ok());
        let bytes = columns.map(|value| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
            _ => 0,
        });
        let bytes = bytes.sum::<u64>();
        if self.text.fetch_add(bytes, Ordering::Relaxed) + bytes > TEXT_MAX {
            let what = format!("it holds more than {} MiB of text", TEXT_MAX >> 20);
            return Err(too_large(self.path, what));
        }
        Ok(())
    }
}
