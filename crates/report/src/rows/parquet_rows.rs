//! Rows of named values as Apache Parquet: one optional column each, in row groups of bounded size.
//!
//! Source: the Parquet format, parquet.apache.org/docs/file-format; nulls are reported by definition levels.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use crate::values::{Column, Rows, ValueKind, text_of};

/// Rows that are held back until they are written together.
const GROUP_ROWS: usize = 1 << 16;

/// Writes rows into a Parquet file in memory, whose end alone says where everything in it is.
pub(super) struct ParquetRows<W: Write> {
    to: W,
    writer: SerializedFileWriter<Vec<u8>>,
    kinds: Vec<ValueKind>,
    /// The values of the row group to come, column by column.
    held: Vec<Vec<Value>>,
}

impl<W: Write> ParquetRows<W> {
    /// Starts a file with these columns.
    ///
    /// # Errors
    /// When two columns have one name.
    pub(super) fn new(to: W, columns: &[Column]) -> io::Result<Self> {
        let fields: Result<Vec<_>> = columns.iter().map(|c| Ok(Arc::new(schema(c)?))).collect();
        let root =
            fields.and_then(|fields| Type::group_type_builder("row").with_fields(fields).build());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let writer = root
            .and_then(|root| SerializedFileWriter::new(Vec::new(), root.into(), properties.into()));
        Ok(Self {
            to,
            writer: writer.map_err(io_error)?,
            kinds: columns.iter().map(|c| c.kind).collect(),
            held: vec![Vec::new(); columns.len()],
        })
    }

    fn flush(&mut self) -> Result<()> {
        if self.held.first().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (kind, held) in self.kinds.iter().zip(&mut self.held) {
            let values = std::mem::take(held);
            match kind {
                ValueKind::Flag => write::<BoolType>(&mut group, &values, Value::as_bool)?,
                ValueKind::Integer => write::<Int64Type>(&mut group, &values, Value::as_i64)?,
                ValueKind::Number => write::<DoubleType>(&mut group, &values, Value::as_f64)?,
                ValueKind::Text => write::<ByteArrayType>(&mut group, &values, |value| {
                    let text = text_of(Some(value));
                    (!value.is_null()).then(|| ByteArray::from(text.as_str()))
                })?,
            }
        }
        group.close()?;
        Ok(())
    }
}

impl<W: Write> Rows for ParquetRows<W> {
    /// A value that is not of its column's kind is missing.
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()> {
        for (column, value) in self.held.iter_mut().zip(values) {
            column.push(value.cloned().unwrap_or_default());
        }
        if self.held.first().is_some_and(|c| c.len() >= GROUP_ROWS) {
            self.flush().map_err(io_error)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush().map_err(io_error)?;
        let file = self.writer.into_inner().map_err(io_error)?;
        self.to.write_all(&file)?;
        self.to.flush()
    }
}

fn schema(column: &Column) -> Result<Type> {
    let physical = match column.kind {
        ValueKind::Flag => Physical::BOOLEAN,
        ValueKind::Integer => Physical::INT64,
        ValueKind::Number => Physical::DOUBLE,
        ValueKind::Text => Physical::BYTE_ARRAY,
    };
    let mut builder =
        Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    if column.kind == ValueKind::Text {
        builder = builder
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String));
    }
    builder.build()
}

/// Writes the next column of a row group.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Value],
    take: impl Fn(&Value) -> Option<T::T>,
) -> Result<()> {
    let taken: Vec<Option<T::T>> = values.iter().map(take).collect();
    let levels: Vec<i16> = taken.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<T::T> = taken.into_iter().flatten().collect();
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("there are more kinds than columns".to_owned()))?;
    column
        .typed::<T>()
        .write_batch(&present, Some(&levels), None)?;
    column.close()
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
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
}
