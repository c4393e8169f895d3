//! Targets for programs: scratch files, one for each size, in one scratch directory.

use std::path::Path;

use rustix::fs::FileType;

use iolab_workload::{Error, Result};

use super::path_lookup::Lent;
use super::scratch::{self, Scratch};
use super::space_sources::{Sources, bounded};
use super::{Size, Target, check_stores, no_scratch, path_lookup, users};

impl Target {
    /// Makes a file for each size in the directory PATH. The target is an empty file that stands for the directory: its
    /// device, its file system, the remarks on it. Its private files are those for programs.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when PATH is not a directory, or a size is 0 or more than
    /// a file can have. Of kind [`Refused`](iolab_workload::Kind::Refused) when all files together would fill
    /// up the file system, or programs cannot get access to them.
    pub fn for_programs(path: &Path, sizes: &[u64]) -> Result<Self> {
        let found = path_lookup::find(path)?;
        if found.file_type() != FileType::Directory {
            return Err(Error::usage(format!(
                "{} is not a directory: iolab makes the files there that programs read",
                path.display()
            ))
            .hint("give a directory; the files in it are removed at the end"));
        }
        check_stores(&found)?;
        users::check_directory(&found)?;
        path_lookup::check_lending()?;
        let dir = found.path;
        scratch::check_writable(&found.handle, &dir)?;
        let mut notes = scratch::remove_leftovers(&found.handle, &dir, &[]);
        let total = total(sizes)?;
        let sources = Sources::of_directory(&found.handle, &dir)?;
        match sources.room()? {
            Some((room, by)) => {
                let fitted = total.of_room(room, &dir);
                fitted.map_err(|error| bounded(error, by, &dir))?;
            }
            None => notes.push(format!(
                "the file system of {} does not say how much space is free",
                dir.display()
            )),
        }
        let (scratch, file) = Scratch::create(&found.handle, &dir, 0)?;
        scratch.check_private()?;
        let private = sizes.iter().map(|bytes| {
            let (scratch, file) = scratch.sized_beside(*bytes)?;
            Ok(Self::of_scratch(scratch, file, *bytes, Vec::new()))
        });
        let private = private.collect::<Result<_>>()?;
        let mut place = Self::of_scratch(scratch, file, 0, notes).with_memory_note();
        place.private = private;
        Ok(place)
    }

    /// File for programs of this size.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no such file.
    pub fn sized_file(&self, bytes: u64) -> Result<&Self> {
        let file = self.private.iter().find(|file| file.size() == bytes);
        file.ok_or_else(|| Error::usage(format!("there is no file of {bytes} bytes for programs")))
    }

    /// Gives the file of this size to a program, by a name in the scratch directory: many programs ignore files
    /// that are not regular by `lstat`, such as a descriptor in `/proc`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no such file; of kind
    /// [`Refused`](iolab_workload::Kind::Refused) when other processes cannot open the descriptors of this one.
    pub fn lend_sized(&self, bytes: u64) -> Result<Lent> {
        self.sized_file(bytes)?;
        let scratch = self.scratch.as_ref();
        let scratch = scratch.ok_or_else(|| no_scratch(self.path()))?;
        let name = scratch::name_within(bytes);
        Lent::of(scratch.dir(), scratch.dir_path(), Some(&name))
    }

    /// Removes files that programs have made in the directory, so that each program finds the same state.
    pub fn sweep(&self) {
        let own = self.private.iter().chain([self]);
        let own = own.filter_map(|file| rustix::fs::fstat(&file.file).ok());
        if let Some(scratch) = &self.scratch {
            scratch.sweep(&own.collect::<Vec<_>>());
        }
    }
}

