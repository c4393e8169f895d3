//! Format of an event, as `events/*/format` of tracefs states it.

use iolab_workload::{Error, Result};

/// Number of an event, and the positions of the fields in its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// Number in the records of the event.
    pub(super) id: u16,
    fields: Vec<Field>,
}

/// A field: its name and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    place: FieldPlace,
}

/// Position of a field in a record, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldPlace {
    offset: usize,
    size: usize,
}

impl FieldPlace {
    /// Bytes of a field in a record; `None` where the record is too short.
    pub(super) fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Number in a field of at most 8 bytes, in the machine's byte order.
    pub(super) fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut number = [0; 8];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

impl Format {
    /// Parses the text of a format.
    ///
    /// # Errors
    /// The text is not a format.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = id.and_then(|id| id.trim().parse().ok());
        let id = id.ok_or_else(|| Error::failed("the format of a trace event has no ID"))?;
        let fields = text.lines().filter_map(field).collect();
        Ok(Self { id, fields })
    }

    /// Position of a field.
    ///
    /// # Errors
    /// The event has no field of that name.
    pub(super) fn place(&self, name: &str) -> Result<FieldPlace> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.map(|field| field.place).ok_or_else(|| {
            Error::failed(format!(
                "trace event {} of this kernel has no field {name}",
                self.id
            ))
            .hint("measure without trace events")
        })
    }
}

/// Parses a line such as `field:char rwbs[10]; offset:34; size:10; signed:0;`.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let last = declaration.split_whitespace().last()?;
    let name = last.split('[').next()?.to_owned();
    let mut number =
        |what: &str| -> Option<usize> { parts.next()?.strip_prefix(what)?.parse().ok() };
    Some(Field {
        name,
        place: FieldPlace {
            offset: number("offset:")?,
            size: number("size:")?,
        },
    })
}
