//! A run file of schema version 4 is made one of this version before its run is taken up again: in one transaction, so
//! that it is either of the two whenever the process is killed.

use std::path::Path;

use iolab_spec::Result;
use rusqlite::Connection;

use super::fault::fault;
use super::{UPGRADED_FROM, before_5, guard, rows, schema, write_plan};
use iolab_record::tables::{EVENT, SAMPLE, SERIES};
use iolab_record::{RunRecord, SCHEMA_VERSION};

/// The tables of version 4; what refers to others first.
const TABLES: [&str; 8] = [
    "latency",
    "series",
    "event",
    "sample",
    "cell",
    "experiment",
    "environment",
    "run",
];

/// Makes a file of version 4, which `record` was read from, one of this version.
///
/// # Errors
/// When it cannot be written; it is as it was then.
pub(super) fn upgrade(connection: &mut Connection, path: &Path, record: &RunRecord) -> Result<()> {
    let wrong = |error| fault(path, &error);
    // Renaming a table would make other tables refer to the renamed one.
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON;")
        .map_err(wrong)?;
    let transaction = connection.transaction().map_err(wrong)?;
    for table in TABLES {
        let rename = format!("ALTER TABLE {table} RENAME TO old_{table}");
        transaction.execute_batch(&rename).map_err(wrong)?;
    }
    transaction
        .execute_batch(&format!("DROP INDEX sample_once; {}", *schema::CREATE))
        .map_err(wrong)?;
    write_plan(&transaction, path, record)?;
    for sample in &record.samples {
        rows::insert(&transaction, path, &SAMPLE, sample, true)?;
    }
    for event in &record.events {
        rows::insert(&transaction, path, &EVENT, event, false)?;
    }
    before_5::copy_latencies(&transaction).map_err(wrong)?;
    let kept = SERIES
        .stored()
        .filter(|column| column.since <= UPGRADED_FROM);
    let kept: Vec<&str> = kept.map(|column| column.name).collect();
    let kept = kept.join(", ");
    transaction
        .execute_batch(&format!(
            "INSERT INTO series ({kept}) SELECT {kept} FROM old_series"
        ))
        .map_err(wrong)?;
    for table in TABLES {
        let drop = format!("DROP TABLE old_{table}");
        transaction.execute_batch(&drop).map_err(wrong)?;
    }
    transaction
        .execute_batch(&format!("PRAGMA user_version = {SCHEMA_VERSION}"))
        .map_err(wrong)?;
    // What was in the file besides is a stranger's, and is not written to.
    guard::check_ours(&transaction, path)?;
    transaction.commit().map_err(wrong)?;
    connection
        .execute_batch("PRAGMA legacy_alter_table = OFF; PRAGMA foreign_keys = ON;")
        .map_err(wrong)
}