/// Size of all files together.
fn total(sizes: &[u64]) -> Result<Size> {
    for bytes in sizes {
        Size::Exactly(*bytes).check()?;
    }
    let total = Size::Exactly(sizes.iter().copied().fold(0, u64::saturating_add));
    total.check()?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use iolab_workload::Kind;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("readable").count()
    }

    #[test]
    fn files_have_exactly_the_size_asked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let sizes = [1, 4095, 4096, 1 << 20];
        let folder = Target::for_programs(dir.path(), &sizes).expect("made");
        let mut last = 0;
        folder
            .fill(3, &AtomicBool::new(false), &mut |done| last = done)
            .expect("filled");
        assert_eq!((last, folder.fill_bytes()), (1_056_768, 1_056_768));
        for bytes in sizes {
            let file = folder.sized_file(bytes).expect("there");
            let content = fs::read(file.path()).expect("readable");
            assert_eq!(content.len() as u64, bytes);
        }
        let content =
            fs::read(folder.sized_file(1 << 20).expect("there").path()).expect("readable");
        assert!(
            !content
                .chunks(4096)
                .any(|page| page.iter().all(|b| *b == 0))
        );
        assert!(folder.sized_file(2).is_err());
        folder.remove().expect("removed");
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn dropping_removes_all_and_a_stop_interrupts() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Target::for_programs(dir.path(), &[100, 200]).expect("made");
        let error = folder.fill(3, &AtomicBool::new(true), &mut |_| {});
        assert_eq!(error.expect_err("stopped").kind(), Kind::Interrupted);
        drop(folder);
        assert_eq!(entries(dir.path()), 0);
    }

    /// Whether the file system records creation times; a skip if it does not.
    #[track_caller]
    fn knows_births(folder: &Path) -> bool {
        let born = fs::metadata(folder).and_then(|data| data.created());
        born.map_err(|error| needs::skip(needs::Need::BirthTimes, error))
            .is_ok()
    }

    /// A file that is younger than its folder, by the clock of the file system.
    fn output(path: &Path) {
        let born = |path: &Path| fs::metadata(path).and_then(|data| data.created());
        let folder = born(path.parent().expect("a folder")).expect("a time");
        loop {
            fs::write(path, "of a program").expect("written");
            if born(path).expect("a time") > folder {
                return;
            }
            fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn next_run_removes_what_programs_made() {
        let dir = tempfile::tempdir().expect("a folder");
        if !knows_births(dir.path()) {
            return;
        }
        let folder = Target::for_programs(dir.path(), &[100, 200]).expect("made");
        let private = folder.sized_file(100).expect("there").path().parent();
        let private = private.expect("a folder").to_owned();
        // A copy, as of a killed run.
        let killed = dir.path().join(".iolab-scratch-00000000000000aa");
        fs::create_dir(&killed).expect("made");
        for name in ["lock", "data", "100", "200"] {
            fs::copy(private.join(name), killed.join(name)).expect("copied");
        }
        drop(folder);
        output(&killed.join("100.zst"));
        fs::create_dir(killed.join("full")).expect("made");
        fs::write(killed.join("full/file"), "of others").expect("written");
        let notes = || {
            let folder = Target::for_programs(dir.path(), &[300]).expect("made");
            let notes = folder.notes().join("\n");
            notes.replace(&dir.path().display().to_string(), "DIR")
        };
        // A foreign file keeps the folder, and the next run tries again.
        insta::assert_snapshot!(notes(), @"left DIR/.iolab-scratch-00000000000000aa of a run that was killed: it holds what iolab has not made or cannot remove; look into it and remove it by hand");
        assert_eq!(entries(&killed), 2);
        fs::remove_file(killed.join("full/file")).expect("removed");
        insta::assert_snapshot!(notes(), @"removed DIR/.iolab-scratch-00000000000000aa, a scratch directory of 4 KiB left by a run that was killed");
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn sweep_removes_only_files_that_programs_made() {
        let dir = tempfile::tempdir().expect("a folder");
        if !knows_births(dir.path()) {
            return;
        }
        let older = dir.path().join("older");
        fs::write(&older, "of others").expect("written");
        let folder = Target::for_programs(dir.path(), &[100]).expect("made");
        let file = folder.sized_file(100).expect("there").path().to_owned();
        output(&file.with_extension("zst"));
        let moved = file.with_file_name("moved");
        fs::rename(&older, &moved).expect("moved");
        folder.sweep();
        assert!(!file.with_extension("zst").exists());
        assert!(file.exists() && moved.exists());
        let error = folder.remove().expect_err("not empty");
        assert_eq!(error.kind(), Kind::Failed, "{error}");
        assert_eq!(fs::read(&moved).expect("read"), b"of others");
        assert!(!file.exists());
    }

    #[test]
    fn link_in_place_of_a_file_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        if !knows_births(dir.path()) {
            return;
        }
        let folder = Target::for_programs(dir.path(), &[100]).expect("made");
        let file = folder.sized_file(100).expect("there").path().to_owned();
        fs::remove_file(&file).expect("removed");
        loop {
            std::os::unix::fs::symlink("/etc/passwd", &file).expect("linked");
            folder.sweep();
            // The file system's clock may be coarse.
            if file.symlink_metadata().is_err() {
                break;
            }
            fs::remove_file(&file).expect("removed");
        }
        let _ = folder.remove();
        assert_eq!(entries(dir.path()), 0);
    }

    #[test]
    fn program_gets_a_regular_file_after_a_rename() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let folder = Target::for_programs(dir.path(), &[100]).expect("made");
        folder
            .fill(1, &AtomicBool::new(false), &mut |_| {})
            .expect("filled");
        let file = folder.sized_file(100).expect("there");
        let path = file.path().to_owned();
        let content = fs::read(&path).expect("read");
        let private = path.parent().expect("a folder");
        let mode = fs::metadata(private).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::rename(private, dir.path().join("elsewhere")).expect("renamed");
        fs::create_dir(private).expect("made");
        fs::write(&path, "of others").expect("written");
        let lent = folder.lend_sized(100).expect("lent");
        assert_eq!(lent.shown(), path);
        assert!(fs::symlink_metadata(lent.given()).expect("there").is_file());
        assert_eq!(fs::read(lent.given()).expect("read"), content);
        file.check_path().expect_err("it is elsewhere");
        folder.remove().expect_err("it is elsewhere");
        assert_eq!(fs::read_dir(private).expect("there").count(), 1);
    }

    #[test]
    fn only_a_directory_will_do() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        fs::write(&file, "mine").expect("written");
        for path in [file.as_path(), Path::new("/dev/null")] {
            let error = Target::for_programs(path, &[1]).expect_err("not a directory");
            assert_eq!(error.kind(), Kind::Usage);
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
            let error = Target::for_programs(dir.path(), sizes).expect_err("too much");
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(entries(dir.path()), 0);
    }
}
