//! Rows as JSON objects, in an array or one per line.

use std::io::{self, Write};

use serde_json::Value;

use crate::values::Rows;

/// The text around the objects.
pub(super) struct Frame {
    /// Text before the first object, if there is one.
    pub(super) first: &'static [u8],
    /// Text between two objects.
    pub(super) between: &'static [u8],
    /// Text after the last object.
    pub(super) last: &'static [u8],
    /// Text in place of all this without objects.
    pub(super) none: &'static [u8],
}

/// See [`super::Format::Json`].
pub(super) struct JsonRows<W: Write> {
    to: W,
    frame: Frame,
    /// Text before each value: its name, with the separator from the value before.
    names: Vec<String>,
    is_empty: bool,
}

impl<W: Write> JsonRows<W> {
    pub(super) fn new(to: W, columns: &[String], frame: Frame) -> Self {
        let separators = std::iter::once('{').chain(std::iter::repeat(','));
        let names = columns.iter().zip(separators);
        let names = names.map(|(name, before)| format!("{before}{}:", Value::from(name.as_str())));
        Self {
            to,
            frame,
            names: names.collect(),
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
        for (name, value) in self.names.iter().zip(values) {
            self.to.write_all(name.as_bytes())?;
            serde_json::to_writer(&mut self.to, value.unwrap_or(&Value::Null))?;
        }
        self.to.write_all(b"}")
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
