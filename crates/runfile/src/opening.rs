//! Opens a run file that may come from anywhere: checks what it is before reading from it.

use std::fs::File;
use std::io::Read;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};

use iolab_plan::read_user_file;
use iolab_record::SCHEMA_VERSION;
use iolab_workload::{Error, Result};
use rusqlite::{Connection, OpenFlags, Transaction};

use super::error::{damaged, fault, file_fault, is_unopenable, not_a_run_file, of_another_version};
use super::system::{identity, name_count};
use super::{schema, sqlite_protection};

/// Files of this size, bytes, are checked by a thread of its own while they are read; smaller ones are checked before that thread would
/// have opened them.
pub(super) const CHECKED_BESIDE: u64 = 8 << 20;
/// A reading connection looks after so many instructions of SQLite whether its file has turned out to be damaged.
const INSTRUCTIONS: i32 = 100_000;

/// Opens the file.
pub(super) fn open_to_read(path: &Path) -> Result<Connection> {
    let connection = opened(path)?;
    check_identity(&connection, path)?;
    Ok(connection)
}

/// Gives a function the file, and returns what it has read.
///
/// The pages of a large file are checked at the same time. Damage to them ends the reading: a page that is referred to more than once could
/// lead through more rows than a file of this size has.
pub(super) fn read_checked<T>(
    path: &Path,
    read: impl FnOnce(&Connection, Option<FileIdentity>) -> Result<T>,
) -> Result<T> {
    let file = FileIdentity::of(path);
    let mut connection = opened(path)?;
    check_kind(&connection, path)?;
    let is_damaged = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_damaged);
    connection
        .progress_handler(INSTRUCTIONS, Some(move || ends.load(Ordering::Relaxed)))
        .map_err(|error| fault(path, &error))?;
    // Held before the other thread opens the file: SQLite gives a process that reads a file its lock again, whoever waits to write it.
    let _snapshot = snapshot(&connection, path)?;
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let other = file
        .filter(|_| bytes >= CHECKED_BESIDE)
        .and_then(|file| file.opened_again(path));
    thread::scope(|scope| {
        let is_damaged = &is_damaged;
        let check = |other: Connection| {
            let check = move || {
                let checked = check_pages(&other, path);
                is_damaged.store(checked.is_err(), Ordering::Relaxed);
                checked
            };
            Builder::new().spawn_scoped(scope, check).ok()
        };
        let Some(check) = other.and_then(check) else {
            check_pages(&connection, path)?;
            return read(&connection, file);
        };
        let content = read(&connection, file);
        // Damage is the reason for whatever else is wrong.
        check.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        content
    })
}

/// Which file was opened, whatever has its name by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity((u64, u64));

impl FileIdentity {
    /// That of a file which is about to be opened; `None` where the system does not tell.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        identity(&metadata).map(Self)
    }

    /// A further connection to it; `None` where there can be none, or the path leads to another file by now.
    pub(super) fn opened_again(self, path: &Path) -> Option<Connection> {
        let connection = opened(path).ok()?;
        (Self::of(path) == Some(self)).then_some(connection)
    }
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
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(look);
    let connection = match opened {
        // In WAL mode SQLite needs further files. Where it cannot create them, and no transaction is in one, this file alone is
        // complete.
        Err(error) if is_unopenable(&error) && !has_wal(path) => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags).and_then(look)
        }
        other => other,
    };
    connection.map_err(|error| fault(path, &error))
}

/// SQLite opens files lazily: only a first read shows whether the file is readable.
fn look(mut connection: Connection) -> rusqlite::Result<Connection> {
    sqlite_protection::restrain(&connection)?;
    sqlite_protection::distrust(&mut connection)?;
    connection.query_row(SCHEMA_SIZE, [], |_| Ok(()))?;
    Ok(connection)
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
    check_kind(connection, path)?;
    check_pages(connection, path)
}

/// Checks that the file is a run file of this schema version, as long as it should be, and with nothing that would run.
fn check_kind(connection: &Connection, path: &Path) -> Result<()> {
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
    let stated = pragma("page_count")?.saturating_mul(pragma("page_size")?);
    let found = std::fs::metadata(path).map_err(|error| file_fault(path, "read", &error))?;
    if !has_wal(path) && i64::try_from(found.len()).is_ok_and(|length| length < stated) {
        let what = format!("it has {} bytes and should have {stated}", found.len());
        return Err(damaged(path, what));
    }
    sqlite_protection::check_plain(connection, path)
}

/// Checks that all pages and rows are as SQLite writes them. What the tables say of values is left out: each value is checked where it is
/// read, and tables of a foreign file can say anything.
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

/// Suffixes of files that SQLite keeps next to a database: its log, the journal and the index of the log.
pub(super) const SIDE_FILES: [&str; 3] = ["-wal", "-journal", "-shm"];

/// Refuses files next to a run file that SQLite did not write: it opens, changes and removes them by name only.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the name of the file.
pub(super) fn check_side_files(path: &Path) -> Result<()> {
    for ending in SIDE_FILES {
        let name = beside(path, ending);
        let Ok(there) = name.symlink_metadata() else {
            continue;
        };
        if !there.is_file() || name_count(&there) > 1 || !is_sqlites(&name, ending) {
            return Err(Error::refused(format!(
                "{} is no remainder of {}, and would be taken for a part of it",
                name.display(),
                path.display()
            ))
            .hint("move one of the two to another name"));
        }
    }
    Ok(())
}

/// Whether a file next to a database begins like SQLite's, or with zeros, which a power failure leaves.
fn is_sqlites(name: &Path, ending: &str) -> bool {
    // https://sqlite.org/fileformat2.html, sections 3 and 4; https://sqlite.org/walformat.html, section 2.
    const WAL: [u8; 3] = [0x37, 0x7f, 0x06];
    const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SHARED: u32 = 3_007_000;
    let mut first = Vec::new();
    let read = File::open(name).and_then(|file| file.take(8).read_to_end(&mut first));
    let begins = match ending {
        "-wal" => first.starts_with(&WAL),
        "-journal" => first.starts_with(&JOURNAL),
        _ => first.starts_with(&SHARED.to_ne_bytes()),
    };
    // An unreadable file is not writable either; SQLite reports it.
    read.is_err() || begins || first.iter().all(|byte| *byte == 0)
}

/// The path of a file that SQLite keeps next to a run file.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn has_wal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}

/// A `file:` URI (RFC 3986: all but unreserved bytes are escaped) with `immutable`.
pub(super) fn immutable_uri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    immutable_uri_of(absolute.as_os_str().as_encoded_bytes())
}

/// The same for the bytes of an absolute path of this system or of Windows.
fn immutable_uri_of(path: &[u8]) -> String {
    let is_share = path.starts_with(br"\\");
    // A path of Windows begins with a drive or a server, which would stand for a host there.
    let mut uri = match path.first() {
        Some(b'/' | b'\\') => "file://".to_owned(),
        _ => "file:///".to_owned(),
    };
    for byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else if is_share && *byte == b'\\' {
            uri.push('/');
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri.push_str("?immutable=1");
    uri
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

#[cfg(test)]
mod tests {
    use super::immutable_uri_of;

    #[test]
    fn a_server_of_windows_is_part_of_the_path_and_no_host() {
        for (path, uri) in [
            (&b"/a b/f"[..], "file:///a%20b/f?immutable=1"),
            (br"C:\a\f", "file:///C%3A%5Ca%5Cf?immutable=1"),
            (br"\\server\share\f", "file:////server/share/f?immutable=1"),
        ] {
            assert_eq!(immutable_uri_of(path), uri);
        }
    }
}
