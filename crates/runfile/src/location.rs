//! The location of a run file: whether one could be written there, and whether it is still there.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use iolab_record::digest;
use iolab_workload::{Error, Result};
use rusqlite::Connection;

use super::create::{self, FileName, Folder, NewFile};
use super::error::{fault, file_fault};
use super::opening::check_length;
use super::system::beside;
use super::system::{identity, open_itself};
use super::{RunFile, being_written};

/// Free space that a location must have: a file with the plan of a small run, and its log.
const ROOM: usize = 256 << 10;

/// Prefix of the name of a probe file; the process id follows.
const PROBE: &str = ".iolab-probe-";

/// Prefix of the name of a probe that holds an explicit name; a digest of that follows.
const HELD: &str = ".iolab-held-";

/// The table of a probe.
const TABLE: &str = "CREATE TABLE probe (content)";

/// Checks that a run file can be written at a location, by creating one there, with its folder, and removing both.
///
/// # Errors
///
/// As [`HeldPlace::of`].
pub fn check_place(place: NewFile<'_>) -> Result<()> {
    create::in_folder(place, |folder| HeldPlace::of(folder, place).map(drop))
}

/// A location at which a run file can be written, with a locked probe in it. No other process takes an explicit name
/// meanwhile; numbered names are taken as they are free. Dropping it removes the probe.
#[derive(Debug)]
pub struct HeldPlace<'a> {
    folder: &'a Folder,
    path: PathBuf,
    /// Holds the lock until the probe is removed.
    file: File,
    probe: Option<RunFile>,
}

impl<'a> HeldPlace<'a> {
    /// Makes the probe in the folder of the place.
    ///
    /// # Errors
    /// Why no file can be written; of kind [`Refused`](iolab_workload::Kind::Refused) if the path exists, or another process is
    /// about to write it.
    pub fn of(folder: &'a Folder, place: NewFile<'_>) -> Result<Self> {
        let path = place.name(1);
        check_length(&path)?;
        let (name, is_explicit) = match place.own_name() {
            FileName::Exactly(path) => {
                let name = path.file_name().unwrap_or_default().as_encoded_bytes();
                (format!("{HELD}{}.iolab", digest(name.to_vec())), true)
            }
            FileName::First(_) => (format!("{PROBE}{}", std::process::id()), false),
        };
        let check_free = || match is_explicit {
            true => create::check_free(&path),
            false => Ok(()),
        };
        check_free()?;
        // A look-up finds names that are too long for the file system.
        match beside(&path, "-journal").symlink_metadata() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_fault(&path, "create", &error));
            }
            _ => {}
        }
        remove_left(folder, place.folder());
        let at = place.folder().join(&name);
        let name = match is_explicit {
            true => FileName::Exactly(&at),
            false => FileName::First(&name),
        };
        let made = create::attempt(folder, NewFile::Within(folder, name), &[]);
        let (made, file) = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists if is_being_written(&at) => being_written(&path),
            io::ErrorKind::AlreadyExists => create::taken(&at).hint(format!(
                "iolab reserves {} with this name; if no iolab writes there, remove it by hand",
                path.display()
            )),
            _ => file_fault(&path, "create", &error),
        })?;
        let mut held = Self {
            folder,
            path: made,
            file,
            probe: None,
        };
        let file = held.file.try_clone();
        let file = file.map_err(|error| file_fault(&path, "create", &error))?;
        let probe = held.probe.insert(RunFile::locked(&held.path, file)?);
        // The path for messages.
        probe.path.clone_from(&path);
        probe.enter_wal()?;
        probe.execute(&format!(
            "{TABLE}; INSERT INTO probe VALUES (zeroblob({ROOM}));"
        ))?;
        check_free().map(|()| held)
    }
}

impl Drop for HeldPlace<'_> {
    fn drop(&mut self) {
        match self.probe.take().is_some_and(|probe| probe.is_traceable) {
            true => self.folder.remove_itself(&self.path, &self.file),
            false => self.folder.remove(&self.path),
        }
    }
}

