//! Map from the bytes of a target to the sectors of its disk.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::device::Number;
use super::fiemap::{DELALLOC, ENCODED, EXTENTS, UNKNOWN, with_extents};
use super::{Target, TargetKind, device_under, sysfs};
use iolab_workload::Error;

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
    /// Number of the whole disk, not of a partition: major, minor.
    pub disk: Number,
    /// Whether the disk has a request queue; other devices take bios directly.
    pub has_requests: bool,
    /// Whether the disk stands on other devices.
    pub is_layer: bool,
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
    is_layer: bool,
}

/// Part of a disk, as trace events name it: the whole of it, or a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPart {
    /// Number of the whole disk: major, minor.
    pub disk: Number,
    /// Whether the disk has a request queue; other devices take bios directly.
    pub has_requests: bool,
    /// Bytes of the part on the disk.
    pub range: Range<u64>,
    /// Name of the disk or partition: `sda1`.
    pub name: String,
}

/// The disk or partition that a file lies on, or is.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): it lies on none.
pub fn disk_part_under(path: &Path) -> Result<DiskPart, Error> {
    let sys = Path::new("/sys");
    let part = || {
        let (major, minor) = device_under(path)?;
        let disk = disk_of(sys, (major, minor))?;
        let own = std::fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}"))).ok()?;
        let bytes = sysfs::value(&own.join("size"))? * SECTOR;
        Some(DiskPart {
            disk: disk.number,
            has_requests: disk.has_requests,
            range: disk.start..disk.start + bytes,
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
        Ok(SectorMap {
            disk: disk.number,
            has_requests: disk.has_requests,
            is_layer: disk.is_layer,
            extents,
        })
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
fn is_multipath_head(sys: &Path, (major, minor): Number) -> bool {
    let own = std::fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}")));
    own.is_ok_and(|own| {
        let disk = match own.join("partition").exists() {
            true => own.parent().unwrap_or(&own),
            false => &own,
        };
        sysfs::name_of(disk).starts_with("nvme") && !sysfs::has_requests(disk)
    })
}

/// Disk that a device is, or is a partition of.
pub(super) fn disk_of(sys: &Path, device: Number) -> Option<Disk> {
    let folder = |number: Number| {
        std::fs::canonicalize(sys.join(format!("dev/block/{}:{}", number.0, number.1))).ok()
    };
    let own = folder(device)?;
    let (disk, start) = match own.join("partition").exists() {
        true => (
            own.parent()?.to_owned(),
            sysfs::value(&own.join("start"))? * SECTOR,
        ),
        false => (own, 0),
    };
    Some(Disk {
        number: sysfs::device_number(&disk)?,
        start,
        has_requests: sysfs::has_requests(&disk),
        is_layer: sysfs::linked_devices(&disk.join("slaves")).is_ok_and(|all| !all.is_empty()),
    })
}

/// Extents of a range that have a place, in the file system's own addresses.
fn extents(file: &File, range: &Range<u64>) -> Option<Vec<Extent>> {
    let mut all: Vec<Extent> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let next = with_extents(file, &(at..range.end), |seen| {
            let placed = seen
                .iter()
                .filter(|extent| extent.fe_flags & (UNKNOWN | DELALLOC | ENCODED) == 0);
            all.extend(placed.map(|extent| Extent {
                offset: extent.fe_logical,
                bytes: extent.fe_length,
                physical: extent.fe_physical,
            }));
            let last = seen.last().filter(|_| seen.len() == EXTENTS);
            last.map(|last| last.fe_logical + last.fe_length)
        })?;
        match next {
            Some(next) if next > at => at = next,
            _ => break,
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use needs::Tree;

    use super::*;

    #[test]
    fn request_over_two_extents_has_sectors_in_both() {
        let extent = |offset, bytes, physical| Extent {
            offset,
            bytes,
            physical,
        };
        let map = SectorMap {
            disk: (8, 0),
            has_requests: true,
            is_layer: false,
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
}
