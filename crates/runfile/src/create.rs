//! Creates a run file atomically: if the process is killed, there is no file.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::error::file_fault;
use super::opening::check_length;
use super::system::{self, OpenFolder, SIDE_FILES, folder_of};
use iolab_workload::{Error, Result};

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

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for NewFile<'a> {
    fn from(path: &'a P) -> Self {
        Self::At(path.as_ref())
    }
}

impl<'a> NewFile<'a> {
    /// The folder of the file.
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::In { folder, .. } => folder,
            Self::Within(folder, _) => &folder.path,
            Self::At(path) => folder_of(path),
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

/// Creates the file with this content, locked (`flock`) from the start if the file system supports that.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused) if the path exists; also if it cannot be written. Leaves no file
/// then.
pub(super) fn create(place: NewFile<'_>, content: &[u8]) -> Result<(PathBuf, File)> {
    in_folder(place, |folder| {
        let created = attempt(folder, place, content);
        created.map_err(|error| fault(place, &place.name(1), &error))
    })
}

/// Calls a function with the folder of a place, which was opened before or is opened for it.
///
/// # Errors
///
/// As [`Folder::of`]; errors of the function.
pub(super) fn in_folder<T>(
    place: NewFile<'_>,
    make: impl FnOnce(&Folder) -> Result<T>,
) -> Result<T> {
    match place {
        NewFile::Within(folder, _) => make(folder),
        NewFile::At(_) | NewFile::In { .. } => make(&Folder::of(place)?),
    }
}

/// Creates the file in an open folder, the folder of the place, with errors of the file system; returns its path too.
pub(super) fn attempt(
    folder: &Folder,
    place: NewFile<'_>,
    content: &[u8],
) -> io::Result<(PathBuf, File)> {
    // Some file systems lack unnamed files; other errors are reported better by the ordinary way.
    let made = unnamed(&folder.open, content).and_then(|file| {
        let (number, ()) = first_free(folder, place, |name| folder.open.link(&file, name))?;
        // Nothing may fail after this, since the file has its name.
        Ok((number, file))
    });
    let named = |name: &OsStr| named(&folder.open, name, content);
    let (number, file) = made.or_else(|_| first_free(folder, place, named))?;
    Ok((place.name(number), file))
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
        let is_taken = companions(&name).any(|name| folder.open.has(&name));
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

/// Number of times that a folder is opened again if another process removes it.
const ATTEMPTS_MAX: u32 = 100;

/// Time before that, in which the other process goes on.
const PAUSE: Duration = Duration::from_micros(100);

/// An open folder for new run files. Dropping it removes the folders that it made, if nothing is in them.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    open: OpenFolder,
    /// The outermost first.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Opens the folder of a place, and makes it if it is missing. A file with an explicit name needs an existing folder.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be made or opened; of kind
    /// [`Refused`](iolab_workload::Kind::Refused): it is a link of another user in a folder that all may write to.
    pub fn of(place: NewFile<'_>) -> Result<Self> {
        let path = place.folder();
        check_length(&place.name(1))?;
        check_links(path)?;
        let mut made = Vec::new();
        for attempt in 1.. {
            let opened = match place {
                NewFile::In { .. } => make(path, &mut made),
                NewFile::At(_) | NewFile::Within(..) => Ok(()),
            };
            let opened = match opened {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unmade_folder(path, "the run files", &error));
                }
                made => made.and_then(|()| OpenFolder::open(path)),
            };
            match opened {
                Ok(open) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        open,
                        made,
                    });
                }
                // Another process that made the folder removes it while it is empty: on NFS its handle is stale then.
                Err(error) if attempt < ATTEMPTS_MAX && is_gone(&error, place) => {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(fault(place, &place.name(1), &error)),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// As [`Folder::of`], for files of several names.
    ///
    /// # Errors
    /// As [`Folder::of`].
    pub fn make(path: &Path) -> Result<Self> {
        Self::of(NewFile::In {
            folder: path,
            name: "",
        })
    }

    /// A file with the first free name of `NAME.iolab`, `NAME-2.iolab`, ... in this folder.
    pub fn file<'a>(&'a self, name: &'a str) -> NewFile<'a> {
        NewFile::Within(self, FileName::First(name))
    }

    /// A new file in this folder, which is the folder of the place.
    pub fn place<'a>(&'a self, place: NewFile<'a>) -> NewFile<'a> {
        NewFile::Within(self, place.own_name())
    }

    /// Removes a file created by iolab in this folder with everything that SQLite put next to it. The file itself comes last, since
    /// its name is needed to find the others after a kill.
    pub(crate) fn remove(&self, path: &Path) {
        for suffix in SIDE_FILES.into_iter().chain([""]) {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(suffix);
            self.open.remove(&name);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Another process that has it open is about to use it.
        if self.made.is_empty() || !self.open.is_ours_alone() {
            return;
        }
        for folder in self.made.iter().rev() {
            // One with a file in it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Makes a folder with its missing parents, and adds them to `made`. The error is `NotFound` if another process removes one
/// meanwhile.
fn make(folder: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let named = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
    let mut missing: Vec<&Path> = named.take_while(|at| !at.is_dir()).collect();
    while let Some(next) = missing.pop() {
        if made_or_there(next)? {
            made.push(next.to_owned());
        }
    }
    Ok(())
}

/// Makes a folder; returns whether it was missing. The error is `NotFound` if another process removes it, or one of its
/// parents, meanwhile.
fn made_or_there(folder: &Path) -> io::Result<bool> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match folder.metadata() {
            Ok(other) if other.is_dir() => Ok(false),
            Err(removed) if !folder.is_symlink() => Err(removed),
            _ => Err(error),
        },
        made => made.map(|()| true),
    }
}

fn is_gone(error: &io::Error, place: NewFile<'_>) -> bool {
    matches!(
        (error.kind(), place),
        (
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle,
            NewFile::In { .. }
        )
    )
}

/// Refuses a folder whose path has a link of another user in a folder in which every user makes names, such as `/tmp`.
fn check_links(path: &Path) -> Result<()> {
    let named = path.ancestors().filter(|at| !at.as_os_str().is_empty());
    match named.into_iter().find(|at| system::is_foreign_link(at)) {
        None => Ok(()),
        Some(link) => Err(Error::refused(format!(
            "refusing to write run files through {}, a link of another user in a folder of all users",
            link.display()
        ))
        .hint("name a folder of your own with -o")),
    }
}

/// The error for a folder that cannot be made for these files.
pub fn unmade_folder(folder: &Path, files: &str, error: &io::Error) -> Error {
    Error::usage(format!(
        "cannot make the folder {} for {files}: {error}",
        folder.display()
    ))
    .hint("name a place that can be written with -o")
}
