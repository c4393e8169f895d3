//! Protection against run files from elsewhere: nothing in them is executed, and memory is bounded. All checks are made at run
//! time, whatever features the SQLite library has. There are three:
//!
//! 1. [`restrain`]: neither triggers nor views run, and a definition may not call functions with side effects.
//! 2. [`distrust`]: a statement that needs more than a run file does is not compiled. Virtual tables cannot be created, and those
//!    that keep their content in other tables (FTS, R-trees) cannot be opened.
//! 3. [`check_plain`]: a file with anything but plain tables is refused before any of its tables is read.
//!
//! After "Defense Against The Dark Arts" of SQLite's documentation (<https://sqlite.org/security.html>).

use std::path::Path;
use std::str::from_utf8;

use iolab_workload::{Error, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::error::{damaged, fault};
use super::layout;

/// Longest value, bytes; a definition has less than 1 MiB, a histogram less than 400 KiB.
const VALUE_MAX: i32 = 4 << 20;

/// Restricts a connection to our statements, and to values of limited size.
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

/// Pragmas that this crate uses.
const PRAGMAS: [&str; 12] = [
    "application_id", "cell_size_check", "foreign_keys", "ignore_check_constraints",
    "journal_mode", "page_count", "page_size", "quick_check", "synchronous", "table_xinfo",
    "user_version", "wal_checkpoint",
];

/// Functions that its statements call; `like` is the operator LIKE.
const FUNCTIONS: [&str; 2] = ["count", "like"];

/// Installs an authorizer for an existing file. It permits the operations that a run file needs: reading and writing its
/// tables, and the pragmas and functions of this crate. Everything else fails with "not authorized": other tables, virtual
/// ones and their content, all work of views and triggers, attached files, and changes of definitions.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a definition is not UTF-8, for which the authorizer panics; the file
/// cannot be read.
pub(super) fn distrust(connection: &mut Connection, path: &Path) -> Result<()> {
    let wrong = |error| fault(path, &error);
    let definitions = "SELECT type, name, tbl_name, sql FROM sqlite_schema";
    let mut statement = connection.prepare(definitions).map_err(wrong)?;
    let mut rows = statement.query([]).map_err(wrong)?;
    while let Some(row) = rows.next().map_err(wrong)? {
        for column in 0..4 {
            let value = row.get_ref(column).map_err(wrong)?;
            if value.as_bytes().is_ok_and(|text| from_utf8(text).is_err()) {
                return Err(damaged(path, "a definition in it is not UTF-8 text"));
            }
        }
    }
    drop(rows);
    drop(statement);
    install(connection).map_err(wrong)
}

fn install(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(Some(|step: AuthContext<'_>| match is_needed(&step) {
        true => Authorization::Allow,
        false => Authorization::Deny,
    }))
}

fn is_needed(step: &AuthContext<'_>) -> bool {
    // SQLite names the view or trigger on whose behalf it acts.
    if step.accessor.is_some() {
        return false;
    }
    match step.action {
        AuthAction::Select | AuthAction::Transaction { .. } => true,
        AuthAction::Read { table_name, .. } => {
            layout::is_ours(table_name) || ["sqlite_schema", "sqlite_master"].contains(&table_name)
        }
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => layout::is_ours(table_name),
        AuthAction::Pragma { pragma_name, .. } => PRAGMAS.contains(&pragma_name),
        AuthAction::Function { function_name } => FUNCTIONS.contains(&function_name),
        _ => false,
    }
}

/// Refuses a file with anything but plain tables and indexes: views, triggers, virtual tables and generated columns are SQL that
/// reading or writing the file would run.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the name of the entry.
pub(super) fn check_plain(connection: &Connection, path: &Path) -> Result<()> {
    let wrong = |error| fault(path, &error);
    // Looks at the text, from which SQLite makes the entry, since the type next to it may be wrong. SQLite normalises the first
    // words.
    let active = "SELECT name FROM sqlite_schema WHERE NOT
        (type = 'table' AND sql LIKE 'CREATE TABLE %'
         OR type = 'index' AND (sql IS NULL OR sql LIKE 'CREATE INDEX %' OR sql LIKE 'CREATE UNIQUE INDEX %')) LIMIT 1";
    if let Some(name) = names(connection, active).map_err(wrong)?.first() {
        return Err(not_plain(path, name));
    }
    for table in names(connection, TABLE_NAMES).map_err(wrong)? {
        let mut generated = None;
        connection
            .pragma(None, "table_xinfo", &table, |column| {
                if column.get::<_, i64>("hidden")? != 0 {
                    generated = Some(column.get::<_, String>("name")?);
                }
                Ok(())
            })
            .map_err(wrong)?;
        if let Some(column) = generated {
            return Err(not_plain(path, &format!("{table}.{column}")));
        }
    }
    Ok(())
}

pub(super) const TABLE_NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";

pub(super) fn names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Refuses to write a file whose tables differ from ours, since each write runs the checks and defaults in their definitions.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): they differ.
pub(super) fn check_ours(connection: &Connection, path: &Path) -> Result<()> {
    let wrong = |error| fault(path, &error);
    let ours = layout::in_memory().map_err(wrong)?;
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
