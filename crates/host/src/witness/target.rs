//! File, device or directory that the user named, before and after the observation.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iolab_storage::{Opened, Stack};
use iolab_workload::medium::Medium;
use iolab_workload::region_state::Region;
use iolab_workload::witness::{ObservedFile, ObservedTarget};

use super::seen_file::SeenFile;
use crate::counters::{FileRange, extents, residency};

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
fn range_of(opened: &Opened) -> Option<FileRange<'_>> {
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
        after: seen
            .opened
            .as_ref()
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
        std::fs::write(file.path(), [1; 1 << 16]).expect("written");
        let target = Target::before(file.path());
        assert!(target.opened.is_none() && target.region.before.is_some());
        drop(file);
        let after = target.after();
        assert_eq!((after.bytes, after.region.after), (Some(1 << 16), None));
    }
}
