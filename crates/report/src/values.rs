//! Named values, the rows that they make, and the interface of their writers.

use std::io;

use serde_json::Value;

use iolab_workload::escape_control::escape_control;

/// A value with its name, which includes the unit.
pub type Field = (String, Value);

/// A field of text, with unsafe characters made visible.
pub fn text(name: &str, value: &str) -> Field {
    (
        name.to_owned(),
        Value::from(escape_control(value).into_owned()),
    )
}

/// A field of any value that JSON supports.
pub fn field(name: &str, value: impl Into<Value>) -> Field {
    (name.to_owned(), value.into())
}

/// The names of the columns of rows, in the order of their first appearance.
pub fn columns_of<R: AsRef<[Field]>>(rows: impl IntoIterator<Item = R>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        // New names are inserted after the one that they follow in their row.
        let mut at = 0;
        for (name, _) in row.as_ref() {
            let place = match columns.get(at).is_some_and(|expected| expected == name) {
                true => Some(at),
                false => columns.iter().position(|found| found == name),
            };
            at = 1 + place.unwrap_or_else(|| {
                columns.insert(at, name.clone());
                at
            });
        }
    }
    columns
}

/// A table being written.
pub(crate) trait Rows {
    /// Writes one row: a value for each column, `None` where it is missing.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()>;

    /// Ends the table and flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
