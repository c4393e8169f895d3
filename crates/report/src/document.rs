//! JSON documents: their common fields and layout.

use std::borrow::Cow;
use std::io::{self, Write};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::Claim;
use iolab_analysis::compare::with_peers;
use iolab_analysis::runs::RunName;
use iolab_workload::escape_control::escape_control;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::claims::{self, ClaimData, IdentifiedRun, RemarkData};
use crate::data_column::{DataRows, IOLAB_VERSION, SCHEMA};
use crate::doubt;
use crate::doubt::TrustData;
use crate::export::cells::ExportedCell;
use crate::export::{cells, samples};
use crate::findings::digest::{Digest, Told};
use crate::findings::{Conclusion, conclusions};
use crate::rows::json_object;

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
    cells: CellRows<'a>,
    /// Ids of the runs that claims are about, as the cells of these number them, from 0.
    claimed_runs: Vec<String>,
    /// Claims of each run, then claims about several runs together, in the order in which they are printed.
    claims: Vec<ClaimData<Claim>>,
    /// Limits of the numbers of each run, in the order in which they are printed. For several runs, choices of
    /// settings follow.
    remarks: Vec<RemarkData>,
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

impl RunSummary {
    /// The lines of the run with this id.
    pub(crate) fn of(run: &str, conclusions: &[Conclusion]) -> Vec<Self> {
        let clean = |text: &str| escape_control(text).into_owned();
        let summary = |line: &Conclusion| Self {
            run: run.to_owned(),
            target: clean(&line.target),
            summary: clean(&line.text),
        };
        conclusions.iter().map(summary).collect()
    }
}

/// Rows of cells, all with the same columns.
struct CellRows<'a>(DataRows<'a, ExportedCell<'a>>);

impl Serialize for CellRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(None)?;
        let names = self.0.names();
        self.0
            .each(|values| rows.serialize_element(&CellFields(names, values)))?;
        rows.end()
    }
}

impl JsonSchema for CellRows<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "array", "items": cells::schema()})
    }
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
struct CellFields<'a>(&'a [String], &'a [Option<&'a Value>]);

impl Serialize for CellFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(names, values) = self;
        let mut object = serializer.serialize_map(Some(names.len()))?;
        for (name, value) in names.iter().zip(*values) {
            object.serialize_entry(name, value)?;
        }
        object.end()
    }
}

/// Writes the cells and the claims of runs, each with the name of its file, as one JSON object; `iolab schema table` describes it.
///
/// # Errors
/// When the output cannot be written.
pub fn table(runs: &[(RunName, AnalysedRun)], to: &mut dyn Write) -> io::Result<()> {
    let identified: Vec<_> = runs
        .iter()
        .map(|(name, run)| IdentifiedRun {
            id: name.id.clone(),
            analysis: run.analysis(),
        })
        .collect();
    let peers: Vec<_> = runs.iter().map(|(_, run)| with_peers(run)).collect();
    let told = runs.iter().zip(&peers);
    let told = told.map(|((_, run), peers)| Told { run, peers });
    let digest = Digest::of(&told.collect::<Vec<_>>());
    let summaries = runs.iter().zip(&peers).flat_map(|((name, run), peers)| {
        RunSummary::of(&name.id, &conclusions(run.analysis(), peers))
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
            cells: CellRows(cells::rows(runs)),
            claimed_runs: identified.iter().map(|run| run.id.clone()).collect(),
            claims: claims::of_runs(&identified),
            remarks: claims::remarks(&identified),
        },
        to,
    )
}
