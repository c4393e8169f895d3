//! JSON Schemas of the output of commands, made from the types and the columns of that output.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};

use crate::compare::CompareDocument;
use crate::document::{AnswersDocument, SamplesDocument, TableDocument};
use crate::document_header::SCHEMA;
use crate::fitness::data::FitDocument;
use crate::witness::data::WitnessDocument;
use iolab_analysis::compare::Comparison;
use iolab_analysis::gate::Gate;

macro_rules! documents {
    ($($document:ident = $name:literal, $command:literal, $type:ty;)+) => {
        iolab_workload::named! {
            /// A JSON document that a command prints.
            pub enum Document: "output" {
                $(#[doc = $command] $document = $name,)+
            }
        }

        impl Document {
            /// The command that prints it.
            pub fn command(self) -> &'static str {
                match self {
                    $(Self::$document => $command,)+
                }
            }

            /// Its JSON Schema, draft 2020-12.
            pub fn schema(self) -> Schema {
                let mut schema = match self {
                    $(Self::$document => of::<$type>(),)+
                };
                schema.insert("title".to_owned(), self.command().into());
                schema.insert("$id".to_owned(), self.id().into());
                RecursiveTransform(unwrap).transform(&mut schema);
                schema
            }
        }
    };
}

documents! {
    Table = "table", "iolab table --format json", TableDocument<'_>;
    Export = "export", "iolab export --format json", SamplesDocument;
    Answers = "answers", "iolab export --answers --format json", AnswersDocument;
    Compare = "compare", "iolab compare --format json", CompareDocument<Comparison>;
    Fit = "fit", "iolab fit --format json", FitDocument<'_>;
    Gate = "gate", "iolab gate --format json", CompareDocument<Gate>;
    Witness = "witness", "iolab witness -o FILE.json -- COMMAND", WitnessDocument<'_>;
}

impl Document {
    /// Identifier of its schema, with the version of the schemas.
    fn id(self) -> String {
        format!("urn:iolab:schema:{}:{SCHEMA}", self.name())
    }

    /// Its schema as text.
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
