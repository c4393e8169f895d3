//! Converts errors of SQLite to messages about run files.

use std::io::ErrorKind;
use std::path::Path;

use iolab_record::SCHEMA_VERSION;
use iolab_workload::{Error, Kind};
use rusqlite::ErrorCode;

use crate::system::limits_file_size;

/// Extended result code of a read beyond the end of the file.
const SHORT_READ: i32 = rusqlite::ffi::SQLITE_IOERR_SHORT_READ;

/// The error for a run file whose log remains next to it.
pub(super) fn not_merged(path: &Path, error: &rusqlite::Error) -> Error {
    let place = path.display();
    let lacks_room = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    let why = match lacks_room {
        true => String::new(),
        false => format!(" ({})", fault(path, error).message()),
    };
    Error::failed(format!(
        "{place} is complete only together with {place}-wal: merging them failed{why}"
    ))
    .hint("keep both files together; free space there, or mend its file system (dmesg)")
}

/// The error for a failed operation on the run file at `path`.
pub(super) fn fault(path: &Path, error: &rusqlite::Error) -> Error {
    let place = path.display();
    let rusqlite::Error::SqliteFailure(failure, detail) = error else {
        return damaged(path, error);
    };
    let detail = detail.as_deref().unwrap_or("no details");
    match failure.code {
        ErrorCode::NotADatabase => not_a_run_file(path),
        ErrorCode::DatabaseCorrupt => damaged(path, detail),
        _ if failure.extended_code == SHORT_READ => damaged(path, detail),
        ErrorCode::DiskFull => Error::failed(format!("no space left to write {place}"))
            .hint("free some space there, or name a run file elsewhere with -o"),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            Error::refused(format!("another program holds {place}"))
                .hint("wait until it has finished, or close it")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            Error::usage(format!("cannot open {place}: {detail}"))
                .hint("check the permissions of the file and its folder, or work on a copy; when few files may be open, raise `ulimit -n`")
        }
        ErrorCode::SystemIoFailure => {
            // SQLite does not say with which error a call failed.
            let failed = Error::failed(format!("I/O on {place} failed: {detail}"));
            failed.hint(match limits_file_size() {
                true => "raise `ulimit -f`, which limits the size of files here, or check the file system of the run file (dmesg)",
                false => "check the file system of the run file (dmesg)",
            })
        }
        ErrorCode::TooBig => too_large(path, format!("a value in it is too long ({detail})")),
        // SQLite reports a missing table or column with the general code.
        ErrorCode::Unknown => damaged(path, detail),
        _ => Error::failed(format!("{place}: {detail}"))
            .hint("check the run file with: sqlite3 FILE 'PRAGMA integrity_check'"),
    }
}

/// The error for a file that is not SQLite's, or another program's.
pub(super) fn not_a_run_file(path: &Path) -> Error {
    Error::usage(format!("{} is not a run file of iolab", path.display()))
        .hint("give a file that 'iolab run' or 'iolab study' made (NAME.iolab)")
}

/// The error for a file of what a command saw if trials are needed.
pub(super) fn no_trials(path: &Path, command: &str) -> Error {
    let place = path.display();
    Error::usage(format!(
        "{place} holds what 'iolab {command}' saw, and no trials"
    ))
    .hint("iolab table, report, plot and show read it")
}

/// The error for a run file with missing or invalid content.
pub(super) fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::usage(format!(
        "{} is damaged or cut short: {what}",
        path.display()
    ))
    .hint("take an undamaged copy; sqlite3's .recover command may save the rest")
}

/// The error for an invalid value in a file that SQLite can read.
pub fn invalid(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::usage(format!(
        "{} holds a value that iolab cannot read: {what}",
        path.display()
    ))
    .hint("take a copy that has not changed since iolab wrote it")
}

/// The error for a file that was intact when it was opened and is not while it is written: its storage has failed.
pub(super) fn while_writing(error: Error) -> Error {
    match error.kind() {
        Kind::Usage => Error::failed(format!("the run file failed: {}", error.message()))
            .hint("check its file system (dmesg)"),
        _ => error,
    }
}

/// The error for content that exceeds a limit of memory.
pub(super) fn too_large(path: &Path, what: String) -> Error {
    Error::refused(format!("{} is too large: {what}", path.display()))
        .hint("split the work over several runs; if you trust the author of the file, sqlite3 reads it too")
}

/// The error for a file of another schema version.
pub(super) fn of_another_version(path: &Path, version: i64) -> Error {
    let (age, remedy) = match version > SCHEMA_VERSION {
        true => ("a newer", "update iolab"),
        false => (
            "an older",
            "measure again; the iolab that wrote it, or sqlite3, still reads the file",
        ),
    };
    Error::usage(format!(
        "{} was written by {age} iolab (schema {version}, this one knows {SCHEMA_VERSION})",
        path.display()
    ))
    .hint(remedy)
}

/// The error for a failed operation of the file system.
pub(super) fn file_fault(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    let message = format!("cannot {doing} {}: {error}", path.display());
    let failed = match error.kind() {
        ErrorKind::AlreadyExists => Error::refused(format!("{} exists already", path.display())),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::failed(message),
        _ => Error::usage(message),
    };
    failed.hint(match (error.kind(), doing) {
        (ErrorKind::AlreadyExists, _) => "results are never overwritten: name another file with -o",
        (ErrorKind::NotFound, "create") => "its folder does not exist: create it, or name another",
        (ErrorKind::NotFound, _) => "check the path; run files end in .iolab",
        (ErrorKind::InvalidFilename, _) => "name a file with a shorter name or path with -o",
        (ErrorKind::PermissionDenied, "create") => {
            "check the permissions there, or name another folder with -o"
        }
        _ => "check the permissions and the free space there",
    })
}
