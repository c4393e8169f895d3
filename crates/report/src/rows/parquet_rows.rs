//! Rows of named values as Apache Parquet: one optional column each, in row groups of bounded size, with dictionaries where
//! values repeat, and Snappy.
//!
//! Source: github.com/apache/parquet-format, README.md and src/main/thrift/parquet.thrift, which number the fields below.

mod encoding;
mod thrift;

use std::collections::HashSet;
use std::io::{self, Error, Write};

use serde_json::Value;

use self::encoding::{Values, encoded};
use self::thrift::Struct;
use crate::values::{Column, Rows, ValueKind};

/// Rows that are held back until they are written together.
const GROUP_ROWS: usize = 1 << 16;
/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";

const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;

const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const SNAPPY: i32 = 1;

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;

/// Writes rows into a Parquet file as row groups fill; its end says where everything in it is.
pub(super) struct ParquetRows<W: Write> {
    to: W,
    /// Bytes written so far.
    at: u64,
    columns: Vec<Column>,
    /// The values of the row group to come, column by column.
    held: Vec<Vec<Value>>,
    groups: Vec<Group>,
}

/// A row group that is written.
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// A column of a row group that is written.
struct Chunk {
    /// Where the dictionary is, and where the values are, bytes from the beginning of the file.
    dictionary: Option<u64>,
    data: u64,
    /// Bytes with the headers of pages, before and after compression.
    plain_bytes: usize,
    bytes: usize,
}

impl<W: Write> ParquetRows<W> {
    /// Starts a file with these columns.
    ///
    /// # Errors
    /// When two columns have one name, or the output cannot be written.
    pub(super) fn new(mut to: W, columns: &[Column]) -> io::Result<Self> {
        let mut names = HashSet::new();
        if let Some(column) = columns.iter().find(|column| !names.insert(&column.name)) {
            let text = format!("two columns are called {}", column.name);
            return Err(Error::other(text));
        }
        to.write_all(MAGIC)?;
        Ok(Self {
            to,
            at: MAGIC.len() as u64,
            columns: columns.to_vec(),
            held: vec![Vec::new(); columns.len()],
            groups: Vec::new(),
        })
    }

    /// Writes what is held as a row group.
    fn flush(&mut self) -> io::Result<()> {
        let rows = self.held.first().map_or(0, Vec::len);
        if rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for place in 0..self.columns.len() {
            let values = std::mem::take(&mut self.held[place]);
            chunks.push(self.chunk(&values, self.columns[place].kind)?);
        }
        self.groups.push(Group { rows, chunks });
        Ok(())
    }

    /// Writes a column of a row group.
    fn chunk(&mut self, values: &[Value], kind: ValueKind) -> io::Result<Chunk> {
        let (levels, own) = encoded(values, kind);
        let mut chunk = Chunk {
            dictionary: None,
            data: self.at,
            plain_bytes: 0,
            bytes: 0,
        };
        let (bytes, encoding) = match own {
            Values::Plain(bytes) => (bytes, PLAIN),
            Values::Dictionary {
                distinct,
                count,
                places,
            } => {
                chunk.dictionary = Some(self.at);
                self.page(&mut chunk, DICTIONARY_PAGE, &distinct, |header| {
                    header.within(7, |dictionary| {
                        dictionary.i32(1, count as i32);
                        dictionary.i32(2, PLAIN);
                    });
                })?;
                (places, RLE_DICTIONARY)
            }
        };
        let mut data = (levels.len() as u32).to_le_bytes().to_vec();
        data.extend(levels);
        data.extend(bytes);
        chunk.data = self.at;
        self.page(&mut chunk, DATA_PAGE, &data, |header| {
            header.within(5, |page| {
                page.i32(1, values.len() as i32);
                page.i32(2, encoding);
                page.i32(3, RLE);
                page.i32(4, RLE);
            });
        })?;
        Ok(chunk)
    }

