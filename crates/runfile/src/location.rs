//! The location of a run file: whether one could be written there, whether it is still there, and where else its content is saved.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};
use rusqlite::Connection;

use super::RunFile;
use super::create::{self, FileName, Folder, NewFile};
use super::error::{fault, file_fault};
use super::opening::check_length;
use super::system::{beside, identity, open_itself};

/// Free space that a location must have: a file with the plan of a small run, and its log.
const ROOM: usize = 256 << 10;

/// Prefix of the name of a probe file; the process id follows.
const PROBE: &str = ".iolab-probe-";

/// The table of a probe.
const TABLE: &str = "CREATE TABLE probe (content)";

/// Checks that a run file can be written at a location, by creating one there, with its folder, and removing both.
///
/// # Errors
///
/// Why it cannot; of kind [`Refused`](iolab_workload::Kind::Refused) if the path exists.
pub fn check_place(place: NewFile<'_>) -> Result<()> {
    let path = place.name(1);
    check_length(&path)?;
    if let FileName::Exactly(path) = place.own_name() {
        create::check_free(path)?;
    }
    // A look-up finds names that are too long for the file system.
    match beside(&path, "-journal").symlink_metadata() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_fault(&path, "create", &error));
        }
        _ => {}
    }
    create::in_folder(place, |folder| {
        remove_left(folder, place.folder());
        let name = format!("{PROBE}{}", std::process::id());
        let probe = NewFile::Within(folder, FileName::First(&name));
        let made = create::attempt(folder, probe, &[]);
        let (made, file) = made.map_err(|error| create::fault(probe, &path, &error))?;
        let written = write_probe(file, &made, &path);
        folder.remove(&made);
        written
    })
}

fn write_probe(file: File, made: &Path, path: &Path) -> Result<()> {
    let mut probe = RunFile::locked(made, file)?;
    // The path for messages.
    probe.path = path.to_owned();
    probe.enter_wal()?;
    probe.execute(&format!(
        "{TABLE}; INSERT INTO probe VALUES (zeroblob({ROOM}));"
    ))
}

/// Removes probes of killed processes.
fn remove_left(folder: &Folder, path: &Path) {
    for entry in path.read_dir().into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if prober(&name).is_some_and(is_gone) && is_free(&path) && is_probe(&path) {
            folder.remove(&path);
        }
    }
}

/// The process that made the probe with this name.
fn prober(name: &OsStr) -> Option<u32> {
    let name = name.to_str()?.strip_prefix(PROBE)?.strip_suffix(".iolab")?;
    name.split('-').next()?.parse().ok()
}

fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}

/// Whether no process on any host has locked the file.
fn is_free(path: &Path) -> bool {
    open_itself(path).is_ok_and(|file| {
        file.metadata().is_ok_and(|file| file.is_file()) && file.try_lock().is_ok()
    })
}

/// Whether a file holds nothing, the first page of SQLite alone, or the table of a probe: what else has such a name is not ours.
fn is_probe(path: &Path) -> bool {
    const PAGE: usize = 4096;
    let mut begin = Vec::new();
    let read =
        open_itself(path).and_then(|file| file.take(PAGE as u64 + 1).read_to_end(&mut begin));
    let is_sqlites = begin.starts_with(b"SQLite format 3\0");
    let has_page_alone = begin.len() == PAGE && begin[16..18] == (PAGE as u16).to_be_bytes();
    let mut texts = begin.windows(TABLE.len());
    read.is_ok()
        && (begin.is_empty()
            || is_sqlites && (has_page_alone || texts.any(|text| text == TABLE.as_bytes())))
}

/// Whether a path leads to an open file; `None` if that cannot be determined.
pub(super) fn leads_to(path: &Path, file: &File) -> Option<bool> {
    let held = file.metadata().ok()?;
    match path.metadata() {
        Ok(named) => Some(identity(&named)? == identity(&held)?),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Some(false),
            _ => None,
        },
    }
}

/// Writes the content of a run file to a new one: next to its old path, otherwise in the working directory, otherwise in the
/// folder for temporary files.
///
/// # Errors
///
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
    // A missing folder is not made again.
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probes_of_gone_processes_are_removed() {
        // Above every process id of Linux.
        const GONE: u32 = 1 << 23;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let kept = [
            "r.iolab".to_owned(),
            format!("{PROBE}of-mine.iolab"),
            format!("{PROBE}{GONE}.txt"),
            format!("{PROBE}{}.iolab", std::process::id()),
            format!("{PROBE}{GONE}-3.iolab"),
            format!("{PROBE}{GONE}-5.iolab"),
            format!("{PROBE}{GONE}-4.iolab"),
        ];
        let left = [
            format!("{PROBE}{GONE}.iolab"),
            format!("{PROBE}{GONE}.iolab-journal"),
            format!("{PROBE}{GONE}-2.iolab"),
            format!("{PROBE}{GONE}-2.iolab-wal"),
        ];
        let probe = Connection::open(at(&left[0])).unwrap();
        probe.execute_batch(TABLE).unwrap();
        drop(probe);
        for name in kept[..6].iter().chain(&left[1..]) {
            std::fs::write(at(name), "content").unwrap();
        }
        for name in [&kept[4], &left[2]] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink("r.iolab", at(&kept[6])).unwrap();
        let held = File::open(at(&kept[4])).unwrap();
        held.try_lock().unwrap();
        check_place(NewFile::At(&at("next.iolab"))).unwrap();
        for name in &kept {
            assert!(at(name).symlink_metadata().is_ok(), "{name}");
        }
        for name in &left {
            assert!(at(name).symlink_metadata().is_err(), "{name}");
        }
    }
}
