//! JSON Schemas of the output of commands, made from the types and the columns of that output.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};

use crate::compare::CompareDocument;
use crate::data_column::SCHEMA;
use crate::document::{SamplesDocument, TableDocument};
use crate::fitness::data::FitDocument;
use crate::witness::data::WitnessDocument;
use iolab_analysis::compare::Comparison;

/// A JSON document that a command prints: a row of the list of documents.
#[derive(Debug, Clone, Copy)]
pub struct Document {
    /// The name that `iolab schema` takes.
    pub name: &'static str,
    /// The command that prints it.
    pub command: &'static str,
    make: fn() -> Schema,
}

/// The documents of the core.
pub const DOCUMENTS: [Document; 5] = [
    Document::of::<TableDocument<'_>>("table", "iolab table --format json"),
    Document::of::<SamplesDocument>("export", "iolab export --format json"),
    Document::of::<CompareDocument<Comparison>>("compare", "iolab compare --format json"),
    Document::of::<FitDocument<'_>>("fit", "iolab fit --format json"),
    Document::of::<WitnessDocument<'_>>("witness", "iolab witness -o FILE.json -- COMMAND"),
];

impl Document {
    /// A document of this type.
    pub const fn of<T: JsonSchema>(name: &'static str, command: &'static str) -> Self {
        let make = of::<T>;
        Self {
            name,
            command,
            make,
        }
    }

    /// JSON Schema of the document, draft 2020-12.
    pub fn schema(self) -> Schema {
        let mut schema = (self.make)();
        let id = format!("urn:iolab:schema:{}:{SCHEMA}", self.name);
        schema.insert("title".to_owned(), self.command.into());
        schema.insert("$id".to_owned(), id.into());
        RecursiveTransform(unwrap).transform(&mut schema);
        schema
    }

    /// JSON Schema of the document, as text.
    pub fn text(self) -> String {
        format!("{:#}\n", self.schema().as_value())
    }
}

/// Puts a description on one line.
fn unwrap(schema: &mut Schema) {
    if let Some(text) = schema.get("description").and_then(|text| text.as_str()) {
        let line = text.replace('\n', " ");
        schema.insert("description".to_owned(), line.into());
    }
}

fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}
