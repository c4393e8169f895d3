//! The folder of new run files, opened once: files are created in it, and not in whatever has its name by then.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use iolab_workload::{Error, Result};

use super::super::opening::check_length;
use super::super::system::{self, OpenFolder};
use super::{FileName, NewFile, fault};
use crate::system::SIDE_FILES;

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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn open(&self) -> &OpenFolder {
        &self.open
    }

    /// Removes a file created by iolab with everything that SQLite put next to it. The file itself comes last, since its name is
    /// needed to find the others after a kill.
    pub(crate) fn remove(&self, name: &OsStr) {
        for suffix in SIDE_FILES.into_iter().chain([""]) {
            let mut name = name.to_owned();
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::create;
    use super::*;

    #[test]
    fn a_folder_stays_with_its_file_only() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("a/b");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        drop(Folder::of(place).unwrap());
        assert!(!above.path().join("a").exists());
        let made = Folder::of(place).unwrap();
        let (path, _file) = create(made.place(place), b"content").unwrap();
        drop(made);
        assert_eq!(path, folder.join("r.iolab"));
        assert!(path.exists());
    }

    #[test]
    fn a_link_that_replaces_the_folder_is_refused() {
        let above = tempfile::tempdir().unwrap();
        let at = |name: &str| above.path().join(name);
        let folder = at("results");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        let made = Folder::of(place).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::rename(&folder, at("moved")).unwrap();
        std::os::unix::fs::symlink("other", &folder).unwrap();
        create(made.place(place), b"content").unwrap();
        assert_eq!(std::fs::read(at("moved/r.iolab")).unwrap(), b"content");
        made.remove(OsStr::new("r.iolab"));
        for name in ["moved", "other"] {
            assert_eq!(at(name).read_dir().unwrap().count(), 0, "{name}");
        }
    }

    #[test]
    fn a_folder_removed_meanwhile_is_made_again() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("a/b");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(Folder::of(place));
                }
            });
            let made = (0..200).try_for_each(|_| {
                let folder = Folder::of(place)?;
                let (path, _) = create(folder.place(place), b"content")?;
                std::fs::remove_file(path).unwrap();
                Ok::<_, Error>(())
            });
            is_over.store(true, Ordering::Relaxed);
            made.unwrap();
        });
    }

    #[test]
    fn an_impossible_folder_is_named_leaving_nothing() {
        let above = tempfile::tempdir().unwrap();
        std::fs::write(above.path().join("file"), "mine").unwrap();
        let folder = above.path().join("file/b");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        let error = Folder::of(place).expect_err("a file is in the way");
        let above_path = above.path().display().to_string();
        insta::assert_snapshot!(error.message().replace(&above_path, "DIR"), @"cannot make the folder DIR/file/b for the run files: File exists (os error 17)");
        assert_eq!(above.path().read_dir().unwrap().count(), 1);
    }
}
