//! Rows as JSON objects: an array of them, or one a line.

use std::io::{self, Write};

use serde_json::Value;

use crate::values::Rows;

/// The text around the objects.
pub(super) struct Frame {
    /// Before the first, if there is one.
    pub(super) first: &'static [u8],
    /// Between two.
    pub(super) between: &'static [u8],
    /// After the last.
    pub(super) last: &'static [u8],
    /// Instead of all that where there is none.
    pub(super) none: &'static [u8],
}

/// See [`super::Format::Json`].
pub(super) struct JsonRows<W: Write> {
    to: W,
    frame: Frame,
    names: Vec<String>,
    is_empty: bool,
}

impl<W: Write> JsonRows<W> {
    pub(super) fn new(to: W, columns: &[String], frame: Frame) -> Self {
        Self {
            to,
            frame,
            names: columns.to_vec(),
            is_empty: true,
        }
    }
}

impl<W: Write> Rows for JsonRows<W> {
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()> {
        let before = match self.is_empty {
            true => self.frame.first,
            false => self.frame.between,
        };
        self.is_empty = false;
        self.to.write_all(before)?;
        let fields = self.names.iter().zip(values);
        object(
            &mut self.to,
            fields.map(|(name, value)| (name, value.unwrap_or(&Value::Null))),
        )
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let after = match self.is_empty {
            true => self.frame.none,
            false => self.frame.last,
        };
        self.to.write_all(after)?;
        self.to.flush()
    }
}

/// Writes an object with its fields in the given order.
pub(crate) fn object<'a>(
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
