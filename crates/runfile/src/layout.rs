//! Initial content of a run file: its tables, the plan, and no samples.

use std::path::Path;

use iolab_record::environment::Environment;
use iolab_record::tables::{
    CELL, CELL_GROUP, CellRow, ENVIRONMENT, EXPERIMENT, Fact, GroupRow, RUN,
};
use iolab_record::{Cell, ExperimentRecord, Run, SCHEMA_VERSION};
use iolab_workload::Result;
use rusqlite::Connection;

use super::error::fault;
use super::{logged, question, rows, schema};

/// The bytes of a file with its plan and without samples. They say that it has a log, as it will have during the run: a reader that took it
/// for a plain file would wait for the lock of its writer.
pub(super) fn laid_out(
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<Vec<u8>> {
    let mut content = with_tables(|connection, path| {
        write_plan(connection, path, run, environment, experiment, cells)
    })?;
    logged::set_mode(&mut content, logged::WITH_LOG);
    Ok(content)
}

/// The bytes of a file with all tables and what `write` writes to them.
pub(super) fn with_tables(write: impl FnOnce(&Connection, &Path) -> Result<()>) -> Result<Vec<u8>> {
    // Errors here have no file.
    let nowhere = Path::new("the new run file");
    let wrong = |error| fault(nowhere, &error);
    let mut memory = Connection::open_in_memory().map_err(wrong)?;
    let identity = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {SCHEMA_VERSION}; BEGIN;",
        schema::APPLICATION_ID
    );
    for sql in [identity.as_str(), &schema::CREATE] {
        memory.execute_batch(sql).map_err(wrong)?;
    }
    write(&memory, nowhere)?;
    memory.execute_batch("COMMIT").map_err(wrong)?;
    let content = memory.serialize("main").map_err(wrong)?;
    Ok(content.to_vec())
}

pub(super) fn write_environment(
    connection: &Connection,
    path: &Path,
    environment: &Environment,
) -> Result<()> {
    for (position, (key, value)) in environment.iter().enumerate() {
        let fact = Fact {
            host: 0,
            position: position as u64,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        rows::insert(connection, path, &ENVIRONMENT, &fact, true)?;
    }
    Ok(())
}

pub(super) fn write_cells(
    connection: &Connection,
    path: &Path,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<()> {
    for cell in cells {
        let levels: serde_json::Map<String, serde_json::Value> = experiment
            .factors
            .iter()
            .zip(&cell.levels)
            .map(|(factor, level)| (factor.clone(), level.as_str().into()))
            .collect();
        let row = CellRow {
            cell: cell.clone(),
            levels: serde_json::Value::Object(levels).to_string(),
        };
        rows::insert(connection, path, &CELL, &row, true)?;
        for (id, group) in (1..).zip(&cell.spec.groups) {
            let row = GroupRow {
                cell: cell.id,
                id,
                name: group.name.clone(),
                target: 0,
                spec: group.spec.clone(),
            };
            rows::insert(connection, path, &CELL_GROUP, &row, true)?;
        }
    }
    Ok(())
}

/// Writes the initial content of a run file.
fn write_plan(
    connection: &Connection,
    path: &Path,
    run: &Run,
    environment: &Environment,
    experiment: &ExperimentRecord,
    cells: &[Cell],
) -> Result<()> {
    rows::insert(connection, path, &RUN, run, true)?;
    write_environment(connection, path, environment)?;
    rows::insert(connection, path, &EXPERIMENT, experiment, true)?;
    if let Some(asked) = &experiment.asked {
        question::write(connection, path, asked)?;
    }
    write_cells(connection, path, experiment, cells)
}
