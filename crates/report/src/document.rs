//! JSON documents: their common fields, and their JSON Schemas, made from the types and the columns.

use std::borrow::Cow;
use std::io::{self, Write};

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::claims::{self, ClaimData};
use crate::compare::CompareDocument;
use crate::data_column::{DataRows, IOLAB_VERSION, SCHEMA};
use crate::doubt::{self, TrustData};
use crate::export::cells::{self, ExportedCell};
use crate::export::samples;
use crate::findings::conclusions;
use crate::findings::digest::{Digest, Told};
use crate::notation::clean;
use crate::rows::json_object;
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{Comparison, with_peers};
use iolab_analysis::runs::RunName;

/// JSON document of `iolab table --format json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TableDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// Conclusion of each run, one line per target.
    summaries: Vec<RunSummary>,
    /// How far the claims that matter most, and the main numbers, can be trusted: as a report of these runs begins.
    trust: TrustData<'a>,
    /// One object per cell of each run; of a cell with groups one per group, and one of all together.
    #[serde(serialize_with = "objects")]
    #[schemars(schema_with = "schema_of_cells")]
    cells: DataRows<'a, ExportedCell<'a>>,
    /// Ids of the runs that claims are about, as the cells of these number them, from 0.
    claimed_runs: Vec<String>,
    /// Claims of each run, limits of its numbers among them, then claims about several runs together, in the order in which they are
    /// printed.
    claims: Vec<ClaimData>,
}

/// A run in one line, on one of its targets where it has the factor `target`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunSummary {
    /// Id of the run, as `run` of the cells names it.
    run: String,
    /// The target of the line, as the cells name it.
    target: String,
    /// Conclusion of the run, as text begins with it; for a run that looks for a cause, the cause.
    summary: String,
}

/// Writes rows, all with the same columns, as objects.
fn objects<S: Serializer>(rows: &DataRows<'_, ExportedCell<'_>>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(rows.values().map(|row| CellFields(rows.names(), row)))
}

fn schema_of_cells(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "array", "items": cells::schema()})
}

/// JSON document of `iolab export --format json`: one object per trial, and per group of it where it had
/// several.
pub(crate) struct SamplesDocument;

impl JsonSchema for SamplesDocument {
    fn schema_name() -> Cow<'static, str> {
        "Samples".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "array", "items": samples::schema()})
    }
}

/// A row in some columns.
struct CellFields<'a>(&'a [String], Vec<Cow<'a, Value>>);

impl Serialize for CellFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(names, values) = self;
        serializer.collect_map(names.iter().zip(values))
    }
}

/// Writes the cells and the claims of runs, each with the name of its file, as one JSON object; `iolab schema table` describes it.
///
/// # Errors
/// When the output cannot be written.
pub fn table(runs: &[(RunName, AnalysedRun)], to: &mut dyn Write) -> io::Result<()> {
    let peers: Vec<_> = runs.iter().map(|(_, run)| with_peers(run)).collect();
    let told = runs.iter().zip(&peers);
    let told = told.map(|((_, run), peers)| Told { run, peers });
    let digest = Digest::of(&told.collect::<Vec<_>>());
    let summaries = runs.iter().zip(&peers).flat_map(|((name, run), peers)| {
        let lines = conclusions(run.analysis(), peers).into_iter();
        lines.map(|line| RunSummary {
            run: name.id.clone(),
            target: clean(&line.target),
            summary: clean(&line.text),
        })
    });
    json_object(
        &TableDocument {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            summaries: summaries.collect(),
            trust: TrustData {
                trust: &digest.trust,
                sentence: doubt::sentence(&digest.trust),
            },
            cells: cells::rows(runs),
            claimed_runs: runs.iter().map(|(name, _)| name.id.clone()).collect(),
            claims: claims::of_runs(runs),
        },
        to,
    )
}

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
pub const DOCUMENTS: [Document; 3] = [
    Document::of::<TableDocument<'_>>("table", "iolab table --format json"),
    Document::of::<SamplesDocument>("export", "iolab export --format json"),
    Document::of::<CompareDocument<Comparison>>("compare", "iolab compare --format json"),
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
