//! A file, device or directory for inspection only: named by the user, or open in another program.

use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use iolab_workload::region_state::Medium;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, fstat, fstatfs, open, seek};

use super::device_stack::{Stack, device_below};
use super::{mounts, overlay, sysfs, users};

/// Object under inspection.
#[derive(Debug)]
pub struct Opened {
    file: File,
    holder: OnceCell<Option<File>>,
    // Cached: asked for more than once, at the cost of a walk through sysfs and the mount table.
    stack: OnceCell<Stack>,
}

impl Opened {
    /// Opens a path for reading without waiting for the holder of a lease, or the other end of a pipe.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(path: &Path) -> std::io::Result<Self> {
        Self::with(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// Holds the object at a path without opening it (`O_PATH`), which breaks no lease and keeps no device
    /// busy.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn named(path: &Path) -> std::io::Result<Self> {
        Self::with(path, OFlags::PATH)
    }

    fn with(path: &Path, flags: OFlags) -> std::io::Result<Self> {
        let file = open(path, flags | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self {
            file: file.into(),
            holder: OnceCell::new(),
            stack: OnceCell::new(),
        })
    }

    /// File that holds the bytes; for a file of an overlay, the file in a layer, if within reach.
    pub fn holder(&self) -> &File {
        let layer = self.holder.get_or_init(|| overlay::holder(&self.file));
        layer.as_ref().unwrap_or(&self.file)
    }

    /// Size, bytes; `None` for an object without one.
    pub fn bytes(&self) -> Option<u64> {
        let stat = fstat(&self.file).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => u64::try_from(stat.st_size).ok(),
            FileType::BlockDevice => seek(&self.file, SeekFrom::End(0))
                .ok()
                .or_else(|| sysfs::bytes_of(sysfs::number_of(&stat)?)),
            _ => None,
        }
    }

    /// Whether the target is a regular file.
    pub fn is_file(&self) -> bool {
        let stat = fstat(&self.file);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// Block devices below it, down to the disks, or the NFS mount that it lies on.
    pub fn stack(&self) -> &Stack {
        self.stack.get_or_init(|| self.find_stack())
    }

    fn find_stack(&self) -> Stack {
        let own = fstat(&self.file)
            .ok()
            .and_then(|stat| sysfs::number_of(&stat));
        if own.is_some() {
            return Stack::of_device(own);
        }
        let nfs = mounts::mount_of(&self.file).and_then(mounts::Mount::nfs);
        Stack::of_file(device_below(self.holder()), nfs)
    }

    /// Medium that holds its bytes.
    pub fn medium(&self) -> Medium {
        medium_of(self.holder(), || {
            self.stack().each().any(|one| one.in_remote_file)
        })
    }
}

/// Medium that holds the bytes of an open file. Only for storage, `is_in_remote_file` checks whether a device
/// below is in a file of another machine.
pub(super) fn medium_of(file: impl AsFd, is_in_remote_file: impl FnOnce() -> bool) -> Medium {
    match own_medium(file) {
        Medium::Storage if is_in_remote_file() => Medium::Elsewhere,
        medium => medium,
    }
}

/// Medium of an open file, whatever the devices below it lie on.
fn own_medium(file: impl AsFd) -> Medium {
    let kind = fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::CharacterDevice) => Medium::Memory,
        // Like `/dev/zero`.
        Ok(FileType::BlockDevice) if is_zeros(&file) => Medium::Memory,
        Ok(FileType::BlockDevice) => Medium::Storage,
        _ => match fstatfs(&file) {
            Ok(stat) if mounts::is_memory_fs(&stat) => Medium::Memory,
            Ok(stat) if mounts::is_served_fs(&stat) => Medium::Elsewhere,
            _ => Medium::Storage,
        },
    }
}

/// Whether a block device stores nothing and reads as zeros.
fn is_zeros(file: impl AsFd) -> bool {
    let number = fstat(file).ok().and_then(|stat| sysfs::number_of(&stat));
    number.is_some_and(users::stores_nothing)
}
