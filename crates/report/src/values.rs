//! Named values, the rows that they make, and what writes these.

use std::io;

use serde_json::Value;

use iolab_spec::plain::plain;

/// One value with its name; the name carries the unit.
pub type Field = (String, Value);

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, which carries the unit.
    pub name: String,
    /// What its values are.
    pub kind: ValueKind,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
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
    pub fn new(name: &str, kind: ValueKind) -> Self {
        let name = name.to_owned();
        Self { name, kind }
    }
}

impl ValueKind {
    /// The kind of a value; `None` for one that is missing.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(ValueKind::Flag),
            Value::Number(number) if number.is_i64() => Some(ValueKind::Integer),
            Value::Number(_) => Some(ValueKind::Number),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Some(ValueKind::Text),
        }
    }

    /// The kind that has room for values of both.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (ValueKind::Integer, ValueKind::Number) | (ValueKind::Number, ValueKind::Integer) => {
                ValueKind::Number
            }
            _ => ValueKind::Text,
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
    let mut columns: Vec<(String, Option<ValueKind>)> = Vec::new();
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
            *kind = match (*kind, ValueKind::of(value)) {
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
            kind: kind.unwrap_or(ValueKind::Number),
        })
        .collect()
}

/// A table that is being written.
pub(crate) trait Rows {
    /// Writes one row: a value for each column, `None` where it is missing.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn row(&mut self, values: &[Option<&Value>]) -> io::Result<()>;

    /// Ends the table and flushes the output.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
