//! Map from the bytes of a target to the sectors of its disk.
//!
//! Place of a target's syncs among the kernel's trace events.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rustix::fs::fstat;

use super::fiemap::{DELALLOC, ENCODED, FiemapExtent, UNKNOWN, show_parts};
use super::sysfs::{self, Number};
use super::{Target, TargetKind, device_under, mounts};
use iolab_workload::Error;
use iolab_workload::stages::Journal;

/// Size of a sector, as the block layer counts, bytes.
const SECTOR: u64 = 512;

/// File systems whose extents name places in an address space of their own.
const OWN_ADDRESSES: [(&str, &str); 3] = [
    (
        "btrfs",
        "btrfs writes each block to a new place, and does not number places as the device does",
    ),
    (
        "bcachefs",
        "bcachefs writes each block to a new place, and does not number places as the device does",
    ),
    (
        "zfs",
        "ZFS writes each block to a new place, and does not tell places on the device",
    ),
];

/// Position of a target's bytes on the disk below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectorMap {
    /// Disk that has the extents.
    pub disk: Disk,
    /// Extents in ascending order of offsets.
    extents: Vec<Extent>,
}

/// Bytes of a target that are contiguous on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    offset: u64,
    bytes: u64,
    /// First byte on the disk.
    physical: u64,
}

/// Disk below a target, and the first byte there of the target, or of the partition with its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Number of the whole disk, not of a partition: major, minor.
    pub number: Number,
    start: u64,
    /// Whether the disk has a request queue; other devices take bios directly.
    pub has_requests: bool,
    /// Whether the disk stands on other devices.
    pub is_layer: bool,
}

/// Part of a disk, as trace events name it: the whole of it, or a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPart {
    /// Whole disk.
    pub disk: Disk,
    /// Bytes of the part on the disk.
    pub range: Range<u64>,
    /// Name of the disk or partition: `sda1`.
    pub name: String,
}

/// The disk or partition that a file lies on, or is.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it does not exist, or lies on none.
pub fn disk_part_under(path: &Path) -> Result<DiskPart, Error> {
    path.metadata().map_err(|error| {
        Error::usage(format!("cannot find {}: {error}", path.display()))
            .hint("name a device by its path, such as /dev/sdb, or a file or directory on one")
    })?;
    let sys = Path::new("/sys");
    let part = || {
        let device = device_under(path)?;
        let disk = disk_of(sys, device)?;
        let own = sysfs::folder_of(sys, device)?;
        let bytes = sysfs::value(own.join("size"))? * SECTOR;
        Some(DiskPart {
            range: disk.start..disk.start + bytes,
            disk,
            name: sysfs::name_of(&own),
        })
    };
    part().ok_or_else(|| {
        Error::usage(format!("{} lies on no block device", path.display()))
            .hint("name a device, or a file or directory on one")
    })
}

/// Contiguous sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sectors {
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub count: u32,
}

impl SectorMap {
    /// Sectors that a request to a target covers, in ascending order of its bytes; bytes without a place have
    /// none.
    pub fn of_request(&self, offset: u64, bytes: u32) -> impl Iterator<Item = Sectors> {
        let end = offset + u64::from(bytes);
        let first = self
            .extents
            .partition_point(|extent| extent.offset + extent.bytes <= offset);
        let touched = self.extents[first..].iter();
        touched
            .take_while(move |extent| extent.offset < end)
            .map(move |extent| {
                let from = offset.max(extent.offset);
                let to = end.min(extent.offset + extent.bytes);
                Sectors {
                    first: (extent.physical + (from - extent.offset)) / SECTOR,
                    count: ((to - from) / SECTOR) as u32,
                }
            })
    }
}

impl Target {
    /// Disk that carries out the target's requests, as named in the kernel's trace events.
    ///
    /// # Errors
    /// The reason why there is none, in a few words.
    pub fn traced_disk(&self) -> Result<Disk, &'static str> {
        let mount = self.mount();
        if mount.as_ref().is_some_and(|mount| mount.is_fuse()) {
            return Err("a process serves its file system (FUSE)");
        }
        if mount.is_some_and(|mount| mount.nfs().is_some()) {
            return Err("a file server serves its file system (NFS)");
        }
        self.located()
    }

    /// Present position of a range of the target's bytes.
    ///
    /// # Errors
    /// The reason why that is unknown, in a few words.
    pub fn sectors(&self, range: &Range<u64>) -> Result<SectorMap, &'static str> {
        let disk = self.located()?;
        let extents = match self.kind {
            TargetKind::BlockDevice => vec![Extent {
                offset: 0,
                bytes: u64::MAX - disk.start,
                physical: disk.start,
            }],
            _ => {
                let all = extents(self.holder(), range)
                    .ok_or("the file system does not tell where the file lies (FIEMAP)")?;
                all.into_iter()
                    .map(|extent| Extent {
                        physical: extent.physical + disk.start,
                        ..extent
                    })
                    .collect()
            }
        };
        Ok(SectorMap { disk, extents })
    }

    fn located(&self) -> Result<Disk, &'static str> {
        let file_system = self.filesystem();
        let has_own =
            |(kind, _): &&(&str, &str)| file_system.as_ref().is_some_and(|fs| fs.kind == *kind);
        if let Some((_, why)) = OWN_ADDRESSES.iter().find(has_own) {
            return Err(why);
        }
        let device = self.device().ok_or("it lies on no block device")?;
        let sys = Path::new("/sys");
        if is_multipath_head(sys, device) {
            return Err(
                "the events of a multipath NVMe disk name its paths, which are hidden: nvme_core.multipath=N as a kernel parameter shows them as disks",
            );
        }
        disk_of(sys, device).ok_or("the device below it is not in /sys/dev/block")
    }
}

