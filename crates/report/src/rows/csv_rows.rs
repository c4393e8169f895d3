//! Rows as CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::Value;

use crate::values::Rows;

/// See [`super::Format::Csv`].
pub(super) struct CsvRows<W: Write> {
    csv: csv::Writer<W>,
    /// A number as text.
    number: Vec<u8>,
}

impl<W: Write> CsvRows<W> {
    /// Writes the header.
    pub(super) fn new(to: W, columns: &[String]) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(to);
        let header = columns.iter().map(|column| cell(column).into_owned());
        csv.write_record(header).map_err(io_error)?;
        let number = Vec::new();
        Ok(Self { csv, number })
    }

    /// Writes a value; a missing one is empty.
    fn field(&mut self, value: Option<&Value>) -> csv::Result<()> {
        let Self { csv, number } = self;
        match value {
            None | Some(Value::Null) => csv.write_field(""),
            Some(Value::String(text)) => csv.write_field(cell(text).as_ref()),
            Some(other) => {
                number.clear();
                serde_json::to_writer(&mut *number, other).map_err(io::Error::from)?;
                csv.write_field(number)
            }
        }
    }
}

impl<W: Write> Rows for CsvRows<W> {
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()> {
        for value in values {
            self.field(*value).map_err(io_error)?;
        }
        self.csv.write_record(None::<&[u8]>).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.csv.flush()
    }
}

/// The crate's own conversion loses the kind of the error, and with it a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Text that no spreadsheet takes for a formula: what begins like one gets a `'` in front, which says that it is text. Numbers
/// stay numbers.
///
/// Source: "CSV Injection" of the OWASP Foundation, which names the characters.
fn cell(text: &str) -> Cow<'_, str> {
    let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && !is_number() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}
