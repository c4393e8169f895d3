//! Files of results: new files, which are never overwritten, and files that --force may replace.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use iolab_plan::read_user_file;
use iolab_workload::{Error, Result};

use crate::failure::Outcome;
use crate::output::Harmless;

/// Whether the name of an output means stdout: `-`.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens the output of a command: a new file, or stdout (also as `-`), filtered by [`harmless`](super::harmless). Output that is not
/// flushed at the end is discarded.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when the file exists.
pub fn open(path: Option<&Path>) -> Result<Box<dyn Write>> {
    let path = path.filter(|path| !is_stdout(path));
    let is_shown_as_ascii = path.is_none() && super::style().ascii;
    // The filter buffers, so that it sees whole characters.
    Ok(Box::new(BufWriter::new(Harmless::new(
        open_raw(path)?,
        is_shown_as_ascii,
    ))))
}

/// Opens the output without the filter, for binary data and for text with iolab's own colours.
///
/// # Errors
///
/// As [`open`].
pub fn open_raw(path: Option<&Path>) -> Result<Box<dyn Write>> {
    let Some(path) = path.filter(|path| !is_stdout(path)) else {
        return Ok(Box::new(BufWriter::new(io::stdout().lock())));
    };
    Ok(Box::new(NewFile {
        to: BufWriter::new(create(path)?),
        path: path.to_owned(),
        is_whole: false,
    }))
}

/// A new file of results, removed unless it is written completely.
struct NewFile {
    to: BufWriter<File>,
    path: PathBuf,
    /// Whether everything is written.
    is_whole: bool,
}

impl NewFile {
    /// Adds the file's name to an error.
    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_whole = false;
        let written = self.to.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.is_whole = flushed.is_ok();
        self.named(flushed)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // An earlier error was reported; an empty file would only prevent the next try.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Creates a file for results.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when it exists.
pub fn create(path: &Path) -> Result<File> {
    match File::create_new(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(Error::failed(format!(
            "cannot create {}: {error}",
            path.display()
        ))
        .hint("free some space, or name a file on another file system")),
        Err(error) => Err(
            Error::usage(format!("cannot create {}: {error}", path.display()))
                .hint("name a file in a folder that can be written"),
        ),
    }
}

/// Kinds of files that --force may replace, recognised by their beginnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaceable {
    /// A figure.
    Figure,
    /// A file of `iolab export --format prometheus`.
    Gauges,
}

impl Replaceable {
    fn begins(self) -> &'static [&'static [u8]] {
        match self {
            Self::Figure => &[b"<svg", b"<?xml", b"\x89PNG\r\n\x1a\n", b"%PDF-"],
            Self::Gauges => &[b"# HELP iolab_"],
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Figure => ("is not a figure", "figures"),
            Self::Gauges => ("holds no gauges of iolab", "files of gauges"),
        }
    }
}

/// Refuses to replace anything else: links, devices, and files with several names or other content may belong to
/// the user.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the reason.
pub fn check_replaceable(path: &Path, by: Replaceable) -> Result<()> {
    let Ok(there) = path.symlink_metadata() else {
        return Ok(());
    };
    let (other, kind) = by.words();
    let what = if !there.is_file() {
        "is not a regular file"
    } else if has_several_names(&there) {
        "has several names (hard links)"
    } else if !begins_so(path, &there, by.begins()) {
        other
    } else {
        return Ok(());
    };
    let refused = format!("{} {what}: --force replaces {kind} only", path.display());
    Err(Error::refused(refused).hint("choose another name with -o"))
}

/// Whether a file has hard links; false if the system does not tell.
fn has_several_names(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(metadata) > 1;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Whether a file begins with one of these byte strings; false for an empty one.
fn begins_so(path: &Path, metadata: &Metadata, with: &[&[u8]]) -> bool {
    let mut first = Vec::new();
    let read =
        read_user_file::open(path, metadata).and_then(|file| file.take(16).read_to_end(&mut first));
    let begins = |with: &&[u8]| first.starts_with(with);
    read.is_ok() && (first.is_empty() || with.iter().any(begins))
}

/// Replaces a file atomically, without writing through links.
///
/// # Errors
///
/// Errors of [`check_replaceable`]; when it cannot be written.
pub fn replace(path: &Path, bytes: &[u8], by: Replaceable) -> Outcome {
    check_replaceable(path, by)?;
    let beside = path.with_file_name(format!(".iolab-new-{}", std::process::id()));
    let mut to = open_raw(Some(&beside))?;
    to.write_all(bytes)?;
    to.flush()?;
    if let Err(error) = std::fs::rename(&beside, path) {
        // This process has just created it.
        let _ = std::fs::remove_file(&beside);
        let cannot = format!("cannot replace {}: {error}", path.display());
        return Err(Error::usage(cannot)
            .hint("name a file in a folder that can be written")
            .into());
    }
    Ok(())
}

/// The refusal to overwrite what --force may replace.
pub fn exists_without_force(path: &Path, by: Replaceable) -> Error {
    match check_replaceable(path, by) {
        Ok(()) => Error::refused(format!("{} exists already", path.display()))
            .hint("replace it with --force, or choose another name with -o"),
        Err(_) => exists(path),
    }
}

/// The refusal to overwrite a result.
pub fn exists(path: &Path) -> Error {
    Error::refused(format!("{} exists already", path.display()))
        .hint("results are never overwritten: choose another name, or remove it yourself")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        for flushes in [false, true] {
            let mut to = open(Some(&path)).unwrap();
            to.write_all(b"1,2").unwrap();
            if flushes {
                to.flush().unwrap();
            }
            drop(to);
            assert_eq!(path.exists(), flushes);
        }
        open(Some(&path)).err().expect("it is there");
        assert_eq!(std::fs::read(&path).unwrap(), b"1,2", "kept");
    }
}