    /// Writes a page of a column: its header, then its bytes.
    fn page(
        &mut self,
        chunk: &mut Chunk,
        kind: i32,
        bytes: &[u8],
        own: impl FnOnce(&mut Struct<'_>),
    ) -> io::Result<()> {
        let packed = snap::raw::Encoder::new().compress_vec(bytes)?;
        let length = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(Error::other);
        let (plain_length, length) = (length(bytes)?, length(&packed)?);
        let mut header = Vec::new();
        thrift::write(&mut header, |header| {
            header.i32(1, kind);
            header.i32(2, plain_length);
            header.i32(3, length);
            own(header);
        });
        self.to.write_all(&header)?;
        self.to.write_all(&packed)?;
        chunk.plain_bytes += header.len() + bytes.len();
        chunk.bytes += header.len() + packed.len();
        self.at += (header.len() + packed.len()) as u64;
        Ok(())
    }

    /// What the end of the file says of it.
    fn footer(&self) -> Vec<u8> {
        let mut to = Vec::new();
        thrift::write(&mut to, |file| {
            file.i32(1, 1);
            let schema: Vec<Option<&Column>> = [None]
                .into_iter()
                .chain(self.columns.iter().map(Some))
                .collect();
            file.structs(2, &schema, |column, to| match column {
                None => {
                    to.text(4, "row");
                    to.i32(5, self.columns.len() as i32);
                }
                Some(column) => element(column, to),
            });
            file.i64(3, self.groups.iter().map(|group| group.rows as i64).sum());
            file.structs(4, &self.groups, |group, to| {
                let chunks: Vec<_> = self.columns.iter().zip(&group.chunks).collect();
                to.structs(1, &chunks, |(column, chunk), to| {
                    to.i64(2, 0);
                    to.within(3, |to| chunk.described(column, group.rows, to));
                });
                let plain_bytes: usize = group.chunks.iter().map(|chunk| chunk.plain_bytes).sum();
                to.i64(2, plain_bytes as i64);
                to.i64(3, group.rows as i64);
            });
            file.text(6, concat!("iolab ", env!("CARGO_PKG_VERSION")));
        });
        to
    }
}

impl Chunk {
    /// Its entry in the footer.
    fn described(&self, column: &Column, rows: usize, to: &mut Struct<'_>) {
        to.i32(1, physical(column.kind));
        to.numbers(
            2,
            match self.dictionary {
                None => &[PLAIN, RLE],
                Some(_) => &[PLAIN, RLE, RLE_DICTIONARY],
            },
        );
        to.one_text(3, &column.name);
        to.i32(4, SNAPPY);
        to.i64(5, rows as i64);
        to.i64(6, self.plain_bytes as i64);
        to.i64(7, self.bytes as i64);
        to.i64(9, self.data as i64);
        if let Some(dictionary) = self.dictionary {
            to.i64(11, dictionary as i64);
        }
    }
}

impl<W: Write> Rows for ParquetRows<W> {
    /// A value that is not of its column's kind is missing.
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()> {
        for (column, value) in self.held.iter_mut().zip(values) {
            column.push(value.cloned().unwrap_or_default());
        }
        match self.held.first() {
            Some(column) if column.len() >= GROUP_ROWS => self.flush(),
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        let footer = self.footer();
        let length = u32::try_from(footer.len()).map_err(Error::other)?;
        self.to.write_all(&footer)?;
        self.to.write_all(&length.to_le_bytes())?;
        self.to.write_all(MAGIC)?;
        self.to.flush()
    }
}

fn physical(kind: ValueKind) -> i32 {
    match kind {
        ValueKind::Flag => BOOLEAN,
        ValueKind::Integer => INT64,
        ValueKind::Number => DOUBLE,
        ValueKind::Text => BYTE_ARRAY,
    }
}

/// A column in the schema. Text is marked twice: readers before 2018 know only the first.
fn element(column: &Column, to: &mut Struct<'_>) {
    to.i32(1, physical(column.kind));
    to.i32(3, OPTIONAL);
    to.text(4, &column.name);
    if column.kind == ValueKind::Text {
        to.i32(6, UTF8);
        to.within(10, |kind| kind.within(1, |_| {}));
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_read_back_with_its_type() {
        let kinds = [
            ("flag", ValueKind::Flag),
            ("count", ValueKind::Integer),
            ("share", ValueKind::Number),
            ("name", ValueKind::Text),
        ];
        let columns = kinds.map(|(name, kind)| Column::new(name, kind));
        let mut bytes = Vec::new();
        let mut file = Box::new(ParquetRows::new(&mut bytes, &columns).unwrap());
        let rows = [
            [
                json!(true),
                json!(i64::MAX),
                json!(0.25),
                json!("x, \u{e9}"),
            ],
            [json!(null), json!(null), json!(3), json!(null)],
        ];
        let many = GROUP_ROWS / 2 + 1;
        for row in std::iter::repeat_n(&rows, many).flatten() {
            file.row(&row.each_ref().map(Some)).unwrap();
        }
        file.finish().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let read: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap())
            .collect();
        assert_eq!(read.len(), 2 * many);
        let last = &read[2 * many - 2..];
        assert!(last[0].get_bool(0).unwrap());
        assert_eq!(last[0].get_long(1).unwrap(), i64::MAX);
        assert_eq!(last[0].get_double(2).unwrap(), 0.25);
        assert_eq!(last[0].get_string(3).unwrap(), "x, \u{e9}");
        assert!(last[1].get_bool(0).is_err(), "a missing value is null");
        assert_eq!(last[1].get_double(2).unwrap(), 3.0);
    }

    #[test]
    fn values_that_differ_and_values_that_are_missing_are_read_back() {
        let kinds = [
            ("each", ValueKind::Integer),
            ("some", ValueKind::Number),
            ("text", ValueKind::Text),
            ("flag", ValueKind::Flag),
            ("never", ValueKind::Text),
        ];
        let columns = kinds.map(|(name, kind)| Column::new(name, kind));
        let row = |n: u64| {
            let some = (n % 7 != 3).then_some((n / 50) as f64);
            [
                json!(n as i64 - 100),
                json!(some),
                json!("x".repeat(n as usize % 300)),
                json!(n.is_multiple_of(3)),
                json!(null),
            ]
        };
        for count in [0u64, 1, 7, 8, 9, 1000] {
            let mut bytes = Vec::new();
            let mut file = Box::new(ParquetRows::new(&mut bytes, &columns).unwrap());
            for n in 0..count {
                file.row(&row(n).each_ref().map(Some)).unwrap();
            }
            file.finish().unwrap();
            let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
            let read = reader.get_row_iter(None).unwrap();
            let mut seen = 0;
            for (n, found) in (0..).zip(read) {
                let found = found.unwrap();
                let [each, some, text, flag, _] = row(n);
                assert_eq!(found.get_long(0).ok(), each.as_i64(), "{n} of {count}");
                assert_eq!(found.get_double(1).ok(), some.as_f64(), "{n} of {count}");
                assert_eq!(found.get_string(2).ok().map(String::as_str), text.as_str());
                assert_eq!(found.get_bool(3).ok(), flag.as_bool(), "{n} of {count}");
                assert!(found.get_string(4).is_err(), "{n} of {count}");
                seen += 1;
            }
            assert_eq!(seen, count);
        }
    }

    #[test]
    fn a_name_stands_for_one_column() {
        let columns = [ValueKind::Flag, ValueKind::Text].map(|kind| Column::new("a", kind));
        let made = ParquetRows::new(Vec::new(), &columns);
        assert!(made.err().unwrap().to_string().contains("called a"));
    }
}
