//! Scratch files of exact sizes for programs that read a file to its end, in a private folder in one directory.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rustix::fs::FileType;

use iolab_workload::{Error, Result};

use super::lent_descriptor::{self, Lent};
use super::private_folder::Private;
use super::scratch::{self, FOOTER_LEN, Scratch};
use super::space_sources::{Sources, bounded};
use super::{Size, Target, check_stores, path_lookup, users};

/// Scratch files of exact sizes. Dropping it removes them.
#[derive(Debug)]
pub struct ProgramFiles {
    // Dropped in this order: while the marker exists, the next run recognises the left-overs of a killed one.
    files: Vec<Target>,
    private: Private,
    marker: Target,
}

impl ProgramFiles {
    /// Makes a file for each size in the directory PATH. The files are empty until [`ProgramFiles::fill`] has
    /// filled them.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when PATH is not a directory, or a size is 0 or more than
    /// a file can have. Of kind [`Refused`](iolab_workload::Kind::Refused) when all files together would fill
    /// up the file system, or programs cannot get access to them.
    pub fn open(path: &Path, sizes: &[u64]) -> Result<Self> {
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
        lent_descriptor::check()?;
        let dir = found.path;
        scratch::check_writable(&found.handle, &dir)?;
        let mut notes = scratch::remove_leftovers(&found.handle, &dir, &[]);
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
        let private = scratch.folder()?;
        let files = sizes
            .iter()
            .map(|bytes| {
                let (scratch, file) = scratch.within(&private, *bytes)?;
                Ok(Target::of_scratch(scratch, file, *bytes, Vec::new()))
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            files,
            private,
            marker: Target::of_scratch(scratch, file, 0, notes).with_memory_note(),
        })
    }

    /// An empty target that stands for the directory: its device, its file system, the remarks on it.
    pub fn place(&self) -> &Target {
        &self.marker
    }

    /// File of this size.
    pub fn file(&self, bytes: u64) -> Option<&Target> {
        self.files.iter().find(|file| file.size() == bytes)
    }

    /// Gives the file of this size to a program, by a name in the private folder: many programs ignore files
    /// that are not regular by `lstat`, such as a descriptor in `/proc`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) when there is no such file; of kind
    /// [`Refused`](iolab_workload::Kind::Refused) when other processes cannot open the descriptors of this one.
    pub fn lend(&self, bytes: u64) -> Result<Lent> {
        self.file(bytes).ok_or_else(|| {
            Error::usage(format!("there is no file of {bytes} bytes for programs"))
        })?;
        let private = &self.private;
        Lent::of(
            private.dir(),
            private.path(),
            Some(&scratch::name_within(bytes)),
        )
    }

    /// Removes files that programs have made in the folder, so that each program finds the same state.
    pub fn sweep(&self) {
        let own = self.files.iter().filter_map(|file| {
            let stat = rustix::fs::fstat(&file.file).ok()?;
            Some((scratch::name_within(file.size()), stat))
        });
        self.private.sweep(&own.collect::<Vec<_>>());
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(Target::size).sum()
    }

    /// Fills every file with incompressible data and syncs it. `progress` gets the bytes written so far.
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

    /// Removes all files, and reports failures.
    ///
    /// # Errors
    /// Another process has replaced one of them, or it cannot be removed; the others are removed all the same.
    pub fn remove(mut self) -> Result<()> {
        self.sweep();
        let removed = self.files.drain(..).map(Target::remove);
        let removed = removed.fold(Ok(()), Result::and);
        let removed = removed.and(self.private.remove());
        removed.and(self.marker.remove())
    }
}

