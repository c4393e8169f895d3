//! Rows of named values, written one by one as CSV or as a JSON array of objects.

use std::io::{self, Write};

use serde_json::Value;

use crate::plain::plain;

/// One value with its name; the name carries the unit.
pub type Field = (String, Value);

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a header line; a missing value is empty.
    Csv,
    /// An array of objects, one per line; a missing value is `null`.
    Json,
}

/// Makes a field of text, with unsafe characters made visible.
pub fn text(name: &str, value: &str) -> Field {
    (name.to_owned(), Value::from(plain(value).into_owned()))
}

/// Makes a field of anything that JSON has a value for.
pub fn field(name: &str, value: impl Into<Value>) -> Field {
    (name.to_owned(), value.into())
}

/// Writes rows as they come; nothing is held back but the output's own buffer.
pub struct TidyWriter<W: Write> {
    header: Vec<String>,
    output: Output<W>,
}

enum Output<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json { to: W, rows: u64 },
}

impl<W: Write> TidyWriter<W> {
    /// Starts a table with these columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(to: W, format: Format, header: Vec<String>) -> io::Result<Self> {
        let output = match format {
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(to);
                csv.write_record(&header).map_err(io_error)?;
                Output::Csv(Box::new(csv))
            }
            Format::Json => Output::Json { to, rows: 0 },
        };
        Ok(Self { header, output })
    }

    /// Writes one row. A column that the row lacks is missing; a field that the header lacks is left out.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn row(&mut self, row: &[Field]) -> io::Result<()> {
        let values = self
            .header
            .iter()
            .map(|name| row.iter().find(|(n, _)| n == name).map(|(_, v)| v));
        match &mut self.output {
            Output::Csv(csv) => csv.write_record(values.map(csv_text)).map_err(io_error)?,
            Output::Json { to, rows } => {
                to.write_all(if *rows == 0 { b"[\n" } else { b",\n" })?;
                let fields = self.header.iter().zip(values);
                json_object(to, fields.map(|(n, v)| (n, v.unwrap_or(&Value::Null))))?;
                *rows += 1;
            }
        }
        Ok(())
    }

    /// Ends the table and flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self.output {
            Output::Csv(mut csv) => csv.flush(),
            Output::Json { mut to, rows } => {
                to.write_all(if rows == 0 { b"[]\n" } else { b"\n]\n" })?;
                to.flush()
            }
        }
    }
}

/// Writes an object with its fields in the given order.
pub(crate) fn json_object<'a>(
    to: &mut impl Write,
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
) -> io::Result<()> {
    for (i, (name, value)) in fields.enumerate() {
        to.write_all(if i == 0 { b"{" } else { b"," })?;
        serde_json::to_writer(&mut *to, name)?;
        to.write_all(b":")?;
        serde_json::to_writer(&mut *to, value)?;
    }
    to.write_all(b"}")
}

/// The crate's own conversion loses the kind of the error, and with it a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn csv_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The names of all rows' columns in the order of their first appearance.
pub(crate) fn header_of<'a>(rows: impl IntoIterator<Item = &'a [Field]>) -> Vec<String> {
    let mut header: Vec<String> = Vec::new();
    for row in rows {
        // Names new to the header go behind the one they follow in their row.
        let mut at = 0;
        for (name, _) in row {
            at = match header.iter().position(|h| h == name) {
                Some(found) => found + 1,
                None => {
                    header.insert(at, name.clone());
                    at + 1
                }
            };
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_stays_one() {
        let long = "x".repeat(1 << 20);
        for format in [Format::Csv, Format::Json] {
            let mut writer = TidyWriter::new(Closed, format, vec!["a".to_owned()]).unwrap();
            let error = writer.row(&[text("a", &long)]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    fn written(format: Format, rows: &[Vec<Field>]) -> String {
        let mut bytes = Vec::new();
        let header = header_of(rows.iter().map(Vec::as_slice));
        let mut writer = TidyWriter::new(&mut bytes, format, header).unwrap();
        for row in rows {
            writer.row(row).unwrap();
        }
        writer.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn rows() -> Vec<Vec<Field>> {
        vec![
            vec![
                field("a", 1),
                text("b", "x, \"y\""),
                field("c", Value::Null),
            ],
            vec![field("a", 2.5), field("d", true), field("c", 3)],
        ]
    }

    #[test]
    fn csv_quotes_and_leaves_missing_values_empty() {
        let expected = "a,d,b,c\n1,,\"x, \"\"y\"\"\",\n2.5,true,,3\n";
        assert_eq!(written(Format::Csv, &rows()), expected);
    }

    #[test]
    fn json_is_an_array_that_parses() {
        let parsed: Value = serde_json::from_str(&written(Format::Json, &rows())).unwrap();
        assert_eq!(parsed[0]["b"], "x, \"y\"");
        assert_eq!(parsed[0]["d"], Value::Null);
        assert_eq!(parsed[1]["a"], 2.5);
    }

    #[test]
    fn no_rows_are_still_a_table() {
        assert_eq!(written(Format::Json, &[]), "[]\n");
    }
}
