//! Rows of named values, written one by one as CSV, as a JSON array of objects, or as Parquet.

use std::io::{self, Write};

use serde_json::Value;

use crate::parquet::ParquetRows;
use iolab_spec::plain::plain;

/// One value with its name; the name carries the unit.
pub type Field = (String, Value);

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a header line; a missing value is empty. Text that a spreadsheet would run has a `'` in front.
    Csv,
    /// An array of objects, one per line; a missing value is `null`.
    Json,
    /// Apache Parquet; a missing value is null.
    Parquet,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, which carries the unit.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Flag,
    /// Whole numbers within 63 bits and a sign.
    Integer,
    /// Numbers.
    Number,
    /// Text.
    Text,
}

impl Column {
    /// A column.
    pub fn new(name: &str, kind: Kind) -> Self {
        let name = name.to_owned();
        Self { name, kind }
    }
}

impl Kind {
    /// The kind of a value; `None` for one that is missing.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Kind::Flag),
            Value::Number(number) if number.is_i64() => Some(Kind::Integer),
            Value::Number(_) => Some(Kind::Number),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Some(Kind::Text),
        }
    }

    /// The kind that has room for values of both.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
            _ => Kind::Text,
        }
    }
}

/// Makes a field of text, with unsafe characters made visible.
pub fn text(name: &str, value: &str) -> Field {
    (name.to_owned(), Value::from(plain(value).into_owned()))
}

/// Makes a field of anything that JSON has a value for.
pub fn field(name: &str, value: impl Into<Value>) -> Field {
    (name.to_owned(), value.into())
}

/// Writes rows as they come; nothing is held back but the output's own buffer. Of Parquet the encoded rows are held
/// back to the end.
pub struct TidyWriter<W: Write> {
    columns: Vec<Column>,
    output: Output<W>,
}

enum Output<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json { to: W, rows: u64 },
    Parquet { to: W, rows: Box<ParquetRows> },
}

impl<W: Write> TidyWriter<W> {
    /// Starts a table with these columns.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(to: W, format: Format, columns: Vec<Column>) -> io::Result<Self> {
        let output = match format {
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(to);
                let header = columns.iter().map(|c| cell(&c.name));
                csv.write_record(header).map_err(io_error)?;
                Output::Csv(Box::new(csv))
            }
            Format::Json => Output::Json { to, rows: 0 },
            Format::Parquet => Output::Parquet {
                to,
                rows: Box::new(ParquetRows::new(&columns)?),
            },
        };
        Ok(Self { columns, output })
    }

    /// Writes one row. A column that the row lacks is missing; a field that no column is named after is left out.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn row(&mut self, row: &[Field]) -> io::Result<()> {
        let of = |column: &Column| row.iter().find(|(n, _)| *n == column.name).map(|(_, v)| v);
        let values = self.columns.iter().map(of);
        match &mut self.output {
            Output::Csv(csv) => csv.write_record(values.map(csv_cell)).map_err(io_error)?,
            Output::Json { to, rows } => {
                to.write_all(if *rows == 0 { b"[\n" } else { b",\n" })?;
                let fields = self.columns.iter().zip(values);
                json_object(
                    to,
                    fields.map(|(c, v)| (&c.name, v.unwrap_or(&Value::Null))),
                )?;
                *rows += 1;
            }
            Output::Parquet { rows, .. } => rows.row(values)?,
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
            Output::Parquet { mut to, rows } => {
                to.write_all(&rows.finish()?)?;
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

/// A value as a cell of CSV; a missing one is empty.
fn csv_cell(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => cell(text),
        other => text_of(other),
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

/// A value as text; a missing one is empty.
pub(crate) fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The columns of rows, in the order of their first appearance; where no value is known they are taken for numbers.
pub(crate) fn columns_of<R: AsRef<[Field]>>(rows: impl IntoIterator<Item = R>) -> Vec<Column> {
    let mut columns: Vec<(String, Option<Kind>)> = Vec::new();
    for row in rows {
        // Names new to the header go behind the one they follow in their row.
        let mut at = 0;
        for (name, value) in row.as_ref() {
            let expected = columns.get(at).is_some_and(|(n, _)| n == name);
            let found = if expected {
                Some(at)
            } else {
                columns.iter().position(|(n, _)| n == name)
            };
            let place = found.unwrap_or_else(|| {
                columns.insert(at, (name.clone(), None));
                at
            });
            let kind = &mut columns[place].1;
            *kind = match (*kind, Kind::of(value)) {
                (Some(a), Some(b)) => Some(a.with(b)),
                (a, b) => a.or(b),
            };
            at = place + 1;
        }
    }
    columns
        .into_iter()
        .map(|(name, kind)| Column {
            name,
            kind: kind.unwrap_or(Kind::Number),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            let column = Column::new("a", Kind::Text);
            let mut writer = TidyWriter::new(Closed, format, vec![column]).unwrap();
            let error = writer.row(&[text("a", &long)]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }

    fn written(format: Format, rows: &[Vec<Field>]) -> String {
        let mut bytes = Vec::new();
        let mut writer = TidyWriter::new(&mut bytes, format, columns_of(rows)).unwrap();
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

    proptest! {
        #[test]
        fn no_cell_of_csv_runs_and_each_can_be_read_back(
            name in "[a=+\\-@\t\r\n\",; 1]{1,8}",
            text in prop_oneof![any::<String>(), "[-+=@.0-9e\t\r\n\",'; a]{0,8}"],
            number in any::<f64>(),
        ) {
            let rows = [vec![field(&name, text.clone()), field("number", number)]];
            let csv = written(Format::Csv, &rows);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes());
            let lines: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
            for (found, meant) in [(&lines[0][0], &name), (&lines[1][0], &text)] {
                let runs = found.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
                prop_assert!(!runs || found.parse::<f64>().is_ok(), "{found:?}");
                prop_assert_eq!(found.strip_prefix('\'').filter(|_| *found != *meant).unwrap_or(found), meant);
            }
            // A number, whatever its sign, is one.
            let read: Option<f64> = lines[1][1].parse().ok();
            prop_assert_eq!(read, Some(number).filter(|number| number.is_finite()));
        }
    }

    #[test]
    fn json_is_an_array_that_parses() {
        let parsed: Value = serde_json::from_str(&written(Format::Json, &rows())).unwrap();
        assert_eq!(parsed[0]["b"], "x, \"y\"");
        assert_eq!(parsed[0]["d"], Value::Null);
        assert_eq!(parsed[1]["a"], 2.5);
    }

    #[test]
    fn columns_have_room_for_all_their_values() {
        let mut rows = rows();
        rows.push(vec![field("d", 1), field("e", u64::MAX)]);
        let kinds: Vec<_> = columns_of(rows)
            .into_iter()
            .map(|c| (c.name, c.kind))
            .collect();
        let expected = [
            ("d", Kind::Text),
            ("e", Kind::Number),
            ("a", Kind::Number),
            ("b", Kind::Text),
            ("c", Kind::Integer),
        ];
        let mut expected = expected.map(|(n, k)| (n.to_owned(), k)).to_vec();
        expected.sort_by_key(|(n, _)| kinds.iter().position(|(k, _)| k == n));
        assert_eq!(kinds, expected);
    }

    #[test]
    fn no_rows_are_still_a_table() {
        assert_eq!(written(Format::Json, &[]), "[]\n");
    }
}
