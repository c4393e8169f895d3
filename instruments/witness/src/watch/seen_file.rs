//! A file that processes were seen to have open. It is not held open here, which would prevent them from
//! unmounting its file system, detaching its device, or getting a lease.
//!
//! File, device or directory that the user named, before and after the observation.

use std::fs::{self, Metadata, read_dir};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};

use super::Number;
use crate::observed::{ObservedFile, ObservedTarget};
use iolab_host::counters::{FileRange, extents, residency};
use iolab_storage::{Opened, Stack};
use iolab_workload::region_state::Medium;
use iolab_workload::region_state::Region;

/// Most entries of a folder that are searched for a renamed file.
const ENTRIES_MAX: usize = 4096;

/// Identity of a file: device, inode and, where the file system keeps it, time of creation. File systems reuse
/// inode numbers.
pub(super) type FileId = (u64, u64, Option<SystemTime>);

/// A file that was seen open.
#[derive(Debug)]
pub(super) struct SeenFile {
    /// Path when it was last seen open, or at the end.
    pub(super) path: PathBuf,
    pub(super) medium: Medium,
    /// Whether its device is known.
    pub(super) has_device: bool,
    /// Device that it lies on.
    pub(super) device: Option<Number>,
    /// Size when it was last seen open, bytes.
    pub(super) bytes: u64,
    /// The file, opened for a last look at the end.
    pub(super) opened: Option<Opened>,
    /// Whether its path led to it here when first seen; false in another mount namespace.
    pub(super) is_reachable: bool,
    pub(super) is_read: bool,
    pub(super) is_written: bool,
    /// Stack below it, while it was only seen as the standard output or error of this process.
    pub(super) report_on: Option<Stack>,
}

impl SeenFile {
    /// Size, bytes. A device keeps the size at which it was seen, because a detached one has none.
    pub(super) fn bytes(&self) -> u64 {
        let file = self.opened.as_ref().filter(|opened| opened.is_file());
        file.and_then(Opened::bytes).unwrap_or(self.bytes)
    }

    /// Updates size and name: the file was seen open once more.
    pub(super) fn seen_again(&mut self, metadata: &Metadata, link: &Path) {
        if metadata.is_file() {
            self.bytes = metadata.len();
        }
        if let Ok(path) = fs::read_link(link) {
            self.path = path;
        }
    }

    /// Opens the file for a last look. A file out of reach stays closed, as in an unmounted file system. False
    /// for a file that was deleted, or moved to an unknown place.
    pub(super) fn look_again(&mut self, id: FileId) -> bool {
        if !self.is_reachable {
            return true;
        }
        if let Some(place) = place_of(&self.path, id) {
            self.opened = place.open();
            return true;
        }
        let Some((path, place)) = renamed(&self.path, id) else {
            return is_unmounted(&self.path, id);
        };
        self.path = path;
        self.opened = place.open();
        true
    }
}

