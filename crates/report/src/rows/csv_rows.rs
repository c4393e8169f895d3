//! Rows as CSV.

use std::io::{self, Write};

use serde_json::Value;

use crate::values::Rows;

/// See [`super::Format::Csv`].
pub(super) struct CsvRows<W: Write>(csv::Writer<W>);

impl<W: Write> CsvRows<W> {
    /// Writes the header.
    pub(super) fn new(to: W, columns: &[String]) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(to);
        let header = columns.iter().map(|column| cell(column));
        csv.write_record(header).map_err(io_error)?;
        Ok(Self(csv))
    }
}

impl<W: Write> Rows for CsvRows<W> {
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()> {
        let cells = values.iter().map(|value| csv_cell(*value));
        self.0.write_record(cells).map_err(io_error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// The crate's own conversion loses the kind of the error, and with it a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// A value as a cell of CSV; a missing one is empty.
fn csv_cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => cell(text),
        Some(other) => other.to_string(),
    }
}

/// Text that no spreadsheet takes for a formula: what begins like one gets a `'` in front, which says that it is text. Numbers
/// stay numbers.
///
/// Source: "CSV Injection" of the OWASP Foundation, which names the characters.
fn cell(text: &str) -> String {
    let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && !is_number() {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_neutralises_what_a_spreadsheet_would_run() {
        for (value, expected) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-1+1", "'-1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("-", "'-"),
            ("-inf", "'-inf"),
            ("-1.5", "-1.5"),
            ("+2e-3", "+2e-3"),
            ("1=1", "1=1"),
            ("4KiB", "4KiB"),
        ] {
            assert_eq!(csv_cell(Some(&Value::from(value))), expected);
        }
        assert_eq!(csv_cell(Some(&Value::from(-1.5))), "-1.5");
        assert_eq!(csv_cell(Some(&Value::from(-3))), "-3");
    }
}
