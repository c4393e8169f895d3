//! Rows of named values, written one by one as CSV or as JSON objects.

#[cfg(test)]
mod tests;

use crate::notation::clean;
use std::borrow::{Borrow, Cow};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a header line; a missing value is empty. Text that a spreadsheet would execute is prefixed with `'`.
    Csv,
    /// An array of objects, one per line; a missing value is `null`.
    Json,
    /// JSON Lines: an object per line; a missing value is `null`.
    JsonLines,
}

/// Writes rows as they come, buffered only by the output.
pub struct RowWriter<'a>(Rows<'a>);

/// A table being written.
enum Rows<'a> {
    /// The output, and a number as text.
    Csv(Box<csv::Writer<Box<dyn Write + 'a>>>, Vec<u8>),
    Json {
        to: Box<dyn Write + 'a>,
        marks: &'static Marks,
        /// Text before each value: its name, with the separator from the value before.
        names: Vec<String>,
        is_empty: bool,
    },
}

/// Text before the first object, between two, after the last one, and for an empty table.
type Marks = [&'static str; 4];
const ARRAY: Marks = ["[\n", ",\n", "\n]\n", "[]\n"];
/// Files of lines can be concatenated.
const LINES: Marks = ["", "\n", "\n", ""];

impl<'a> RowWriter<'a> {
    /// Starts a table with these columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(to: impl Write + 'a, format: Format, columns: &[String]) -> io::Result<Self> {
        let to: Box<dyn Write + 'a> = Box::new(to);
        Ok(Self(match format {
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(to);
                let header = columns.iter().map(|column| cell(column).into_owned());
                csv.write_record(header).map_err(io_error)?;
                Rows::Csv(Box::new(csv), Vec::new())
            }
            Format::Json | Format::JsonLines => {
                let separators = std::iter::once('{').chain(std::iter::repeat(','));
                let names = columns.iter().zip(separators);
                let names =
                    names.map(|(name, before)| format!("{before}{}:", Value::from(name.as_str())));
                Rows::Json {
                    to,
                    marks: if format == Format::Json {
                        &ARRAY
                    } else {
                        &LINES
                    },
                    names: names.collect(),
                    is_empty: true,
                }
            }
        }))
    }

    /// Writes the values of one row, in the order of the columns.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn row(&mut self, values: impl IntoIterator<Item = impl Borrow<Value>>) -> io::Result<()> {
        match &mut self.0 {
            Rows::Csv(csv, number) => {
                for value in values {
                    field_of_csv(csv, number, value.borrow()).map_err(io_error)?;
                }
                csv.write_record(None::<&[u8]>).map_err(io_error)
            }
            Rows::Json {
                to,
                marks,
                names,
                is_empty,
            } => {
                to.write_all(marks[usize::from(!*is_empty)].as_bytes())?;
                *is_empty = false;
                for (name, value) in names.iter().zip(values) {
                    to.write_all(name.as_bytes())?;
                    serde_json::to_writer(&mut *to, value.borrow())?;
                }
                to.write_all(b"}")
            }
        }
    }

    /// Ends the table and flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Rows::Csv(mut csv, _) => csv.flush(),
            Rows::Json {
                mut to,
                marks,
                is_empty,
                ..
            } => {
                to.write_all(marks[2 + usize::from(is_empty)].as_bytes())?;
                to.flush()
            }
        }
    }
}

/// Writes a value as CSV; a missing one is empty.
fn field_of_csv<W: Write>(
    csv: &mut csv::Writer<W>,
    number: &mut Vec<u8>,
    value: &Value,
) -> csv::Result<()> {
    match value {
        Value::Null => csv.write_field(""),
        Value::String(text) => csv.write_field(cell(text).as_ref()),
        other => {
            number.clear();
            serde_json::to_writer(&mut *number, other).map_err(io::Error::from)?;
            csv.write_field(number)
        }
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

/// A value of text, with unsafe characters made visible.
pub fn text(text: &str) -> Value {
    Value::from(clean(text))
}

/// Writes a document as one JSON object.
///
/// # Errors
///
/// When the output cannot be written.
pub fn json_object(document: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, document)?;
    writeln!(to)
}
