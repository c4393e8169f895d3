//! Upgrades a run file of an earlier schema version or build before its run is resumed, in one transaction, so that a kill leaves
//! either of the two.

use std::path::Path;

use iolab_workload::Result;
use rusqlite::Connection;

use super::error::fault;
use super::layout::write_plan;
use super::{rows, schema, sqlite_protection};
use iolab_record::column::Table;
use iolab_record::tables::{
    CLIENT_SAMPLE, ENVIRONMENT, EVENT, GROUP_SAMPLE, LATENCY, LATENCY_OVER_TIME, PART, PREPARATION,
    RANK, SAMPLE, SERIES, TARGET,
};
use iolab_record::{RunRecord, SCHEMA_VERSION};

/// Upgrades a file of an earlier version or build, from which `record` was read.
///
/// # Errors
///
/// When it cannot be written; the file is then unchanged.
pub(super) fn upgrade(connection: &mut Connection, path: &Path, record: &RunRecord) -> Result<()> {
    let wrong = |error| fault(path, &error);
    // The record has what was in the file. The resulting definitions are checked at the end.
    sqlite_protection::trust(connection).map_err(wrong)?;
    // Renaming a table would otherwise change references to it.
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;")
        .map_err(wrong)?;
    let transaction = connection.transaction().map_err(wrong)?;
    let old = tables(&transaction).map_err(wrong)?;
    for name in &old {
        let rename = format!("ALTER TABLE {name} RENAME TO old_{name}");
        transaction.execute_batch(&rename).map_err(wrong)?;
    }
    transaction
        .execute_batch(&format!("DROP INDEX sample_once; {}", *schema::CREATE))
        .map_err(wrong)?;
    write(&transaction, path, record)?;
    copy(&transaction, &LATENCY).map_err(wrong)?;
    copy(&transaction, &SERIES).map_err(wrong)?;
    if old.iter().any(|name| name == LATENCY_OVER_TIME.name) {
        copy(&transaction, &LATENCY_OVER_TIME).map_err(wrong)?;
    }
    for name in &old {
        let drop = format!("DROP TABLE old_{name}");
        transaction.execute_batch(&drop).map_err(wrong)?;
    }
    transaction
        .execute_batch(&format!("PRAGMA user_version = {SCHEMA_VERSION}"))
        .map_err(wrong)?;
    // Anything else in the file is foreign; such a file is not written.
    sqlite_protection::check_ours(&transaction, path)?;
    transaction.commit().map_err(wrong)?;
    connection
        .execute_batch("PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON;")
        .and_then(|()| sqlite_protection::distrust(connection))
        .map_err(wrong)
}

/// The tables of this version in the file.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let all = sqlite_protection::names(connection, sqlite_protection::TABLE_NAMES)?.into_iter();
    Ok(all.filter(|name| schema::is_ours(name)).collect())
}

/// Writes everything that a record contains completely.
fn write(connection: &Connection, path: &Path, record: &RunRecord) -> Result<()> {
    let (run, experiment) = (&record.run, &record.experiment);
    write_plan(
        connection, path, run, &record.environment, experiment, &record.cells,
    )?;
    all(connection, path, &ENVIRONMENT, &record.further_hosts)?;
    all(connection, path, &TARGET, &record.further_targets)?;
    all(connection, path, &RANK, &record.ranks)?;
    all(connection, path, &SAMPLE, &record.samples)?;
    all(connection, path, &GROUP_SAMPLE, &record.group_samples)?;
    all(connection, path, &CLIENT_SAMPLE, &record.client_samples)?;
    all(connection, path, &PART, &record.parts)?;
    for step in &record.preparation {
        rows::insert(connection, path, &PREPARATION, step, false)?;
    }
    for event in &record.events {
        rows::insert(connection, path, &EVENT, event, false)?;
    }
    Ok(())
}

fn all<T>(connection: &Connection, path: &Path, table: &Table<T>, rows: &[T]) -> Result<()> {
    for row in rows {
        rows::insert(connection, path, table, row, true)?;
    }
    Ok(())
}

/// Copies the rows of an old table that a record lacks or has in part, with the columns that exist.
fn copy<T>(connection: &Connection, table: &Table<T>) -> rusqlite::Result<()> {
    let old = format!("old_{}", table.name);
    let had: Vec<String> = connection
        .prepare("SELECT name FROM pragma_table_info(?)")?
        .query_map([&old], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let names = table.stored().map(|column| column.name);
    let names: Vec<&str> = names
        .filter(|name| had.iter().any(|had| had == name))
        .collect();
    let (name, names) = (table.name, names.join(", "));
    connection.execute_batch(&format!(
        "INSERT INTO {name} ({names}) SELECT {names} FROM {old}"
    ))
}
