//! A run file may be a stranger's: nothing in it is executed, and no more of it is taken in than memory bears.
//!
//! After "Defense Against The Dark Arts" of SQLite's documentation (<https://sqlite.org/security.html>).

use std::path::Path;

use iolab_spec::{Error, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use super::fault::{damaged, fault};
use super::schema;

/// Longest value, bytes; a definition is below 1 MiB, a histogram below 400 KiB.
const VALUE_MAX: i32 = 4 << 20;

/// Lets a connection run our statements only, on values of a bounded size.
pub(super) fn restrain(connection: &Connection) -> rusqlite::Result<()> {
    for (config, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(config, on)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_MAX)?;
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;")
}

/// Refuses a file that holds anything but plain tables and indexes: a view, a trigger, a virtual table and a generated
/// column are SQL that reading or writing the file would run.
///
/// # Errors
/// Of kind refused: it holds one, with its name.
pub(super) fn check_plain(connection: &Connection, path: &Path) -> Result<()> {
    // The text decides what SQLite makes of an entry; the type beside it may lie. SQLite stores the first words so.
    let active = "SELECT name FROM sqlite_schema WHERE NOT
        (type = 'table' AND sql LIKE 'CREATE TABLE %'
         OR type = 'index' AND (sql IS NULL OR sql LIKE 'CREATE INDEX %' OR sql LIKE 'CREATE UNIQUE INDEX %'))";
    let generated = "SELECT kept.name || '.' || held.name
        FROM sqlite_schema AS kept, pragma_table_xinfo(kept.name) AS held
        WHERE kept.type = 'table' AND held.hidden <> 0";
    for sql in [active, generated] {
        let found = connection
            .prepare(sql)
            .and_then(|mut statement| {
                let mut rows = statement.query([])?;
                rows.next()?.map(|row| row.get::<_, String>(0)).transpose()
            })
            .map_err(|error| fault(path, &error))?;
        if let Some(name) = found {
            return Err(not_plain(path, &name));
        }
    }
    Ok(())
}

/// Refuses to write a file whose tables are not exactly ours: what stands in a definition (checks, defaults) is run by
/// each write.
///
/// # Errors
/// Of kind usage: they differ.
pub(super) fn check_ours(connection: &Connection, path: &Path) -> Result<()> {
    let wrong = |error| fault(path, &error);
    let ours = Connection::open_in_memory().map_err(wrong)?;
    ours.execute_batch(&schema::CREATE).map_err(wrong)?;
    if definitions(connection).map_err(wrong)? == definitions(&ours).map_err(wrong)? {
        return Ok(());
    }
    Err(damaged(
        path,
        "its tables are not the ones that this iolab makes",
    ))
}

type Definition = (String, String, Option<String>);

fn definitions(connection: &Connection) -> rusqlite::Result<Vec<Definition>> {
    connection
        .prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name, type LIMIT 100")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

fn not_plain(path: &Path, name: &str) -> Error {
    let name: String = name.chars().take(60).collect();
    Error::refused(format!(
        "{} holds {name:?}, which is not a plain table: opening it would run SQL of its author",
        path.display()
    ))
    .hint("iolab writes plain tables only; if the view or trigger is your own, drop it with sqlite3, or keep it elsewhere")
}
