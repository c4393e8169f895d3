//! Reads files that a user named. Opens regular files with content only: reading a FIFO, a terminal or a file of procfs may
//! block, or consume data meant for another process.

use std::fs::{File, Metadata};
use std::io::{self, Read, Take};
use std::path::Path;

use iolab_workload::escape_control::shell_path;
use iolab_workload::units::format_bytes;
use iolab_workload::{Error, Result};

/// First bytes of a run file, which is an SQLite database.
const RUN_FILE: &[u8; 16] = b"SQLite format 3\0";

/// Reads a file of at most `most` bytes; `hint` says in errors what to name instead.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): not a regular file with content, too large, or unreadable.
pub fn bytes(path: &Path, most: u64, hint: &str) -> Result<Vec<u8>> {
    let place = path.display();
    let unreadable = |error: io::Error| format!("cannot read {place}: {error}");
    let read = || {
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        check(&metadata, path)?;
        if metadata.len() > most {
            return Err(format!(
                "{place} is larger than {}",
                format_bytes(most as f64)
            ));
        }
        let mut bytes = Vec::new();
        let mut file = open(path, &metadata).map_err(unreadable)?;
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    };
    read().map_err(|why| Error::usage(why).hint(hint))
}

/// Reads a text file; see [`bytes`].
///
/// # Errors
///
/// Errors of [`bytes`], and text that is not UTF-8.
pub fn text(path: &Path, most: u64, hint: &str) -> Result<String> {
    if is_run_file(path) == Some(true) {
        let fault = format!("{} is a run file, not a definition", path.display());
        let words = shell_path(path);
        return Err(Error::usage(fault).hint(format!(
            "'iolab show {words} > again.toml' writes the definition that repeats it"
        )));
    }
    String::from_utf8(bytes(path, most, hint)?).map_err(|_| {
        Error::usage(format!("{} is not UTF-8 text", path.display())).hint("save it in UTF-8")
    })
}

/// Whether a file begins as a run file; `None` if it cannot be read.
fn is_run_file(path: &Path) -> Option<bool> {
    let metadata = std::fs::metadata(path).ok()?;
    check(&metadata, path).ok()?;
    let mut first = [0; RUN_FILE.len()];
    open(path, &metadata).ok()?.read_exact(&mut first).ok()?;
    Some(first == *RUN_FILE)
}

/// Checks that this is a regular file with content.
///
/// # Errors
///
/// The reason as a sentence.
pub fn check(metadata: &Metadata, path: &Path) -> std::result::Result<(), String> {
    let place = path.display();
    match (metadata.is_file(), metadata.len()) {
        (false, _) => Err(format!("{place} is not a regular file")),
        (true, 0) if is_of_kernel(path) => Err(format!("{place} is not on storage")),
        (true, 0) => Err(format!("{place} is empty")),
        (true, _) => Ok(()),
    }
}

/// Whether it is a file of procfs or sysfs, whose length is 0 or means nothing.
fn is_of_kernel(path: &Path) -> bool {
    let whole = path.canonicalize().unwrap_or_default();
    ["/proc", "/sys"].iter().any(|of| whole.starts_with(of))
}

/// Opens the file for reading up to the length in `metadata`.
///
/// # Errors
///
/// Errors of open(2).
pub fn open(path: &Path, metadata: &Metadata) -> io::Result<Take<File>> {
    Ok(File::open(path)?.take(metadata.len()))
}
