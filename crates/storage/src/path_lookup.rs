//! The object at a path: held without opening it, and lent to other programs through iolab's own descriptor. The object that
//! was checked is the one that is opened.

use std::fs::File;
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;

use super::{Target, errno};

/// An object of the file system, held by an `O_PATH` descriptor.
#[derive(Debug)]
pub(super) struct NamedObject {
    /// Path, with symlinks resolved if the user named a symlink.
    pub(super) path: PathBuf,
    /// Symlink that the user named.
    pub(super) link: Option<PathBuf>,
    pub(super) handle: OwnedFd,
    pub(super) stat: Stat,
}

impl NamedObject {
    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Opens exactly the object that was found.
    pub(super) fn open(&self, flags: OFlags) -> std::result::Result<File, Errno> {
        open_same(&self.handle, &self.path, flags)
    }
}

/// Looks a path up; a symlink is followed and remembered.
///
/// # Errors
/// The path does not exist, or is out of reach.
pub(super) fn find(path: &Path) -> Result<NamedObject> {
    if path.as_os_str().is_empty() {
        return Err(Error::usage("the target's path is empty")
            .hint("give a directory, a file or a block device; `.` is the current directory"));
    }
    let (handle, stat) = hold(path).map_err(|errno| missing(path, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Ok(NamedObject {
            path: path.to_owned(),
            link: None,
            handle,
            stat,
        });
    }
    let real = std::fs::canonicalize(path).map_err(|error| broken_link(path, &error))?;
    let (handle, stat) = hold(&real).map_err(|errno| missing(&real, errno))?;
    Ok(NamedObject {
        path: real,
        link: Some(path.to_owned()),
        handle,
        stat,
    })
}

fn hold(path: &Path) -> std::result::Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    Ok((handle, stat))
}

fn missing(path: &Path, errno: Errno) -> Error {
    match errno {
        Errno::INVAL => Error::usage(format!("{} is not a path", path.display()))
            .hint("a path cannot contain a NUL byte"),
        _ => errno::on_path("find", path, errno),
    }
}

fn broken_link(path: &Path, error: &std::io::Error) -> Error {
    match (errno::of_std(error), std::fs::read_link(path)) {
        (Errno::NOENT, Ok(to)) => Error::usage(format!(
            "{} is a symlink to {}, which does not exist",
            path.display(),
            to.display()
        ))
        .hint("correct the link or give the real path"),
        (errno, _) => errno::on_path("follow", path, errno),
    }
}

/// A new open file description of the object that `fd` refers to, even if its path now names another.
///
/// Goes through `/proc/self/fd`; without `/proc` through `path`, which then has to name the same inode.
pub(super) fn open_same(
    fd: impl AsFd,
    path: &Path,
    flags: OFlags,
) -> std::result::Result<File, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    let magic = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    match rustix::fs::open(&*magic, flags, Mode::empty()) {
        Err(Errno::NOENT) => {}
        opened => return opened.map(File::from),
    }
    let wanted = rustix::fs::fstat(&fd)?;
    // Checked before the opening, because opening a FIFO at the same path would block.
    let now = rustix::fs::lstat(path)?;
    if !same_inode(&wanted, &now) {
        return Err(Errno::STALE);
    }
    let opened = rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
    match same_inode(&wanted, &rustix::fs::fstat(&opened)?) {
        true => Ok(File::from(opened)),
        false => Err(Errno::STALE),
    }
}

/// Whether both describe one inode.
pub(super) fn same_inode(a: &Stat, b: &Stat) -> bool {
    a.st_dev == b.st_dev && a.st_ino == b.st_ino
}

/// A file, as another program opens it and as people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lent {
    /// Name of a descriptor of this process, which every process of this user can open.
    descriptor: String,
    /// Readable path of the descriptor's object.
    holds: PathBuf,
    /// Name in the descriptor's folder; `None` if the descriptor is the file's own.
    name: Option<String>,
}

impl Lent {
    /// File by its own descriptor, or by its name in a folder that no other user reaches, for programs that do not follow
    /// symlinks.
    pub(super) fn of(holder: impl AsFd, path: &Path, name: Option<&str>) -> Result<Self> {
        Ok(Self {
            descriptor: lent_descriptor(holder)?,
            holds: from_root(path),
            name: name.map(str::to_owned),
        })
    }

    /// Path for the program to open, valid as long as the target is open.
    pub fn given(&self) -> PathBuf {
        self.named_in(Path::new(&self.descriptor))
    }

    /// Readable absolute path, for everything that is shown or stored.
    pub fn shown(&self) -> PathBuf {
        self.named_in(&self.holds)
    }

    fn named_in(&self, place: &Path) -> PathBuf {
        match &self.name {
            Some(name) => place.join(name),
            None => place.to_owned(),
        }
    }

    /// Output of the program, with readable paths in place of descriptor names.
    pub fn shown_in(&self, text: &str) -> String {
        let mut pieces = text.split(&self.descriptor);
        let mut shown = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            // `/proc/12/fd/7` is also the beginning of `/proc/12/fd/70`.
            match piece.starts_with(|c: char| c.is_ascii_digit()) {
                true => shown.push_str(&self.descriptor),
                false => shown.push_str(&self.holds.to_string_lossy()),
            }
            shown.push_str(piece);
        }
        shown
    }
}

impl Target {
    /// Gives the target to another program, which may write it only if iolab may.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): writing is wanted but the target was opened for
    /// reading, or other processes cannot open the descriptors of this one.
    pub fn lend(&self, write: bool) -> Result<Lent> {
        self.check_rights(write)?;
        Lent::of(&self.file, &self.path, None)
    }

