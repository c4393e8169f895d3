//! Opens a run file of unknown origin: checks its kind before reading from it.

use std::io;
use std::path::Path;
use std::str::from_utf8;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Transaction};

use super::error::{damaged, fault, file_fault, not_a_run_file, of_another_version, too_large};
use super::rows::VALUE_MAX;
use super::system::{check_side_files, folder_of, has_wal};
use super::{layout, logged};
use iolab_plan::read_user_file;
use iolab_record::SCHEMA_VERSION;
use iolab_workload::{Error, Result};

/// Opens the file, and checks it.
pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let connection = opened(path)?;
    check_identity(&connection, path)?;
    Ok(connection)
}

/// Opens the file for `read`, which sees the state that is checked before.
pub(super) fn read_checked<T>(
    path: &Path,
    read: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    let connection = opened(path)?;
    let _snapshot = snapshot(&connection, path)?;
    check_identity(&connection, path)?;
    read(&connection)
}

/// A consistent state of the file, of a run that goes on too, and one lock for all queries until it is dropped.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn snapshot<'a>(connection: &'a Connection, path: &Path) -> Result<Transaction<'a>> {
    let begun = connection.unchecked_transaction();
    // SQLite takes the lock with the first page that it reads.
    let look =
        |begun: Transaction<'a>| begun.query_row(SCHEMA_SIZE, [], |_| Ok(())).map(|()| begun);
    begun.and_then(look).map_err(|error| fault(path, &error))
}

/// A query that reads a little of any file.
const SCHEMA_SIZE: &str = "SELECT count(*) FROM sqlite_schema";

/// Opens the file, which may be anything.
fn opened(path: &Path) -> Result<Connection> {
    check_regular(path)?;
    check_side_files(path)?;
    let mut connection = match logged::has_log(path) {
        true => in_memory(path)?,
        false => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let opened = Connection::open_with_flags(path, flags);
            opened.map_err(|error| fault(path, &error))?
        }
    };
    restrain(&connection).map_err(|error| fault(path, &error))?;
    // SQLite opens files lazily: only this reads the first page.
    distrust(&mut connection, path)?;
    Ok(connection)
}

/// The state of a file with a log, after the last transaction.
fn in_memory(path: &Path) -> Result<Connection> {
    let bytes = logged::merged(path).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            too_large(path, "it has a log, and is larger than 1 GiB".to_owned())
        }
        io::ErrorKind::InvalidData => damaged(path, error),
        _ => file_fault(path, "read", &error),
    })?;
    let opened = Connection::open_in_memory().and_then(|mut connection| {
        connection.deserialize_read_exact("main", &bytes[..], bytes.len(), true)?;
        Ok(connection)
    });
    opened.map_err(|error| fault(path, &error))
}

/// Checks that a path leads to a regular file.
pub(super) fn check_regular(path: &Path) -> Result<()> {
    check_length(path)?;
    let metadata = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    read_user_file::check(&metadata, path)
        .map_err(|why| Error::usage(why).hint("give a run file, NAME.iolab"))
}

/// Checks that the file is a run file of this schema version, complete, undamaged, and with nothing that would run.
pub(super) fn check_identity(connection: &Connection, path: &Path) -> Result<()> {
    let pragma = |name: &str| -> Result<i64> {
        connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .map_err(|error| fault(path, &error))
    };
    if pragma("application_id")? != layout::APPLICATION_ID {
        return Err(not_a_run_file(path));
    }
    let version = pragma("user_version")?;
    if version != SCHEMA_VERSION {
        return Err(of_another_version(path, version));
    }
    // SQLite would read the missing part of a last page as zeros.
    let stated = pragma("page_count")?.saturating_mul(pragma("page_size")?);
    let found = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    if !has_wal(path) && i64::try_from(found.len()).is_ok_and(|length| length < stated) {
        let what = format!("it has {} bytes and should have {stated}", found.len());
        return Err(damaged(path, what));
    }
    check_plain(connection, path)?;
    check_pages(connection, path)
}

/// Checks that all pages and rows are as SQLite writes them. The constraints of the tables are not checked: each value is
/// checked when it is read, and tables of a foreign file can have any constraints.
fn check_pages(connection: &Connection, path: &Path) -> Result<()> {
    let ignore = |on| connection.pragma_update(None, "ignore_check_constraints", on);
    let verdict: String = ignore(true)
        .and_then(|()| connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))
        .map_err(|error| fault(path, &error))?;
    if verdict != "ok" {
        return Err(damaged(path, verdict));
    }
    ignore(false).map_err(|error| fault(path, &error))
}

/// Longest path that SQLite opens, bytes: 512 (`MAX_PATHNAME` of its `os_unix.c`) less the longest ending that it adds.
const PATH_MAX: usize = 512 - "-journal".len();

/// Refuses a path that SQLite would not open.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the path is too long.
pub(super) fn check_length(path: &Path) -> Result<()> {
    // Resolves links first, like SQLite.
    let whole = match (folder_of(path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    };
    let length = whole.as_os_str().as_encoded_bytes().len();
    if length <= PATH_MAX {
        return Ok(());
    }
    Err(Error::usage(format!(
        "the path of the run file {} has {length} bytes, and SQLite opens paths of up to {PATH_MAX} bytes",
        path.display()
    ))
    .hint("keep run files at a shorter path; name one with -o"))
}

/// Restricts a connection to our statements, and to values of limited size.
pub(crate) fn restrain(connection: &Connection) -> rusqlite::Result<()> {
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
pub(crate) fn distrust(connection: &mut Connection, path: &Path) -> Result<()> {
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
    let authorizer = |step: AuthContext<'_>| match is_needed(&step) {
        true => Authorization::Allow,
        false => Authorization::Deny,
    };
    connection.authorizer(Some(authorizer)).map_err(wrong)
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
fn check_plain(connection: &Connection, path: &Path) -> Result<()> {
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

pub(crate) const TABLE_NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";

pub(crate) fn names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Refuses to write a file whose tables differ from ours, since each write runs the checks and defaults in their definitions.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): they differ.
pub(crate) fn check_ours(connection: &Connection, path: &Path) -> Result<()> {
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