/// Whether a device is an NVMe disk (or its partition) that passes requests on to paths. Unlike the others
/// here, it has no queue of its own.
fn is_multipath_head(sys: &Path, device: Number) -> bool {
    sysfs::folder_of(sys, device).is_some_and(|own| {
        let disk = sysfs::disk_of(&own);
        sysfs::name_of(disk).starts_with("nvme") && !sysfs::has_requests(disk)
    })
}

/// Disk that a device is, or is a partition of.
fn disk_of(sys: &Path, device: Number) -> Option<Disk> {
    let own = sysfs::folder_of(sys, device)?;
    let disk = sysfs::disk_of(&own);
    let start = match disk == own {
        true => 0,
        false => sysfs::value(own.join("start"))? * SECTOR,
    };
    Some(Disk {
        number: sysfs::device_number(disk)?,
        start,
        has_requests: sysfs::has_requests(disk),
        is_layer: sysfs::linked_devices(&disk.join("slaves")).is_ok_and(|all| !all.is_empty()),
    })
}

/// Extents of a range that have a place, in the file system's own addresses.
fn extents(file: &File, range: &Range<u64>) -> Option<Vec<Extent>> {
    let mut all: Vec<Extent> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        at = show_parts(file, &(at..range.end), |part, extent| {
            let placed =
                |extent: &&FiemapExtent| extent.fe_flags & (UNKNOWN | DELALLOC | ENCODED) == 0;
            all.extend(extent.filter(placed).map(|extent| Extent {
                offset: part.start,
                bytes: part.end - part.start,
                physical: extent.fe_physical + (part.start - extent.fe_logical),
            }));
        })?;
    }
    Some(all)
}

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
    pub disk: Disk,
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
            disk,
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
    let task = device.and_then(|device| {
        let own = sysfs::folder_of(sys, device)?;
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
    use super::*;
    use needs::Tree;

    #[test]
    fn request_over_two_extents_has_sectors_in_both() {
        let extent = |offset, bytes, physical| Extent {
            offset,
            bytes,
            physical,
        };
        let map = SectorMap {
            disk: Disk {
                number: (8, 0),
                start: 0,
                has_requests: true,
                is_layer: false,
            },
            // 8 KiB, a hole of 4 KiB, 8 KiB.
            extents: vec![extent(0, 8192, 1 << 20), extent(12_288, 8192, 1 << 30)],
        };
        let of = |offset, bytes| -> Vec<(u64, u32)> {
            let sectors = map.of_request(offset, bytes);
            sectors
                .map(|sectors| (sectors.first, sectors.count))
                .collect()
        };
        assert_eq!(of(4096, 4096), [(2056, 8)]);
        assert_eq!(of(4096, 12_288), [(2056, 8), (2_097_152, 8)]);
        assert_eq!(of(8192, 4096), []);
        assert_eq!(of(1 << 20, 4096), []);
    }

    #[test]
    fn a_partition_is_a_part_of_its_disk() {
        let sys = Tree::empty();
        let own = [("dev", "259:1"), ("partition", "1"), ("start", "2048")];
        sys.files("sdq", &[("dev", "259:0"), ("mq/0", "")]);
        sys.files("sdq/sdq1", &own);
        sys.link("dev/block/259:0", "sdq");
        sys.link("dev/block/259:1", "sdq/sdq1");
        let found = |number| {
            let disk = disk_of(sys.path(), number)?;
            Some((disk.number, disk.start, disk.has_requests))
        };
        assert_eq!(found((259, 1)), Some(((259, 0), 1 << 20, true)));
        assert_eq!(found((259, 0)), Some(((259, 0), 0, true)));
        assert_eq!(found((1, 1)), None);
    }

    /// A namespace with two paths, and one without, as Linux 6.12 shows them.
    #[test]
    fn a_multipath_disk_of_nvme_has_no_queue() {
        let sys = Tree::empty();
        let add = |folder: &str, number: &str, file: &str| {
            let folder = format!("devices/{folder}");
            sys.files(&folder, &[(file, "")]);
            sys.link(&format!("dev/block/{number}"), &folder);
        };
        add("nvme0n1", "259:3", "size");
        add("nvme0n1/nvme0n1p1", "259:4", "partition");
        add("nvme1n1", "259:5", "mq/0");
        add("nvme1n1/nvme1n1p1", "259:6", "partition");
        add("dm-0", "253:0", "size");
        let heads = [3, 4, 5, 6].map(|minor| is_multipath_head(sys.path(), (259, minor)));
        assert_eq!(heads, [true, true, false, false]);
        assert!(!is_multipath_head(sys.path(), (253, 0)));
    }

    #[test]
    fn extents_of_a_file_cover_what_was_written() {
        use std::os::unix::fs::FileExt;
        let file =
            tempfile::tempfile_in(needs::folder_on_disk().expect("a folder")).expect("a file");
        file.write_all_at(&[7; 1 << 16], 0).expect("written");
        file.sync_all().expect("durable");
        let Some(extents) = extents(&file, &(0..1 << 16)) else {
            return needs::skip(needs::Need::Fiemap, "not of a file next to the sources");
        };
        let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
        assert_eq!(bytes, 1 << 16);
    }

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
