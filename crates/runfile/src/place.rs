//! Where a run file lies: whether one could be written there, and whether it is still there.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iolab_spec::{Error, Result};
use rusqlite::Connection;

use super::RunFile;
use super::create::{self, NewFile};
use super::fault::{fault, file_fault};
use super::opening::{beside, check_length};

/// Bytes that a place must have room for: a file with the plan of a small run, and its log.
const ROOM: usize = 256 << 10;

/// Checks that a run file can be made and written at a place, by making one there and removing it.
///
/// # Errors
/// Why it cannot; of kind refused when the name is taken.
pub fn check_place(place: NewFile<'_>) -> Result<()> {
    let path = place.name(1);
    check_length(&path)?;
    if let NewFile::At(path) = place {
        create::check_free(path)?;
    }
    // A name longer than the file system takes is found by looking for it.
    match beside(&path, "-journal").symlink_metadata() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_fault(&path, "create", &error));
        }
        _ => {}
    }
    let name = format!(".iolab-probe-{}", std::process::id());
    let probe = NewFile::In {
        folder: place.folder(),
        name: &name,
    };
    let (made, file) = create::create_named_after(probe, &[], &path)?;
    let written = write_probe(&made, file, &path);
    remove(&made);
    written
}

fn write_probe(made: &Path, file: File, path: &Path) -> Result<()> {
    let mut probe = RunFile::locked(made, file)?;
    // For the messages.
    probe.path = path.to_owned();
    probe.enter_wal()?;
    probe.execute(&format!(
        "CREATE TABLE probe (content); INSERT INTO probe VALUES (zeroblob({ROOM}));"
    ))
}

/// Removes a file that this process made, with everything that SQLite put beside it.
pub(super) fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(beside(path, suffix));
    }
}

/// Whether a name leads to an open file; `None` where that cannot be told.
pub(super) fn leads_to(path: &Path, file: &File) -> Option<bool> {
    let held = file.metadata().ok()?;
    match path.metadata() {
        Ok(named) => Some((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Some(false),
            _ => None,
        },
    }
}

/// Writes what a connection sees of a run file to a new one: beside the place that it had, else in the working directory,
/// else among the temporary files.
///
/// # Errors
/// When it cannot be written anywhere.
pub(super) fn save(connection: &mut Connection, path: &Path) -> Result<(PathBuf, File)> {
    let wrong = |error| fault(path, &error);
    let content = connection.serialize("main").map_err(wrong)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-saved");
    let temporary = std::env::temp_dir();
    let beside = NewFile::At(path);
    let folders = [beside.folder(), Path::new("."), &temporary];
    let mut result = Err(Error::failed("nowhere to save it"));
    for folder in folders {
        let place = NewFile::In {
            folder,
            name: &name,
        };
        result = create::create(place, &content);
        if result.is_ok() {
            break;
        }
    }
    result
}