    /// Checks that the path still names this target. The open object stays the same, but results under the path
    /// would be attributed to another file.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the path was renamed, replaced, removed or mounted
    /// over.
    pub fn check_path(&self) -> Result<()> {
        let is_it = match &self.scratch {
            Some(scratch) => scratch.is_at_its_path(),
            None => rustix::fs::fstat(&self.file)
                .and_then(|own| Ok(is_one_thing(&own, &rustix::fs::stat(&self.path)?)))
                .unwrap_or(false),
        };
        match is_it {
            true => Ok(()),
            false => Err(Error::refused(format!(
                "{} is no longer what iolab has opened: it or a directory above it was renamed, replaced, removed or mounted over",
                self.path.display()
            ))
            .hint("iolab has used the opened file only; no other process, and no program that is timed, may rename or replace the target or its directory during a run")),
        }
    }
}

/// Whether both describe one file, or one device by any node.
fn is_one_thing(a: &Stat, b: &Stat) -> bool {
    let kind = FileType::from_raw_mode(a.st_mode);
    match kind {
        FileType::BlockDevice | FileType::CharacterDevice => {
            kind == FileType::from_raw_mode(b.st_mode) && a.st_rdev == b.st_rdev
        }
        _ => same_inode(a, b),
    }
}

/// Checks that other processes can open the descriptors of this one through `/proc`.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the reason.
pub(super) fn check_lending() -> Result<()> {
    let root = File::open("/")
        .map_err(|error| errno::on_path("open", Path::new("/"), errno::of_std(&error)))?;
    lent_descriptor(&root).map(drop)
}

/// Name of a descriptor of this process for other processes.
pub(super) fn lent_descriptor(of: impl AsFd) -> Result<String> {
    let refused = |why: &str| {
        Error::refused(format!(
            "other programs cannot be given iolab's target: they open its descriptor in /proc, and {why}"
        ))
    };
    // Number of this process in the PID namespace that /proc shows.
    let own = std::fs::read_link("/proc/self").map_err(|error| {
        let why = format!("/proc cannot be used here: {error}");
        refused(&why).hint("mount /proc for the PID namespace of iolab: mount -t proc proc /proc")
    })?;
    let name = format!("/proc/{}/fd/{}", own.display(), of.as_fd().as_raw_fd());
    let behind = rustix::fs::statat(rustix::fs::CWD, &*name, AtFlags::empty());
    let held = rustix::fs::fstat(&of);
    let is_it = match (&behind, &held) {
        (Ok(behind), Ok(held)) => same_inode(behind, held),
        _ => false,
    };
    if !is_it {
        let why = match behind {
            Err(errno) => format!("{name} cannot be reached: {errno}"),
            Ok(_) => format!("{name} is another file"),
        };
        return Err(
            refused(&why).hint("run iolab where /proc shows its own processes (without hidepid)")
        );
    }
    // Without this flag, the kernel hides the descriptors of this process from all others (proc_pid_fd(5)).
    match rustix::process::dumpable_behavior() {
        Ok(DumpableBehavior::Dumpable) => Ok(name),
        _ => Err(refused(
            "this process has more rights than a program that it starts (set-user-ID, file capabilities, or a binary that cannot be read)",
        )
        .hint("start a plain copy of iolab with the rights of the user who runs it")),
    }
}

/// Absolute path, as far as it is known.
fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::{Consent, Need};
    use iolab_workload::Kind;

    #[test]
    fn program_gets_the_open_file_after_a_rename() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, "of iolab").expect("written");
        let target = Target::open(&path, &Need::reading(8)).expect("opens");
        target.check_path().expect("nothing has changed");
        std::fs::rename(&path, folder.path().join("old")).expect("renamed");
        for content in [None, Some("of another")] {
            if let Some(content) = content {
                std::fs::write(&path, content).expect("written");
            }
            let error = target.check_path().expect_err("replaced");
            assert_eq!(error.kind(), Kind::Refused);
            let lent = target.lend(false).expect("lent");
            assert_eq!(lent.shown(), path);
            let mut read = String::new();
            let mut file = File::open(lent.given()).expect("opens");
            file.read_to_string(&mut read).expect("readable");
            assert_eq!(read, "of iolab");
        }
    }

    #[test]
    fn a_directory_that_was_swapped_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let d = folder.path().join("d");
        std::fs::create_dir(&d).expect("made");
        let target = Target::open(&d, &Need::reading(4096)).expect("opens");
        target.check_path().expect("nothing has changed");
        std::fs::rename(&d, folder.path().join("e")).expect("renamed");
        std::fs::create_dir(&d).expect("made");
        let name = target.shared_path().file_name().expect("a name");
        let moved = folder.path().join("e").join(name);
        std::fs::rename(moved, target.shared_path()).expect("moved");
        // The name leads to the same file, but in another directory than the opened one.
        target.check_path().expect_err("swapped");
    }

    #[test]
    fn read_only_target_is_not_lent_for_writing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, "data").expect("written");
        let target = Target::open(&path, &Need::reading(4)).expect("opens");
        assert_eq!(
            target.lend(true).expect_err("no consent").kind(),
            Kind::Refused
        );
        drop(target);
        let need = Need {
            consent: Consent::Destroy,
            ..Need::writing(4)
        };
        let target = Target::open(&path, &need).expect("opens");
        target.lend(true).expect("consented");
    }

    #[test]
    fn program_output_is_shown_with_readable_paths() {
        let lent = Lent {
            descriptor: "/proc/12/fd/7".to_owned(),
            holds: "/d/files".into(),
            name: Some("4096".to_owned()),
        };
        assert_eq!(lent.shown_in("no name"), "no name");
        assert_eq!(
            lent.shown_in("/proc/12/fd/7/4096.gz: /proc/12/fd/70, (/proc/12/fd/7)"),
            "/d/files/4096.gz: /proc/12/fd/70, (/d/files)"
        );
    }
}
