//! Lookup of the object at a path without opening it. Nothing blocks or is disturbed, and the object that was
//! checked is the one opened later.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use super::errno;

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
