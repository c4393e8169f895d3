//! A file that processes were seen to have open. It is not held open here: that would keep them from unmounting its file system, detaching
//! its device, or getting a lease.

use std::fs::{self, Metadata, read_dir};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use rustix::fs::{Mode, OFlags};

use super::Number;

/// Most entries of a folder among which a file is looked for that was renamed.
const ENTRIES_MAX: usize = 4096;

/// A file, by device, inode and, where the file system keeps it, when it was made: file systems give the number of an inode again.
pub(super) type FileId = (u64, u64, Option<SystemTime>);

/// A file that was seen open.
#[derive(Debug)]
pub(super) struct SeenFile {
    /// Its name when it was last seen open, or at the end.
    pub(super) path: PathBuf,
    pub(super) medium: Medium,
    /// Whether the device that it lies on is known.
    pub(super) has_device: bool,
    /// That device.
    pub(super) device: Option<Number>,
    /// Its size when it was last seen open, bytes.
    pub(super) bytes: u64,
    /// The file, opened for a last look at the end.
    pub(super) opened: Option<Opened>,
    /// Whether its path led to it here when it was first seen; not that of a file in another mount namespace.
    pub(super) is_reachable: bool,
    pub(super) is_read: bool,
    pub(super) is_written: bool,
    /// What it lies on, while it was seen as the standard output or standard error of this process alone.
    pub(super) report_on: Option<Stack>,
}

impl SeenFile {
    /// Its size, bytes: that of a device is as it was seen, for one that was detached has none.
    pub(super) fn bytes(&self) -> u64 {
        let file = self.opened.as_ref().filter(|opened| opened.is_file());
        file.and_then(Opened::bytes).unwrap_or(self.bytes)
    }

    /// Notes its size and name: it was seen open once more.
    pub(super) fn seen_again(&mut self, metadata: &Metadata, link: &Path) {
        if metadata.is_file() {
            self.bytes = metadata.len();
        }
        if let Ok(path) = fs::read_link(link) {
            self.path = path;
        }
    }

    /// Opens it for a last look. One that is out of reach stays closed, as in a file system that was unmounted; false of one that was
    /// deleted, or moved to where it is not found.
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
    /// The way to it through `/proc`.
    fn link(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    fn open(&self) -> Option<Opened> {
        Opened::open(&self.link()).ok()
    }
}

/// Where a path led to this file, if it still does. Whatever else is there by now is not opened: that alone may do something.
fn place_of(path: &Path, id: FileId) -> Option<Place> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let place = Place(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = fs::metadata(place.link()).ok()?;
    (id_of(&found) == id).then_some(place)
}

/// Where a file is that has another name in the same folder by now.
fn renamed(path: &Path, id: FileId) -> Option<(PathBuf, Place)> {
    let entries = read_dir(path.parent()?).ok()?.flatten();
    let mut same = entries
        .take(ENTRIES_MAX)
        .filter(|entry| entry.ino() == id.1);
    same.find_map(|entry| Some((entry.path(), place_of(&entry.path(), id)?)))
}

/// Whether the file system of a file is no longer at its place: the nearest folder there is one of another.
fn is_unmounted(path: &Path, id: FileId) -> bool {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find_map(|folder| fs::metadata(folder).ok());
    nearest.is_some_and(|folder| folder.dev() != id.0)
}
