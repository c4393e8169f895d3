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

/// Writes rows as they come.
pub struct RowWriter<'a> {
    to: Box<dyn Write + 'a>,
    format: Format,
    /// Text before each value: a separator; of JSON also its name.
    before: Vec<String>,
    /// Text still to be written.
    text: Vec<u8>,
    is_empty: bool,
}

/// Bytes that are written at once, at least.
const WRITTEN: usize = 1 << 16;

impl Format {
    /// Text before the first row, between two, after the last one, and for an empty table. Files of lines can be concatenated.
    fn marks(self) -> [&'static str; 4] {
        match self {
            Self::Csv => ["", "\n", "\n", "\n"],
            Self::Json => ["[\n{", "},\n{", "}\n]\n", "[]\n"],
            Self::JsonLines => ["{", "}\n{", "}\n", ""],
        }
    }
}

impl<'a> RowWriter<'a> {
    /// Starts a table with these columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(to: impl Write + 'a, format: Format, columns: &[String]) -> io::Result<Self> {
        let separators = std::iter::once("").chain(std::iter::repeat(","));
        let before = columns
            .iter()
            .zip(separators)
            .map(|(name, before)| match format {
                Format::Csv => before.to_owned(),
                _ => format!("{before}{}:", Value::from(name.as_str())),
            });
        let mut own = Self {
            to: Box::new(to),
            format,
            before: before.collect(),
            text: Vec::new(),
            is_empty: true,
        };
        if format == Format::Csv {
            own.row(columns.iter().map(|name| Value::from(name.as_str())))?;
        }
        Ok(own)
    }

    /// Writes the values of one row, in the order of the columns.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn row(&mut self, values: impl IntoIterator<Item = impl Borrow<Value>>) -> io::Result<()> {
        let text = &mut self.text;
        text.extend(self.format.marks()[usize::from(!self.is_empty)].bytes());
        self.is_empty = false;
        for (before, value) in self.before.iter().zip(values) {
            text.extend(before.bytes());
            match (self.format, value.borrow()) {
                (Format::Csv, Value::Null) => {}
                (Format::Csv, Value::String(value)) => quoted(&cell(value), text),
                (Format::Csv, value @ (Value::Array(_) | Value::Object(_))) => {
                    quoted(&value.to_string(), text);
                }
                (_, value) => serde_json::to_writer(&mut *text, value)?,
            }
        }
        match text.len() < WRITTEN {
            true => Ok(()),
            false => self.pass_on(),
        }
    }

    /// Ends the table and flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        let end = self.format.marks()[2 + usize::from(self.is_empty)];
        self.text.extend(end.bytes());
        self.pass_on()?;
        self.to.flush()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.to.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Adds a value of CSV, in quotes if it needs them.
fn quoted(value: &str, to: &mut Vec<u8>) {
    match value.contains([',', '"', '\r', '\n']) {
        true => to.extend(format!("\"{}\"", value.replace('"', "\"\"")).bytes()),
        false => to.extend(value.bytes()),
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
