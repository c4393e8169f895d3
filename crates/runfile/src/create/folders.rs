//! The folder of a new run file, made when the file is.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use iolab_workload::{Error, Result};

use super::NewFile;

/// How often a folder is made again that another process has removed.
const ATTEMPTS_MAX: u32 = 100;
/// Time before that, in which the other process goes on.
const PAUSE: Duration = Duration::from_micros(100);

/// Folders that were made for a file; those that are still empty are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct MadeFolders(Vec<PathBuf>);

/// What is made, or the error and what the file system said.
type Made<T> = std::result::Result<T, (io::ErrorKind, Error)>;

impl MadeFolders {
    /// Makes a file in the folder of a place, and the folder where there is none. `fault` is the error where `make` fails.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the folder cannot be made; and `fault`.
    pub(crate) fn with_file<T>(
        place: &NewFile<'_>,
        make: impl Fn() -> io::Result<T>,
        fault: impl Fn(&io::Error) -> Error,
    ) -> Result<(T, Self)> {
        let attempt = || {
            let folders = Self::of(place)?;
            let made = make().map_err(|error| (error.kind(), fault(&error)))?;
            Ok((made, folders))
        };
        let mut made = attempt();
        if let NewFile::In { .. } = place {
            for _ in 1..ATTEMPTS_MAX {
                // Another process that made a folder removes it while it is empty: on NFS its handle is stale then. Other failures come again.
                if !matches!(
                    made,
                    Err((
                        io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle,
                        _
                    ))
                ) {
                    break;
                }
                thread::sleep(PAUSE);
                made = attempt();
            }
        }
        made.map_err(|(_, error)| error)
    }

    /// Makes the folder of a place with those above it. A file of a name of its own stands in a folder that is there.
    fn of(place: &NewFile<'_>) -> Made<Self> {
        let mut made = Self(Vec::new());
        let NewFile::In { folder, .. } = place else {
            return Ok(made);
        };
        let named = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
        let mut missing: Vec<&Path> = named.take_while(|at| !at.is_dir()).collect();
        while let Some(next) = missing.pop() {
            match made_or_there(next) {
                Ok(true) => made.0.push(next.to_owned()),
                // Another process was faster.
                Ok(false) => {}
                Err(error) => {
                    return Err((error.kind(), unmade_folder(folder, "the run files", &error)));
                }
            }
        }
        Ok(made)
    }
}

/// Makes a folder, and tells whether there was none. The error is `NotFound` where another process removes it, or one above it, meanwhile.
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

/// The error for a folder that cannot be made for these files.
pub fn unmade_folder(folder: &Path, files: &str, error: &io::Error) -> Error {
    Error::usage(format!(
        "cannot make the folder {} for {files}: {error}",
        folder.display()
    ))
    .hint("name a place that can be written with -o")
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One with a file in it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::super::{attempt, create, fault};
    use super::*;

    #[test]
    fn a_folder_stays_with_its_file_only() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("a/b");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        drop(MadeFolders::of(&place).unwrap());
        assert!(!above.path().join("a").exists());
        let made = MadeFolders::of(&place).unwrap();
        let (path, _file) = create(place, b"content").unwrap();
        drop(made);
        assert_eq!(path, folder.join("r.iolab"));
        assert!(path.exists());
    }

    #[test]
    fn a_folder_that_another_process_removes_is_made_again() {
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
                    drop(MadeFolders::of(&place));
                }
            });
            for _ in 0..200 {
                let attempt = || attempt(place, b"content");
                let fault = |error: &io::Error| fault(place, &place.name(1), error);
                let made = MadeFolders::with_file(&place, attempt, fault);
                let made = made.map(|((path, _), _)| std::fs::remove_file(path).unwrap());
                if made.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                made.unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_and_nothing_is_left() {
        let above = tempfile::tempdir().unwrap();
        std::fs::write(above.path().join("file"), "mine").unwrap();
        let folder = above.path().join("file/b");
        let place = NewFile::In {
            folder: &folder,
            name: "r",
        };
        let (_, error) = MadeFolders::of(&place).expect_err("a file is in the way");
        let above_path = above.path().display().to_string();
        insta::assert_snapshot!(error.message().replace(&above_path, "DIR"), @"cannot make the folder DIR/file/b for the run files: File exists (os error 17)");
        assert_eq!(above.path().read_dir().unwrap().count(), 1);
    }
}
