//! A file that processes were seen to have open. It is not held open here, which would prevent them from
//! unmounting its file system, detaching its device, or getting a lease.

use std::fs::{self, Metadata, read_dir};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use rustix::fs::{Mode, OFlags};

use super::Number;

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
struct Place(std::os::fd::OwnedFd);

impl Place {
    /// Path to it through `/proc`.
    fn link(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    fn open(&self) -> Option<Opened> {
        Opened::open(&self.link()).ok()
    }
}

/// Place of the file at a path, if it is still there. Other files are not opened: that alone may have an
/// effect.
fn place_of(path: &Path, id: FileId) -> Option<Place> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = Place(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = fs::metadata(place.link()).ok()?;
    (id_of(&found) == id).then_some(place)
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
