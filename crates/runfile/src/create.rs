//! Creates a run file atomically: if the process is killed, there is no file.

mod folders;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

use super::error::file_fault;
use super::system::OpenFolder;
use super::system::SIDE_FILES;
pub use folders::{Folder, unmade_folder};

/// Extension of run files.
const EXTENSION: &str = "iolab";
/// Most numbered names to try.
const NAMES_MAX: u32 = 100_000;

/// The path of a new run file. No file is ever overwritten.
#[derive(Debug, Clone, Copy)]
pub enum NewFile<'a> {
    /// This path; refused if it exists.
    At(&'a Path),
    /// The first free path of `NAME.iolab`, `NAME-2.iolab`, ... in a folder when the run begins, also when others begin at the
    /// same time.
    In {
        /// The folder. A run makes it with the file, if there is none.
        folder: &'a Path,
        /// The first name.
        name: &'a str,
    },
    /// A name in a folder that was opened before.
    Within(&'a Folder, FileName<'a>),
}

/// The name of a new run file.
#[derive(Debug, Clone, Copy)]
pub enum FileName<'a> {
    /// The name at the end of this path.
    Exactly(&'a Path),
    /// The first free one of `NAME.iolab`, `NAME-2.iolab`, ...
    First(&'a str),
}

impl FileName<'_> {
    /// The name with this number, from 1.
    fn numbered(self, number: u32) -> OsString {
        match (self, number) {
            (Self::Exactly(path), _) => path.file_name().unwrap_or_default().to_owned(),
            (Self::First(name), 1) => format!("{name}.{EXTENSION}").into(),
            (Self::First(name), _) => format!("{name}-{number}.{EXTENSION}").into(),
        }
    }
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

impl<'a> NewFile<'a> {
    /// The folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::In { folder, .. } => folder,
            Self::Within(folder, _) => folder.path(),
            Self::At(path) => match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            },
        }
    }

    pub(super) fn own_name(self) -> FileName<'a> {
        match self {
            Self::At(path) => FileName::Exactly(path),
            Self::In { name, .. } => FileName::First(name),
            Self::Within(_, name) => name,
        }
    }

    /// The path with this number, from 1.
    pub(super) fn name(&self, number: u32) -> PathBuf {
        match self.own_name() {
            FileName::Exactly(path) => path.to_owned(),
            name @ FileName::First(_) => self.folder().join(name.numbered(number)),
        }
    }
}

/// A new file.
#[derive(Debug)]
pub(super) struct Created {
    /// Name of the file in its folder.
    pub(super) name: OsString,
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// Creates the file with this content, locked (`flock`) from the start if the file system supports that.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the path exists; also if it cannot be written. Leaves no file
/// then.
pub(super) fn create(place: NewFile<'_>, content: &[u8]) -> Result<(PathBuf, File)> {
    let folder = HeldFolder::of(place)?;
    let created = attempt(&folder, place, content);
    let created = created.map_err(|error| fault(place, &place.name(1), &error))?;
    Ok((created.path, created.file))
}

/// The folder of a place, which was opened before or is opened for it.
pub(super) enum HeldFolder<'a> {
    Before(&'a Folder),
    Now(Folder),
}

impl<'a> HeldFolder<'a> {
    /// # Errors
    ///
    /// As [`Folder::of`].
    pub(super) fn of(place: NewFile<'a>) -> Result<Self> {
        match place {
            NewFile::Within(folder, _) => Ok(Self::Before(folder)),
            NewFile::At(_) | NewFile::In { .. } => Folder::of(place).map(Self::Now),
        }
    }
}

impl Deref for HeldFolder<'_> {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        match self {
            Self::Before(folder) => folder,
            Self::Now(folder) => folder,
        }
    }
}

/// Creates the file in an open folder, the folder of the place, with errors of the file system.
pub(super) fn attempt(folder: &Folder, place: NewFile<'_>, content: &[u8]) -> io::Result<Created> {
    // Some file systems lack unnamed files; other errors are reported better by the ordinary way.
    let made = unnamed(folder.open(), content).and_then(|file| {
        let (number, ()) = first_free(folder, place, |name| folder.open().link(&file, name))?;
        // Nothing may fail after this, since the file has its name.
        Ok((number, file))
    });
    let named = |name: &OsStr| named(folder.open(), name, content);
    let (number, file) = made.or_else(|_| first_free(folder, place, named))?;
    Ok(Created {
        name: place.own_name().numbered(number),
        path: place.name(number),
        file,
    })
}

/// The number of the first name at which `make` finds no file.
fn first_free<T>(
    folder: &Folder,
    place: NewFile<'_>,
    make: impl Fn(&OsStr) -> io::Result<T>,
) -> io::Result<(u32, T)> {
    let last = match place.own_name() {
        FileName::Exactly(_) => 1,
        FileName::First(_) => NAMES_MAX,
    };
    let mut number = 1;
    loop {
        let name = place.own_name().numbered(number);
        let is_taken = companions(&name).any(|name| folder.open().has(&name));
        let made = match is_taken {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => make(&name),
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < last => {
                number += 1;
            }
            made => return made.map(|made| (number, made)),
        }
    }
}

/// The error for a file that is not created; `name` is its path for messages.
pub(super) fn fault(place: NewFile<'_>, name: &Path, error: &io::Error) -> Error {
    match (place.own_name(), error.kind()) {
        (FileName::Exactly(path), io::ErrorKind::AlreadyExists) => taken(path),
        _ => file_fault(name, "create", error),
    }
}

/// Checks that no file has this path, nor one that SQLite would take for a part of it.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused).
pub(super) fn check_free(path: &Path) -> Result<()> {
    let mut all = companions(path.as_os_str()).chain([path.as_os_str().to_owned()]);
    match all.any(|name| Path::new(&name).symlink_metadata().is_ok()) {
        false => Ok(()),
        true => Err(taken(path)),
    }
}

/// The error for an existing file at `path`, or for one that SQLite would take for a part of it.
fn taken(path: &Path) -> Error {
    let own = path.symlink_metadata().is_ok();
    let companion = companions(path.as_os_str())
        .map(PathBuf::from)
        .find(|name| name.symlink_metadata().is_ok());
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
fn companions(of: &OsStr) -> impl Iterator<Item = OsString> {
    SIDE_FILES.into_iter().map(move |ending| {
        let mut name = of.to_owned();
        name.push(ending);
        name
    })
}

/// A file with this content and without a name, which disappears unless it gets one.
fn unnamed(folder: &OpenFolder, content: &[u8]) -> io::Result<File> {
    let mut file = folder.unnamed()?;
    file.write_all(content)?;
    file.sync_all()?;
    // Without locks in the file system, the run file stays unlocked, like its writer's.
    let _ = file.try_lock();
    Ok(file)
}

fn named(folder: &OpenFolder, name: &OsStr, content: &[u8]) -> io::Result<File> {
    let mut file = folder.create_new(name)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // This process has just created it.
        folder.remove(name);
        return Err(error);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_order_and_never_twice() {
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
        let (open, name) = (OpenFolder::open(folder.path()).unwrap(), OsStr::new("a"));
        let file = named(&open, name, b"first").unwrap();
        for error in [
            named(&open, name, b"second").unwrap_err(),
            open.link(&file, name).unwrap_err(),
        ] {
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"first");
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
