//! What is different in run files before schema version 5, which had a row of texts for each cell.

use std::path::Path;

use iolab_spec::Result;
use iolab_spec::trial::Backend;
use rusqlite::{Connection, Row};
use serde::Deserialize;

use super::fault::{damaged, fault};
use iolab_plan::experiment::document::DocumentText;
use iolab_record::{
    Cell, Effective, ExperimentRecord, LatencyOf, Operation, RequestTime, effective_before_5,
};
use iolab_spec::linkage::Linkage;
use iolab_spec::settings::{CellSpec, Setting};

/// Names of the directions of latencies.
const DIRECTIONS: [(&str, Operation, RequestTime); 6] = [
    ("read", Operation::Read, RequestTime::Service),
    ("read-lateness", Operation::Read, RequestTime::Lateness),
    ("read-response", Operation::Read, RequestTime::Response),
    ("write", Operation::Write, RequestTime::Service),
    ("write-lateness", Operation::Write, RequestTime::Lateness),
    ("write-response", Operation::Write, RequestTime::Response),
];

/// What latencies of a direction are.
pub(super) fn latency_of(direction: &str) -> Option<LatencyOf> {
    let known = DIRECTIONS.into_iter().find(|(name, ..)| *name == direction);
    known.map(|(_, operation, quantity)| LatencyOf {
        operation,
        quantity,
    })
}

/// The direction that latencies were kept under.
pub(super) fn direction(of: LatencyOf) -> Option<&'static str> {
    let is = |(_, operation, quantity): &(&str, Operation, RequestTime)| {
        (*operation, *quantity) == (of.operation, of.quantity)
    };
    DIRECTIONS.into_iter().find(is).map(|(name, ..)| name)
}

#[derive(Deserialize, Default)]
struct Definition {
    #[serde(default)]
    settings: toml::Table,
}

/// The settings that a definition fixes. Its text is what iolab itself wrote; where it is not, they are not known, and
/// are what they would be without a word.
pub(super) fn fixed(toml: &str) -> CellSpec {
    let source = DocumentText {
        name: "the run file",
        text: toml,
    };
    let definition: Definition = source.parse().unwrap_or_default();
    let mut spec = CellSpec::default();
    for (name, value) in &definition.settings {
        let text = match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if let Some(setting) = Setting::find(name) {
            // What cannot be set has no column that says so: it is left out.
            let _ = setting.set(&mut spec, &text);
        }
    }
    spec
}

/// What a cell asks for as far as its row did not say: its definition does, and its levels.
pub(super) fn with_levels(
    fixed: &CellSpec,
    experiment: &ExperimentRecord,
    levels: &[String],
) -> CellSpec {
    let mut spec = fixed.clone();
    for (factor, level) in experiment.factors.iter().zip(levels) {
        if let Some(setting) = Setting::find(factor) {
            let _ = setting.set(&mut spec, level);
        }
    }
    spec
}

/// Whether a setting that is missing in a row is not none, but what its default is: there were no arrivals in the closed
/// loop.
pub(super) fn leaves_unsaid(version: i64, column: &str) -> bool {
    version < 5 && column == "arrivals"
}

/// The program was kept as its command line, also where it is a build of the reader.
pub(super) fn name_linkage(cell: &mut Cell) {
    let program = cell.spec.command.as_ref();
    let built = |linkage: &Linkage| program == Some(&linkage.template());
    let linkage = [Linkage::Static, Linkage::Dynamic].into_iter().find(built);
    if linkage.is_some() {
        cell.spec.linkage = linkage;
        cell.spec.command = None;
    }
}

/// What was in force was kept as one text.
pub(super) fn effective(row: &Row<'_>, path: &Path, cell: &Cell) -> Result<Effective> {
    let text: String = row.get("effective").map_err(|error| match error {
        rusqlite::Error::SqliteFailure(..) => fault(path, &error),
        _ => damaged(path, "effective in table sample is not text"),
    })?;
    let mut effective = effective_before_5(&text, cell.spec.tool.is_peer());
    // That calls of pvsync2 polled was not said.
    let trial = &cell.spec.trial;
    effective.polled |= trial.iopoll && trial.backend == Backend::Pvsync2;
    Ok(effective)
}

/// Brings the rows of a connection's old tables into new ones: what [`super::upgrade`] cannot read and write by itself.
pub(super) fn copy_latencies(connection: &Connection) -> rusqlite::Result<()> {
    for (direction, operation, quantity) in DIRECTIONS {
        connection.execute(
            "INSERT INTO latency
                 (sample_id, group_id, rank_id, target_id, operation, quantity, histogram)
             SELECT sample_id, 0, 0, 0, ?, ?, histogram FROM old_latency WHERE direction = ?",
            [operation.name(), quantity.name(), direction],
        )?;
    }
    Ok(())
}
