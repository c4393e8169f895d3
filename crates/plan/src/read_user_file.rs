//! Reads files that a user named. Opens regular files with content only: reading a FIFO, a terminal or a file of procfs may
//! block, or consume data meant for another process.
//!
//! Definitions: the built-in ones, and TOML files.

use std::fs::{File, Metadata};
use std::io::{self, Read, Take};
use std::path::{Component, Path, PathBuf};

use iolab_workload::escape_control::shell_path;
use iolab_workload::names::{nearest, unknown};
use iolab_workload::settings::Setting;
use iolab_workload::units::format_bytes;
use iolab_workload::{Error, Result};

/// Largest definition that is read, bytes.
const FILE_MAX: u64 = 1 << 20;

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

/// Reads the definition of this name with `read`: a built-in one, or the TOML file at this path. `kind` names the kind of definition
/// in messages.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no such definition, with similar names; errors of `read`.
pub fn definition<T>(
    kind: &str,
    builtin: &[(&str, &str)],
    name: &str,
    read: impl FnOnce(&str) -> Result<T>,
) -> Result<T> {
    if let Some((_, text)) = builtin.iter().find(|(known, _)| *known == name) {
        return read(text);
    }
    let path = Path::new(name);
    if path.exists() || path.extension().is_some_and(|ext| ext == "toml") {
        return read(&read_text(path)?).map_err(|error| of_text(path, error));
    }
    let known: Vec<&str> = builtin.iter().map(|(known, _)| *known).collect();
    match Setting::change_named(name).filter(|_| nearest(name, &known).is_empty()) {
        Some(change) => Err(Error::usage(format!("{kind} '{name}' is unknown")).hint(format!(
            "it belongs to a setting, which any experiment takes: iolab run write-random --set {change}"
        ))),
        None => Err(unknown(kind, name, &known)),
    }
}

/// The file called `name` in `folder` or below it. The restriction keeps a foreign experiment file from making iolab read
/// and show files elsewhere.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the name leads out of the folder, by `..`, as an absolute path or through a
/// link; or there is no such file.
pub fn beside(folder: &Path, name: &str) -> Result<PathBuf> {
    let outside = || {
        Error::usage(format!(
            "{name} is outside of the folder of the file that names it"
        ))
        .hint("put it into that folder or below it")
    };
    let mut depth = 0_usize;
    for component in Path::new(name).components() {
        depth = match component {
            Component::Normal(_) => depth + 1,
            Component::CurDir => depth,
            Component::ParentDir => depth.checked_sub(1).ok_or_else(outside)?,
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        };
    }
    let folder = or_here(folder);
    let path = folder.join(name);
    let unreadable = |error: io::Error| {
        Error::usage(format!("cannot read {}: {error}", path.display()))
            .hint("check the name, which counts from the folder of the file that names it")
    };
    let found = path.canonicalize().map_err(unreadable)?;
    match found.starts_with(folder.canonicalize().map_err(unreadable)?) {
        true => Ok(found),
        false => Err(outside()),
    }
}

/// Whether a file that a user named is a link to a file outside its folder. Messages do not quote such a file.
pub fn leads_elsewhere(named: &Path) -> bool {
    let folder = named.parent().map(or_here);
    match (named.canonicalize(), folder.map(Path::canonicalize)) {
        (Ok(file), Some(Ok(folder))) => !file.starts_with(folder),
        _ => false,
    }
}

/// The folder, or `.` if it is empty.
fn or_here(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

/// The error about the text of a file that a user named, without quoting a file that is elsewhere.
pub fn of_text(named: &Path, error: Error) -> Error {
    match leads_elsewhere(named) {
        false => error,
        true => Error::usage(format!("{}: there is a mistake in it", named.display())).hint(
            "it is a link to a file elsewhere, whose text is not shown: give that file itself",
        ),
    }
}

/// Reads a small text file that a user named.
///
/// # Errors
///
/// Errors of [`text`].
pub fn read_text(path: &Path) -> Result<String> {
    let hint = "give a TOML file, a job file of fio, or a name that 'iolab list' shows";
    text(path, FILE_MAX, hint)
}
