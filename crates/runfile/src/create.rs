//! Creates a run file atomically: if the process is killed, there is no file.

mod folders;
#[cfg(target_os = "linux")]
mod unnamed;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

use super::error::file_fault;
use super::opening::{SIDE_FILES, beside};
pub(super) use folders::MadeFolders;
pub use folders::unmade_folder;
#[cfg(target_os = "linux")]
use unnamed::linked;

/// Extension of run files.
const EXTENSION: &str = "iolab";
/// Most numbered names to try.
const NAMES_MAX: u32 = 100_000;

/// The path of a new run file. No file is ever overwritten.
#[derive(Debug, Clone, Copy)]
pub enum NewFile<'a> {
    /// This path; refused where it exists.
    At(&'a Path),
    /// The first free path of `NAME.iolab`, `NAME-2.iolab`, ... in a folder when the run begins, also when others begin at the
    /// same time.
    In {
        /// The folder. A run makes it with the file, where there is none.
        folder: &'a Path,
        /// The first name.
        name: &'a str,
    },
}

impl<'a> From<&'a Path> for NewFile<'a> {
    fn from(path: &'a Path) -> Self {
        Self::At(path)
    }
}

impl<'a> From<&'a PathBuf> for NewFile<'a> {
    fn from(path: &'a PathBuf) -> Self {
        Self::At(path)
    }
}

impl NewFile<'_> {
    /// The folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::In { folder, .. } => folder,
            Self::At(path) => match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            },
        }
    }

    /// The path with this number, from 1.
    pub(super) fn name(&self, number: u32) -> PathBuf {
        match (self, number) {
            (Self::At(path), _) => path.to_path_buf(),
            (Self::In { folder, name }, 1) => folder.join(format!("{name}.{EXTENSION}")),
            (Self::In { folder, name }, _) => folder.join(format!("{name}-{number}.{EXTENSION}")),
        }
    }

    /// The first path at which `make` finds no file.
    fn first_free<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
        let last = match self {
            Self::At(_) => 1,
            Self::In { .. } => NAMES_MAX,
        };
        let mut number = 1;
        loop {
            let path = self.name(number);
            match without_companions(&path).and_then(|()| make(&path)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < last => {
                    number += 1;
                }
                made => return made.map(|made| (path, made)),
            }
        }
    }
}

/// Creates the file with this content, locked (`flock`) from the start where the file system supports that.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) where the path exists; when it cannot be written. Leaves nothing behind.
pub(super) fn create(place: NewFile<'_>, content: &[u8]) -> Result<(PathBuf, File)> {
    attempt(place, content).map_err(|error| fault(place, &place.name(1), &error))
}

/// [`create`] with the error of the file system.
pub(super) fn attempt(place: NewFile<'_>, content: &[u8]) -> io::Result<(PathBuf, File)> {
    // Some file systems lack unnamed files; other errors are reported better by the ordinary way.
    linked(place, content).or_else(|_| place.first_free(|path| named(path, content)))
}

/// The error for a file that is not created; `name` is its path for messages.
pub(super) fn fault(place: NewFile<'_>, name: &Path, error: &io::Error) -> Error {
    match (place, error.kind()) {
        (NewFile::At(path), io::ErrorKind::AlreadyExists) => taken(path),
        _ => file_fault(name, "create", error),
    }
}

/// Checks that no file has this path, nor one that SQLite would take for a part of it.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused).
pub(super) fn check_free(path: &Path) -> Result<()> {
    let free = path.symlink_metadata().is_err() && without_companions(path).is_ok();
    free.then_some(()).ok_or_else(|| taken(path))
}

/// The error for an existing file at `path`, or for one that SQLite would take for a part of it.
fn taken(path: &Path) -> Error {
    let own = path.symlink_metadata().is_ok();
    let companion = companions(path).find(|name| name.symlink_metadata().is_ok());
    match companion {
        Some(companion) if !own => Error::refused(format!(
            "{} exists already, and would be taken for a part of {}",
            companion.display(),
            path.display()
        ))
        .hint(
            "it is a remainder of another run file of this name: name another file with -o, or remove it",
        ),
        _ => file_fault(path, "create", &io::ErrorKind::AlreadyExists.into()),
    }
}

/// The files that SQLite takes for parts of a database.
fn companions(path: &Path) -> impl Iterator<Item = PathBuf> {
    SIDE_FILES.into_iter().map(|ending| beside(path, ending))
}

fn without_companions(path: &Path) -> io::Result<()> {
    match companions(path).any(|name| name.symlink_metadata().is_ok()) {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => Ok(()),
    }
}

/// Other systems have no files without a name.
#[cfg(not(target_os = "linux"))]
fn linked(_: NewFile<'_>, _: &[u8]) -> io::Result<(PathBuf, File)> {
    Err(io::ErrorKind::Unsupported.into())
}

fn named(path: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // This process has just created it.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_their_order_and_never_twice() {
        let folder = tempfile::tempdir().unwrap();
        let place = NewFile::In {
            folder: folder.path(),
            name: "a",
        };
        std::fs::write(folder.path().join("a-2.iolab"), "mine").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("a-3.iolab")).unwrap();
        for name in ["a.iolab", "a-4.iolab", "a-5.iolab"] {
            let (path, _file) = create(place, b"content").unwrap();
            assert_eq!(path, folder.path().join(name));
            assert_eq!(std::fs::read(path).unwrap(), b"content");
        }
        let kept = std::fs::read(folder.path().join("a-2.iolab")).unwrap();
        assert_eq!(kept, b"mine");
    }

    #[test]
    fn both_ways_refuse_a_name_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = named(&path, b"first").unwrap();
        for error in [
            named(&path, b"second").unwrap_err(),
            unnamed::link(&file, &path).unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn many_at_once_get_a_name_each() {
        let folder = tempfile::tempdir().unwrap();
        let place = NewFile::In {
            folder: folder.path(),
            name: "a",
        };
        std::thread::scope(|scope| {
            for number in 0..8u8 {
                scope.spawn(move || create(place, &[number]).unwrap());
            }
        });
        let mut contents: Vec<Vec<u8>> = (1..=8)
            .map(|number| std::fs::read(place.name(number)).unwrap())
            .collect();
        contents.sort();
        assert_eq!(contents.concat(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
