//! Scratch files of exact sizes in one directory, for programs that read a file to its end.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rustix::fs::FileType;

use iolab_spec::{Error, Result};

use super::scratch::{self, FOOTER_LEN, Scratch};
use super::sources::{Sources, bounded};
use super::{Size, Target, check_stores, lookup, users};

/// Scratch files of exact sizes. Dropping it removes them.
#[derive(Debug)]
pub struct Folder {
    // Declared before the marker, which is dropped last: as long as it is there, the next run knows what a killed one left.
    files: Vec<Target>,
    marker: Target,
}

impl Folder {
    /// Makes a file for each size in the directory PATH; they are empty until [`Folder::fill`] has filled them.
    ///
    /// # Errors
    /// Of kind usage when PATH is no directory, or longer than programs can open, or a size is 0 or more than a file can have; of kind refused when all
    /// files together would crowd the file system.
    pub fn open(path: &Path, sizes: &[u64]) -> Result<Self> {
        let found = lookup::find(path)?;
        if found.file_type() != FileType::Directory {
            return Err(Error::usage(format!(
                "{} is not a directory: iolab makes the files there that programs read",
                path.display()
            ))
            .hint("give a directory; the files in it are removed at the end"));
        }
        check_stores(&found)?;
        users::check_directory(&found)?;
        let dir = found.path;
        scratch::check_writable(&found.handle, &dir)?;
        let mut notes = scratch::remove_leftovers(&found.handle, &dir);
        let total = total(sizes)?;
        let sources = Sources::of_directory(&found.handle, &dir)?;
        match sources.room()? {
            Some((room, by)) => {
                let fitted = total.of_room(room.saturating_sub(FOOTER_LEN), &dir);
                fitted.map_err(|error| bounded(error, by, &dir))?;
            }
            None => notes.push(format!(
                "the file system of {} does not say how much space is free",
                dir.display()
            )),
        }
        let (scratch, file) = Scratch::create(found.handle, &dir, 0)?;
        let files = sizes
            .iter()
            .map(|bytes| {
                let (scratch, file) = scratch.beside(*bytes)?;
                let file = Target::of_scratch(scratch, file, *bytes, Vec::new());
                file.path_for_programs().map(|_| file)
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            files,
            marker: Target::of_scratch(scratch, file, 0, notes).with_memory_note(),
        })
    }

    /// An empty target that stands for the directory: its device, its file system, the remarks on it.
    pub fn place(&self) -> &Target {
        &self.marker
    }

    /// The file of this size.
    pub fn file(&self, bytes: u64) -> Option<&Target> {
        self.files.iter().find(|file| file.size() == bytes)
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(Target::size).sum()
    }

    /// Fills every file with incompressible data and makes it durable. `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// As [`Target::fill`].
    pub fn fill(&self, seed: u64, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut before = 0;
        for (number, file) in self.files.iter().enumerate() {
            let seed = seed.wrapping_add(number as u64);
            file.fill(seed, stop, &mut |done| progress(before + done))?;
            before += file.size();
        }
        Ok(())
    }

    /// Removes all files, and tells when that fails.
    ///
    /// # Errors
    /// When another process replaced one of them by now, or it cannot be removed; the others are removed all the same.
    pub fn remove(self) -> Result<()> {
        let removed = self.files.into_iter().map(Target::remove);
        let removed = removed.fold(Ok(()), Result::and);
        removed.and(self.marker.remove())
    }
}

/// What all files take together.
fn total(sizes: &[u64]) -> Result<Size> {
    for bytes in sizes {
        Size::Exactly(*bytes).check()?;
    }
    let sum = sizes
        .iter()
        .fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let total = Size::Exactly(sum);
    total.check()?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use iolab_spec::Kind;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("readable").count()
    }

    #[test]
    fn files_have_exactly_the_size_asked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let sizes = [1, 4095, 4096, 1 << 20];
        let folder = Folder::open(dir.path(), &sizes).expect("made");
        let mut last = 0;
        folder
            .fill(3, &AtomicBool::new(false), &mut |done| last = done)
            .expect("filled");
        assert_eq!((last, folder.bytes()), (1_056_768, 1_056_768));
        for bytes in sizes {
            let file = folder.file(bytes).expect("there");
            let content = fs::read(file.path()).expect("readable");
            assert_eq!(content.len() as u64, bytes);
        }
        let content = fs::read(folder.file(1 << 20).expect("there").path()).expect("readable");
        assert!(
            !content
                .chunks(4096)
                .any(|page| page.iter().all(|b| *b == 0))
        );
        assert!(folder.file(2).is_none());
        folder.remove().expect("removed");
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn dropping_leaves_nothing_and_a_stop_ends_the_filling() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), &[100, 200]).expect("made");
        let error = folder.fill(3, &AtomicBool::new(true), &mut |_| {});
        assert_eq!(error.expect_err("stopped").kind(), Kind::Interrupted);
        drop(folder);
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(dir.path(), &[100, 200]).expect("made");
        let name = folder.place().path().to_owned();
        let beside = |bytes| folder.file(bytes).expect("there").path().to_owned();
        let (listed, replaced) = (beside(100), beside(200));
        fs::write(&listed, b"half").expect("written");
        // What the folder removes and takes off its list, as it is now.
        let kept = |path: &Path| path.with_file_name(format!("{}-kept", path.display()));
        fs::copy(&name, kept(&name)).expect("copied");
        fs::hard_link(&listed, kept(&listed)).expect("linked");
        drop(folder);
        for path in [&name, &listed] {
            fs::rename(kept(path), path).expect("renamed");
        }
        let leave = |path: &Path, content: &[u8]| {
            use std::os::unix::fs::PermissionsExt;
            fs::write(path, content).expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
        };
        // Perhaps under the inode that was listed.
        leave(&replaced, b"of somebody");
        let foreign = dir.path().join(".iolab-scratch-0123456789abcdef.100");
        leave(&foreign, b"of another run");
        let empty = dir.path().join(".iolab-scratch-00000000000000ef");
        leave(&empty, b"");
        let under_it = dir.path().join(".iolab-scratch-00000000000000ef.4096");
        leave(&under_it, b"of somebody");
        let folder = Folder::open(dir.path(), &[300]).expect("made");
        assert!(!name.exists() && !listed.exists());
        assert!(
            [&replaced, &foreign, &empty, &under_it]
                .iter()
                .all(|path| path.exists())
        );
        let [removed, left] = folder.place().notes() else {
            panic!("{:?}", folder.place().notes());
        };
        assert!(
            removed.contains("left by a run that was killed"),
            "{removed}"
        );
        assert!(
            left.contains("left alone") && left.contains("and 1 more"),
            "{left}"
        );
    }

    #[test]
    fn only_a_directory_will_do() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        fs::write(&file, "mine").expect("written");
        for path in [file.as_path(), Path::new("/dev/null")] {
            let error = Folder::open(path, &[1]).expect_err("not a directory");
            assert_eq!(error.kind(), Kind::Usage);
            assert!(error.message().contains("is not a directory"), "{error}");
        }
        assert_eq!(fs::read(&file).expect("read"), b"mine");
    }

    #[test]
    fn sizes_are_checked_one_by_one_and_together() {
        let dir = tempfile::tempdir().expect("a folder");
        let huge = i64::MAX as u64 - (2 << 20);
        for (sizes, kind) in [
            (&[0, 1][..], Kind::Usage),
            (&[huge, huge], Kind::Usage),
            (&[1 << 50, 1], Kind::Refused),
        ] {
            let error = Folder::open(dir.path(), sizes).expect_err("too much");
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(entries(dir.path()), 0);
    }
}
