//! The folder of a new run file, made when the file is.

use std::io;
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

use super::NewFile;

/// How often a folder is made again that another process has removed.
const ATTEMPTS_MAX: u32 = 20;

/// Folders that were made for a file; those that are still empty are removed when this is dropped.
pub(crate) struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Makes a file in the folder of a place, and the folder where there is none. `fault` is the error where `make` fails.
    ///
    /// # Errors
    /// Those of [`Self::of`], and `fault`.
    pub(crate) fn with_file<T>(
        place: &NewFile<'_>,
        make: impl Fn() -> io::Result<T>,
        fault: impl FnOnce(&io::Error) -> Error,
    ) -> Result<(T, Self)> {
        let attempt = || match Self::of(place) {
            Ok(folders) => make().map(|made| Ok((made, folders))),
            Err(error) => Ok(Err(error)),
        };
        let made = match place {
            NewFile::In { .. } => again_where_removed(attempt),
            NewFile::At(_) => attempt(),
        };
        made.unwrap_or_else(|error| Err(fault(&error)))
    }

    /// Makes the folder of a place with those above it. A file of a name of its own stands in a folder that is there.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): it cannot be made.
    pub(crate) fn of(place: &NewFile<'_>) -> Result<Self> {
        let NewFile::In { folder, .. } = place else {
            return Ok(Self(Vec::new()));
        };
        again_where_removed(|| Self::make(folder))
            .map_err(|error| unmade_folder(folder, "the run files", &error))
    }

    fn make(folder: &Path) -> io::Result<Self> {
        let mut made = Self(Vec::new());
        let named = folder.ancestors().filter(|at| !at.as_os_str().is_empty());
        let mut missing: Vec<&Path> = named.take_while(|at| !at.is_dir()).collect();
        while let Some(next) = missing.pop() {
            match std::fs::create_dir(next) {
                Ok(()) => made.0.push(next.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    match next.metadata() {
                        // Another process was faster.
                        Ok(other) if other.is_dir() => {}
                        // And has removed it since.
                        Err(missing) if !next.is_symlink() => return Err(missing),
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }
}

/// Attempts again while a folder is missing that was there or was made: another process that made it removes it while it is empty.
fn again_where_removed<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let is_removed = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    for _ in 1..ATTEMPTS_MAX {
        match attempt() {
            Err(error) if is_removed(&error) => {}
            made => return made,
        }
    }
    attempt()
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
        std::thread::scope(|scope| {
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
        let error = MadeFolders::of(&place).err().expect("a file is in the way");
        assert!(
            error.message().contains("cannot make the folder"),
            "{error:?}"
        );
        assert_eq!(above.path().read_dir().unwrap().count(), 1);
    }
}
