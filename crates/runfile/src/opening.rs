//! Opens a run file of unknown origin: checks its kind before reading from it.

use std::io;
use std::path::Path;

use iolab_plan::read_user_file;
use iolab_record::SCHEMA_VERSION;
use iolab_workload::{Error, Result};
use rusqlite::{Connection, OpenFlags, Transaction};

use super::error::{damaged, fault, file_fault, not_a_run_file, of_another_version, too_large};
use super::side_files::{check_side_files, has_wal};
use super::{logged, schema, sqlite_protection};

/// Opens the file.
pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let connection = opened(path)?;
    check_identity(&connection, path)?;
    Ok(connection)
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
    sqlite_protection::restrain(&connection).map_err(|error| fault(path, &error))?;
    // SQLite opens files lazily: only this reads the first page.
    sqlite_protection::distrust(&mut connection, path)?;
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

/// Checks that the file is a complete run file of this schema version.
pub(super) fn check_identity(connection: &Connection, path: &Path) -> Result<()> {
    let pages = check_kind(connection, path)?;
    check_pages(connection, path, pages)
}

/// Checks that the file is a run file of this schema version, as long as it should be, and with nothing that would run. Returns the
/// number of its pages.
fn check_kind(connection: &Connection, path: &Path) -> Result<i64> {
    let pragma = |name: &str| -> Result<i64> {
        connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .map_err(|error| fault(path, &error))
    };
    if pragma("application_id")? != schema::APPLICATION_ID {
        return Err(not_a_run_file(path));
    }
    let version = pragma("user_version")?;
    if version != SCHEMA_VERSION {
        return Err(of_another_version(path, version));
    }
    // SQLite would read the missing part of a last page as zeros.
    let pages = pragma("page_count")?;
    let stated = pages.saturating_mul(pragma("page_size")?);
    let found = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    if !has_wal(path) && i64::try_from(found.len()).is_ok_and(|length| length < stated) {
        let what = format!("it has {} bytes and should have {stated}", found.len());
        return Err(damaged(path, what));
    }
    sqlite_protection::check_plain(connection, path)?;
    Ok(pages)
}

/// Checks that each page belongs to one place of one table: a page that is referred to more than once could lead through more
/// rows than a file of this size has. Each value is checked when it is read.
fn check_pages(connection: &Connection, path: &Path, pages: i64) -> Result<()> {
    let sql = "SELECT count(*), count(DISTINCT pageno) FROM (SELECT pageno FROM dbstat LIMIT ?)";
    let counts = connection.query_row(sql, [pages.saturating_add(1)], |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    let (found, distinct): (i64, i64) = counts.map_err(|error| fault(path, &error))?;
    match found == distinct {
        true => Ok(()),
        false => Err(damaged(path, "a page in it is referred to more than once")),
    }
}

/// Longest path that SQLite opens, bytes: 512 (`MAX_PATHNAME` of its `os_unix.c`) less the longest ending that it adds.
const PATH_MAX: usize = 512 - "-journal".len();

/// Refuses a path that SQLite would not open.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the path is too long.
pub(super) fn check_length(path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Resolves links first, like SQLite.
    let whole = match (folder.canonicalize(), path.file_name()) {
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