/// Size of all files together.
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
    use iolab_workload::Kind;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("readable").count()
    }

    #[test]
    fn files_have_exactly_the_size_asked_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let sizes = [1, 4095, 4096, 1 << 20];
        let folder = ProgramFiles::open(dir.path(), &sizes).expect("made");
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
    fn dropping_removes_all_and_a_stop_interrupts() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = ProgramFiles::open(dir.path(), &[100, 200]).expect("made");
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
    fn next_run_removes_a_killed_runs_files() {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let dir = tempfile::tempdir().expect("a folder");
        if !knows_births(dir.path()) {
            return;
        }
        let folder = ProgramFiles::open(dir.path(), &[100, 200]).expect("made");
        let name = folder.place().path().to_owned();
        let listed = folder.file(100).expect("there").path().to_owned();
        let private = listed.parent().expect("a folder").to_owned();
        fs::write(&listed, b"half").expect("written");
        // A copy of everything that dropping removes or unlists.
        let kept = |path: &Path| path.with_file_name(format!("{}-kept", path.display()));
        let other_main = dir.path().join(".iolab-scratch-00000000000000aa");
        fs::copy(&name, kept(&name)).expect("copied");
        fs::copy(&name, &other_main).expect("copied");
        fs::hard_link(&listed, private.join("kept")).expect("linked");
        fs::rename(&private, kept(&private)).expect("renamed");
        drop(folder);
        for path in [&name, &private] {
            fs::rename(kept(path), path).expect("renamed");
        }
        fs::rename(private.join("kept"), &listed).expect("renamed");
        output(&private.join("100.zst"));
        let leave = |path: &Path, content: &[u8]| {
            fs::write(path, content).expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("set");
        };
        let beside =
            |main: &str, ending: &str| dir.path().join(format!(".iolab-scratch-{main}{ending}"));
        let (empty, under_it) = (
            beside("00000000000000ef", ""),
            beside("00000000000000ef", ".4096.0"),
        );
        leave(&empty, b"");
        leave(&under_it, b"of another user");
        // Folders of no run, and of a run that does not list the folder.
        let foreign = ["0123456789abcdef", "00000000000000aa"].map(|main| {
            let foreign = beside(main, ".files");
            fs::DirBuilder::new()
                .mode(0o700)
                .create(&foreign)
                .expect("made");
            let file = foreign.join("100");
            leave(&file, b"of another user");
            file
        });
        // A foreign file keeps the folder, and the next run tries again.
        fs::create_dir(private.join("full")).expect("made");
        fs::write(private.join("full/file"), "of others").expect("written");
        let folder = ProgramFiles::open(dir.path(), &[300]).expect("made");
        assert!(name.exists() && private.exists() && !other_main.exists());
        let told = |folder: &ProgramFiles| {
            let notes = folder.place().notes().join("\n");
            let notes = notes.replace(&name.display().to_string(), "DIR/.iolab-scratch-NAME");
            notes.replace(&dir.path().display().to_string(), "DIR")
        };
        insta::assert_snapshot!(told(&folder), @r"
        removed DIR/.iolab-scratch-00000000000000aa, a scratch file of 64 KiB left by a run that was killed
        left DIR/.iolab-scratch-NAME.files of a run that was killed: it holds what iolab has not made; look into it and remove it by hand
        left alone in DIR: .iolab-scratch-00000000000000aa.files, .iolab-scratch-00000000000000ef, .iolab-scratch-00000000000000ef.4096.0 and 1 more: named like scratch files, but not known to be iolab's; remove by hand what you do not need
        ");
        drop(folder);
        fs::remove_dir_all(private.join("full")).expect("removed");
        let folder = ProgramFiles::open(dir.path(), &[300]).expect("made");
        assert!(!name.exists() && !private.exists());
        let others = foreign.iter().chain([&empty, &under_it]);
        assert!(others.clone().all(|path| path.exists()));
        insta::assert_snapshot!(told(&folder), @r"
        removed DIR/.iolab-scratch-NAME, a scratch file of 64 KiB left by a run that was killed
        left alone in DIR: .iolab-scratch-00000000000000aa.files, .iolab-scratch-00000000000000ef, .iolab-scratch-00000000000000ef.4096.0 and 1 more: named like scratch files, but not known to be iolab's; remove by hand what you do not need
        ");
    }

    #[test]
    fn sweep_removes_only_files_that_programs_made() {
        let dir = tempfile::tempdir().expect("a folder");
        if !knows_births(dir.path()) {
            return;
        }
        let older = dir.path().join("older");
        fs::write(&older, "of others").expect("written");
        let folder = ProgramFiles::open(dir.path(), &[100]).expect("made");
        let file = folder.file(100).expect("there").path().to_owned();
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
        let folder = ProgramFiles::open(dir.path(), &[100]).expect("made");
        let file = folder.file(100).expect("there").path().to_owned();
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
        let folder = ProgramFiles::open(dir.path(), &[100]).expect("made");
        folder
            .fill(1, &AtomicBool::new(false), &mut |_| {})
            .expect("filled");
        let file = folder.file(100).expect("there");
        let path = file.path().to_owned();
        let content = fs::read(&path).expect("read");
        let private = path.parent().expect("a folder");
        let mode = fs::metadata(private).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::rename(private, dir.path().join("elsewhere")).expect("renamed");
        fs::create_dir(private).expect("made");
        fs::write(&path, "of others").expect("written");
        let lent = folder.lend(100).expect("lent");
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
            let error = ProgramFiles::open(path, &[1]).expect_err("not a directory");
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
            let error = ProgramFiles::open(dir.path(), sizes).expect_err("too much");
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(entries(dir.path()), 0);
    }
}
