//! Named values, the rows that they make, and the interface of their writers.

use std::fmt;
use std::io;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Error, Serialize};
use serde_json::Value;

use iolab_workload::escape_control::escape_control;

/// A value with its name, which includes the unit.
pub type Field = (String, Value);

/// A field of text, with unsafe characters made visible.
pub fn text(name: &str, value: &str) -> Field {
    (
        name.to_owned(),
        Value::from(escape_control(value).into_owned()),
    )
}

/// A field of any value that JSON supports.
pub fn field(name: &str, value: impl Into<Value>) -> Field {
    (name.to_owned(), value.into())
}

/// The fields of a structure as in JSON, in the order of its declaration.
///
/// # Errors
///
/// It is not a structure.
pub(crate) fn fields_of(of: &impl Serialize) -> serde_json::Result<Vec<Field>> {
    // serde_json sorts the names of an object; the text has them in the order of the structure.
    let Names(names) = serde_json::from_str(&serde_json::to_string(of)?)?;
    let Value::Object(mut values) = serde_json::to_value(of)? else {
        return Err(Error::custom("no structure"));
    };
    let value = |name: &String| values.remove(name).unwrap_or_default();
    let values: Vec<Value> = names.iter().map(value).collect();
    Ok(names.into_iter().zip(values).collect())
}

/// The names of an object.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The names of the columns of rows, in the order of their first appearance.
pub(crate) fn columns_of<R: AsRef<[Field]>>(rows: impl IntoIterator<Item = R>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        // New names are inserted after the one that they follow in their row.
        let mut at = 0;
        for (name, _) in row.as_ref() {
            let place = match columns.get(at).is_some_and(|expected| expected == name) {
                true => Some(at),
                false => columns.iter().position(|found| found == name),
            };
            at = 1 + place.unwrap_or_else(|| {
                columns.insert(at, name.clone());
                at
            });
        }
    }
    columns
}

/// A table being written.
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