/// Removes probes of killed processes.
fn remove_left(folder: &Folder, path: &Path) {
    for entry in path.read_dir().into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if is_of_gone(&name) == Some(true)
            && let Ok(file) = open_itself(&path)
            && is_free(&file)
            && is_probe(&file)
        {
            // Locked until then; another process may have removed it before and made another one.
            folder.remove_itself(&path, &file);
        }
    }
}

/// Whether the process that made the probe with this name can be gone; `None` for other names.
fn is_of_gone(name: &OsStr) -> Option<bool> {
    let name = name.to_str()?.strip_suffix(".iolab")?;
    match name.strip_prefix(PROBE) {
        Some(maker) => maker.split('-').next()?.parse().ok().map(is_gone),
        None => name.starts_with(HELD).then_some(true),
    }
}

fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}

/// Locks the file; returns whether no process on any host has locked it.
fn is_free(file: &File) -> bool {
    file.metadata().is_ok_and(|file| file.is_file()) && file.try_lock().is_ok()
}

/// Whether another process has locked the run file, as its writer does.
pub fn is_being_written(path: &Path) -> bool {
    let locked = open_itself(path).map(|file| file.try_lock_shared());
    matches!(locked, Ok(Err(TryLockError::WouldBlock)))
}

/// Whether a file holds nothing, the first page of SQLite alone, or the table of a probe: what else has such a name is not ours.
fn is_probe(file: &File) -> bool {
    const PAGE: usize = 4096;
    let mut begin = Vec::new();
    let read = file.take(PAGE as u64 + 1).read_to_end(&mut begin);
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
            format!("{HELD}0123456789abcdef.iolab"),
        ];
        let probe = Connection::open(at(&left[0])).unwrap();
        probe.execute_batch(TABLE).unwrap();
        drop(probe);
        for name in kept[..6].iter().chain(&left[1..]) {
            std::fs::write(at(name), "content").unwrap();
        }
        for name in [&kept[4], &left[2], &left[4]] {
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
    #[test]
    fn name_of_a_new_file_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.iolab");
        let place = NewFile::At(&path);
        let [one, other] = [0; 2].map(|_| Folder::of(place).unwrap());
        let held = HeldPlace::of(&one, place).unwrap();
        let error = HeldPlace::of(&other, place).unwrap_err();
        assert_eq!(error.kind(), iolab_workload::Kind::Refused);
        // A probe meanwhile does not take it for a left-over.
        check_place(NewFile::At(&folder.path().join("s.iolab"))).unwrap();
        assert!(HeldPlace::of(&other, place).is_err());
        drop(held);
        drop(HeldPlace::of(&other, place).unwrap());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_foreign_file_at_the_hidden_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.iolab");
        let place = NewFile::At(&path);
        let one = Folder::of(place).unwrap();
        let held = HeldPlace::of(&one, place).unwrap();
        let hidden = held.path.clone();
        std::fs::remove_file(&hidden).unwrap();
        std::fs::write(&hidden, "mine").unwrap();
        drop(held);
        assert_eq!(std::fs::read(&hidden).unwrap(), b"mine");
        let refusal = || {
            let error = HeldPlace::of(&one, place).unwrap_err();
            assert_eq!(error.kind(), iolab_workload::Kind::Refused);
            let of_all = folder.path().display().to_string();
            error.to_string().replace(&of_all, "DIR")
        };
        let of_file = refusal();
        insta::assert_snapshot!(of_file, @"
        DIR/.iolab-held-46b919c255812604.iolab exists already
          iolab reserves DIR/r.iolab with this name; if no iolab writes there, remove it by hand
        ");
        std::fs::remove_file(&hidden).unwrap();
        std::os::unix::fs::symlink("nowhere", &hidden).unwrap();
        assert_eq!(refusal(), of_file);
        std::fs::remove_file(&hidden).unwrap();
        std::fs::create_dir(&hidden).unwrap();
        assert_eq!(refusal(), of_file);
        std::fs::remove_dir(&hidden).unwrap();
        drop(HeldPlace::of(&one, place).unwrap());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
