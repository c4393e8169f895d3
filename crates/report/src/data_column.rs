//! Columns of rows for other programs: name, type, meaning, and the function that gives the value. Rows and their schema are
//! generated from the same columns, so that every value is documented.

use iolab_record::column::{Access, Column as StoredColumn};
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::{Setting, ValueKind};
use serde_json::{Map, Value, json};

use crate::rows::Field;

/// One column of rows about an `R`.
pub(crate) struct DataColumn<'c, R> {
    name: String,
    doc: String,
    /// The JSON Schema of its values.
    schema: Map<String, Value>,
    /// Whether no value is `null`.
    is_known: bool,
    value: Box<dyn Fn(&R) -> Value + 'c>,
    /// The rows that have the column; `None` for all.
    is_of: Option<fn(&R) -> bool>,
}

impl<'c, R: 'c> DataColumn<'c, R> {
    fn new(
        name: &str,
        doc: &str,
        json_type: &str,
        value: impl Fn(&R) -> Option<Value> + 'c,
    ) -> Self {
        let schema = [("type".to_owned(), Value::from(json_type))];
        Self {
            name: name.to_owned(),
            doc: doc.to_owned(),
            schema: Map::from_iter(schema),
            is_known: false,
            value: Box::new(move |row| value(row).unwrap_or_default()),
            is_of: None,
        }
    }

    /// Text, with unsafe characters made visible.
    pub(crate) fn text<T: AsRef<str>>(
        name: &str,
        doc: &str,
        value: impl Fn(&R) -> Option<T> + 'c,
    ) -> Self {
        Self::new(name, doc, "string", move |row| {
            let text = value(row)?;
            Some(escape_control(text.as_ref()).into_owned().into())
        })
    }

    /// True or false.
    pub(crate) fn flag(name: &str, doc: &str, value: impl Fn(&R) -> Option<bool> + 'c) -> Self {
        Self::new(name, doc, "boolean", move |row| value(row).map(Value::from))
    }

    /// A number.
    pub(crate) fn number(name: &str, doc: &str, value: impl Fn(&R) -> Option<f64> + 'c) -> Self {
        Self::new(name, doc, "number", move |row| value(row).map(Value::from))
    }

    /// A whole number.
    pub(crate) fn whole<N: TryInto<i64>>(
        name: &str,
        doc: &str,
        value: impl Fn(&R) -> Option<N> + 'c,
    ) -> Self {
        Self::new(name, doc, "integer", move |row| {
            let number: i64 = value(row)?.try_into().ok()?;
            Some(number.into())
        })
    }

    /// A column of a run file.
    pub(crate) fn stored<T>(column: &'static StoredColumn<T>, of: fn(&R) -> &T) -> Self {
        let (name, doc) = (column.name, column.doc);
        let value = move |row: &R| Some(column_value(column, of(row)));
        match &column.access {
            Access::Number(..) => Self::new(name, doc, "integer", value),
            Access::Real(..) => Self::new(name, doc, "number", value),
            Access::Flag(..) => Self::new(name, doc, "boolean", value),
            Access::Text(..) | Access::Bytes(..) => match column.words {
                [] => Self::new(name, doc, "string", value),
                words => Self::new(name, doc, "string", value).one_of(words),
            },
            Access::Setting(setting, ..) => Self::setting(setting, value),
        }
    }

    /// The value of a setting, as exports show it.
    pub(crate) fn setting(setting: &Setting, value: impl Fn(&R) -> Option<Value> + 'c) -> Self {
        let json_type = match setting.kind {
            ValueKind::Size | ValueKind::Count | ValueKind::Time => "integer",
            ValueKind::Rate => "number",
            ValueKind::Flag => "boolean",
            ValueKind::Word | ValueKind::Path | ValueKind::List => "string",
        };
        // The name of the column carries the unit.
        Self::new(
            setting.column,
            setting.doc,
            json_type,
            move |row| match value(row)? {
                Value::String(text) => Some(escape_control(&text).into_owned().into()),
                other => Some(other),
            },
        )
    }

    /// A list of objects that this schema describes.
    pub(crate) fn objects(
        name: &str,
        doc: &str,
        items: Value,
        value: impl Fn(&R) -> Value + 'c,
    ) -> Self {
        let mut column = Self::new(name, doc, "array", move |row| Some(value(row)));
        column.schema.insert("items".to_owned(), items);
        column
    }

    /// Limits its values to these words.
    pub(crate) fn one_of(mut self, words: &[&str]) -> Self {
        self.schema.insert("enum".to_owned(), json!(words));
        self
    }

    /// States that every row has a value.
    pub(crate) fn known(mut self) -> Self {
        self.is_known = true;
        self
    }

    /// `null` where these rows have no value of their own.
    pub(crate) fn null_where(mut self, rows: fn(&R) -> bool) -> Self {
        let value = self.value;
        self.value = Box::new(move |row| match rows(row) {
            true => Value::Null,
            false => value(row),
        });
        self
    }

    /// Limits it to these rows.
    pub(crate) fn only_of(mut self, rows: fn(&R) -> bool) -> Self {
        self.is_of = Some(rows);
        self
    }

    /// Its field in a row; `None` where the row lacks the column.
    pub(crate) fn field(&self, row: &R) -> Option<Field> {
        let is_of = self.is_of.is_none_or(|is_of| is_of(row));
        is_of.then(|| (self.name.clone(), (self.value)(row)))
    }

    /// The JSON Schema of its values, with their meaning.
    fn described(&self) -> Value {
        let mut schema = self.schema.clone();
        if !self.is_known {
            let json_type = schema.get("type").cloned().unwrap_or_default();
            schema.insert("type".to_owned(), json!([json_type, "null"]));
            if let Some(Value::Array(words)) = schema.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        schema.insert("description".to_owned(), self.doc.clone().into());
        Value::Object(schema)
    }
}

/// The schema of an object with these columns, and with those whose names begin with one of `prefixes`, each with its meaning.
/// Rows of several runs have the same columns: a value that only some rows have is `null` in the others.
pub(crate) fn row_schema<R>(columns: &[DataColumn<'_, R>], prefixes: &[(&str, &str)]) -> Value {
    let properties = columns.iter().map(|c| (c.name.clone(), c.described()));
    let required = columns.iter().filter(|column| column.is_of.is_none());
    let required: Vec<&str> = required.map(|column| column.name.as_str()).collect();
    let patterns = prefixes.iter().map(|(prefix, doc)| {
        let text = json!({"type": ["string", "null"], "description": doc});
        (format!("^{prefix}"), text)
    });
    json!({
        "type": "object",
        "properties": Map::from_iter(properties),
        "patternProperties": Map::from_iter(patterns),
        "required": required,
    })
}

/// The value of a column of a run file, as exports show it.
pub(crate) fn column_value<T>(column: &StoredColumn<T>, row: &T) -> Value {
    match &column.access {
        Access::Number(get, _) => get(row).into(),
        Access::Real(get, _) => get(row).into(),
        Access::Flag(get, _) => get(row).into(),
        Access::Text(get, _) => {
            let value = get(row);
            value.map(|text| escape_control(&text).into_owned()).into()
        }
        Access::Setting(setting, get, _) => setting.value(get(row)).into(),
        Access::Bytes(..) => Value::Null,
    }
}
