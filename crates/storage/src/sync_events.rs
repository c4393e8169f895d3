//! Place of a target's syncs among the kernel's trace events.

use std::path::Path;

use rustix::fs::fstat;

use super::device::Number;
use super::sectors::disk_of;
use super::{Target, mounts};
use iolab_workload::stages::Journal;

/// File systems of the kernel's ext4 driver, whose journals are in jbd2.
const EXT: [&str; 3] = ["ext2", "ext3", "ext4"];
/// Other file system with an event for each sync that it gets.
const XFS: &str = "xfs";

/// Attributes by which the syncs of a target are found in trace events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPlace {
    /// Device of the file system, as named in events of ext4, jbd2 and XFS; `None` for devices.
    pub file_system: Option<Number>,
    /// Inode number.
    pub inode: u64,
    /// Whether the file system has an event for each sync that it gets.
    pub names_syncs: bool,
    /// Visibility of the journal in events.
    pub journal: Journal,
}

impl Target {
    /// Attributes by which this target's syncs are found.
    pub fn sync_place(&self) -> SyncPlace {
        let inode = fstat(self.holder()).map_or(0, |stat| stat.st_ino);
        let Some(file_system) = self.filesystem() else {
            return SyncPlace {
                file_system: None,
                inode,
                names_syncs: false,
                journal: Journal::Absent,
            };
        };
        let device = self.device();
        let is_ext = EXT.contains(&file_system.kind.as_str());
        SyncPlace {
            file_system: device,
            inode,
            names_syncs: is_ext || file_system.kind == XFS,
            journal: match is_ext {
                true => of_ext(Path::new("/sys"), device),
                false => Journal::MetadataWrites,
            },
        }
    }
}

/// A mounted file system that has a trace event for each sync that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncedFileSystem {
    /// Device of the file system.
    pub number: Number,
    /// Disk that the device is, or is a partition of.
    pub disk: Number,
    /// Whether the disk has a request queue; other devices take bios directly.
    pub has_requests: bool,
    /// Visibility of the journal in events.
    pub journal: Journal,
    /// Whether the file system has an event for the end of each sync too.
    pub times_syncs: bool,
}

/// All file systems on block devices whose syncs the kernel traces, each once.
pub fn synced_file_systems() -> Vec<SyncedFileSystem> {
    let mountinfo = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let sys = Path::new("/sys");
    let mut all: Vec<SyncedFileSystem> = Vec::new();
    for mount in mounts::parse(&mountinfo) {
        let is_ext = EXT.contains(&mount.fs.kind.as_str());
        let is_known = all.iter().any(|known| known.number == mount.device);
        if is_known || !(is_ext || mount.fs.kind == XFS) {
            continue;
        }
        let Some(disk) = disk_of(sys, mount.device) else {
            continue;
        };
        all.push(SyncedFileSystem {
            number: mount.device,
            disk: disk.number,
            has_requests: disk.has_requests,
            journal: match is_ext {
                true => of_ext(sys, Some(mount.device)),
                false => Journal::MetadataWrites,
            },
            times_syncs: is_ext,
        });
    }
    all
}

/// Visibility of the journal of an ext file system on a device: its `journal_task` is jbd2's, if it has a
/// journal.
fn of_ext(sys: &Path, device: Option<Number>) -> Journal {
    let task = device.and_then(|(major, minor)| {
        let folder = sys.join(format!("dev/block/{major}:{minor}"));
        let own = std::fs::canonicalize(folder).ok()?;
        let told = sys.join("fs/ext4").join(own.file_name()?);
        std::fs::read_to_string(told.join("journal_task")).ok()
    });
    match task.is_some_and(|task| task.trim() == "<none>") {
        true => Journal::Absent,
        false => Journal::Commits,
    }
}

#[cfg(test)]
mod tests {
    use needs::Tree;

    use super::*;

    #[test]
    fn ext_has_a_journal_if_a_task_writes() {
        let sys = Tree::empty();
        for (name, number, task) in [("sdq1", "8:1", "271"), ("sdq2", "8:2", "<none>")] {
            let told = format!("fs/ext4/{name}");
            sys.files(&told, &[("journal_task", task)]);
            sys.link(&format!("dev/block/{number}"), &format!("devices/{name}"));
        }
        let of = |minor| of_ext(sys.path(), Some((8, minor)));
        assert_eq!([of(1), of(2)], [Journal::Commits, Journal::Absent]);
        // If that is unknown, commits are looked for.
        assert_eq!(of(3), Journal::Commits);
    }
}