pub(super) fn id_of(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

pub(super) fn is_deleted(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.nlink() == 0
}

/// A path, held so that nothing else takes its place.
pub(super) struct Place(std::os::fd::OwnedFd);

impl Place {
    /// Object at a path, without opening it: that alone may have an effect.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Some(Self(rustix::fs::open(path, flags, Mode::empty()).ok()?))
    }

    /// Path to it through `/proc`.
    fn link(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    pub(super) fn metadata(&self) -> Option<Metadata> {
        fs::metadata(self.link()).ok()
    }

    pub(super) fn open(&self) -> Option<Opened> {
        Opened::open(&self.link()).ok()
    }
}

/// Place of the file at a path, if it is still there.
fn place_of(path: &Path, id: FileId) -> Option<Place> {
    let place = Place::at(path)?;
    (id_of(&place.metadata()?) == id).then_some(place)
}

/// Place of the file under a new name in the same folder.
fn renamed(path: &Path, id: FileId) -> Option<(PathBuf, Place)> {
    let entries = read_dir(path.parent()?).ok()?.flatten();
    let mut same = entries
        .take(ENTRIES_MAX)
        .filter(|entry| entry.ino() == id.1);
    same.find_map(|entry| Some((entry.path(), place_of(&entry.path(), id)?)))
}

/// Whether the file's file system was unmounted: the nearest folder there belongs to another one.
fn is_unmounted(path: &Path, id: FileId) -> bool {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find_map(|folder| fs::metadata(folder).ok());
    nearest.is_some_and(|folder| folder.dev() != id.0)
}

/// The named target, before and after.
pub(super) struct Target {
    path: PathBuf,
    /// Open during a look only. The program must be able to delete, unmount or detach it, and the kernel writes
    /// back and drops a device's pages when the program closes it.
    opened: Option<Opened>,
    is_device: bool,
    medium: Option<Medium>,
    pub(super) stack: Option<Stack>,
    bytes: Option<u64>,
    region: Region,
}

impl Target {
    pub(super) fn before(path: &Path) -> Self {
        let opened = Opened::open(path).ok();
        // A file that is yet to be made lies where its folder does.
        let folder = || {
            Opened::open(
                path.parent()
                    .filter(|parent| !parent.as_os_str().is_empty())
                    .unwrap_or(Path::new(".")),
            )
            .ok()
        };
        let stack = opened.as_ref().map(|opened| opened.stack().clone());
        let mut target = Self {
            path: path.to_owned(),
            stack: stack.or_else(|| folder().map(|folder| folder.stack().clone())),
            bytes: opened.as_ref().and_then(Opened::bytes),
            medium: opened.as_ref().map(Opened::medium),
            is_device: opened.as_ref().is_some_and(is_device),
            opened,
            region: Region::default(),
        };
        target.region.before = target.look(residency);
        let is_file = target.opened.as_ref().is_some_and(Opened::is_file);
        target.region.extents = target.look(extents).filter(|_| is_file);
        target.opened = None;
        target
    }

    fn look<T>(&self, look: impl Fn(&[FileRange<'_>]) -> Option<T>) -> Option<T> {
        let opened = self.opened.as_ref()?;
        look(&[range_of(opened)?])
    }

    pub(super) fn after(mut self) -> ObservedTarget {
        self.opened = Opened::open(&self.path).ok();
        let opened = self.opened.as_ref();
        let medium = self.medium.or_else(|| opened.map(Opened::medium));
        ObservedTarget {
            medium: medium.unwrap_or(Medium::Storage),
            bytes: match self.medium {
                Some(_) => self.bytes,
                None => opened.and_then(Opened::bytes),
            },
            is_device: self.is_device || opened.is_some_and(is_device),
            region: Region {
                after: self.look(residency),
                ..self.region
            },
            path: self.path,
        }
    }
}

fn is_device(opened: &Opened) -> bool {
    let metadata = opened.holder().metadata();
    metadata.is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Whole range of a file or device; `None` for a target without bytes.
pub(super) fn range_of(opened: &Opened) -> Option<FileRange<'_>> {
    let length = opened.bytes().filter(|bytes| *bytes > 0)?;
    Some(FileRange {
        file: opened.holder(),
        offset: 0,
        length,
    })
}

pub(super) fn file_at_end(seen: &SeenFile) -> ObservedFile {
    let opened = seen.opened.as_ref();
    let metadata = opened.and_then(|opened| opened.holder().metadata().ok());
    let file = metadata.filter(|metadata| metadata.file_type().is_file());
    ObservedFile {
        path: seen.path.clone(),
        medium: seen.medium,
        bytes: seen.bytes(),
        // Units of 512 bytes on every file system of Linux, by stat(2).
        allocated_bytes: file.map(|file| file.blocks().saturating_mul(512)),
        is_read: seen.is_read,
        is_written: seen.is_written,
        has_device: seen.has_device,
        after: opened
            .and_then(range_of)
            .and_then(|range| residency(&[range])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_can_delete_the_named_file() {
        let file = tempfile::NamedTempFile::new_in(needs::folder_on_disk().expect("a folder"))
            .expect("a file");
        fs::write(file.path(), [1; 1 << 16]).expect("written");
        let target = Target::before(file.path());
        assert!(target.opened.is_none() && target.region.before.is_some());
        drop(file);
        let after = target.after();
        assert_eq!((after.bytes, after.region.after), (Some(1 << 16), None));
    }
}
