//! Map from the bytes of a target to the sectors of its disk.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rustix::fs::fstatvfs;

use super::btrfs_chunks::{Chunk, data_chunks};
use super::device::Number;
use super::fiemap::{DELALLOC, ENCODED, EXTENTS, UNKNOWN, with_extents};
use super::{Target, TargetKind, sysfs};

/// Size of a sector, as the block layer counts, bytes.
const SECTOR: u64 = 512;
/// File system that writes each block to a new place. Its extents name places in an address space of its own,
/// which chunks map to a device.
const BTRFS: &str = "btrfs";
/// File systems with addresses of their own whose map is unknown.
const OWN_ADDRESSES: [(&str, &str); 2] = [
    (
        "bcachefs",
        "bcachefs writes each block to a new place, and does not number places as the device does",
    ),
    (
        "zfs",
        "ZFS writes each block to a new place, and does not tell places on the device",
    ),
];

/// Device or server that carries out a target's requests, as named in the kernel's trace events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A disk.
    Disk {
        /// Number of the whole disk, not of a partition.
        number: Number,
        /// Whether the disk has a request queue; other devices take bios directly.
        has_requests: bool,
    },
    /// A file system in user space, by the number of its mount.
    Fuse(Number),
    /// A file server (NFS), by the number of its mount.
    FileServer(Number),
}

/// Position on the disk of the places named by a file system that writes each block to a new place (btrfs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovingPlaces {
    /// Number of the whole disk, not of a partition: major, minor.
    pub disk: Number,
    /// Whether the disk has a request queue; other devices take bios directly.
    pub has_requests: bool,
    /// Whether the disk stands on other devices.
    pub is_layer: bool,
    /// Identity of the file system from `fstatfs`: for btrfs, made of its UUID and the number of the subvolume.
    pub file_system: u64,
    /// First byte of the file system's device on the disk.
    start: u64,
    chunks: Vec<Chunk>,
}

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
pub(super) struct Disk {
    pub(super) number: Number,
    start: u64,
    pub(super) has_requests: bool,
    /// Whether the disk stands on other devices.
    is_layer: bool,
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

impl MovingPlaces {
    /// Sectors of `bytes` bytes from a place on.
    pub fn sectors(&self, place: u64, bytes: u64) -> impl Iterator<Item = Sectors> {
        let whole = Extent {
            offset: 0,
            bytes,
            physical: place,
        };
        mapped(&[whole], &self.chunks)
            .into_iter()
            .map(|part| Sectors {
                first: (part.physical + self.start) / SECTOR,
                count: (part.bytes / SECTOR) as u32,
            })
    }
}

impl Target {
    /// Carrier of the target's requests; for a disk, the one in [`Target::sectors`].
    ///
    /// # Errors
    /// The reason why there is none, in a few words.
    pub fn carrier(&self) -> Result<Carrier, &'static str> {
        let mount = self.mount();
        let served = mount.and_then(|mount| match mount.is_fuse() {
            true => Some(Carrier::Fuse(mount.device)),
            false => mount.nfs().map(|nfs| Carrier::FileServer(nfs.file_system)),
        });
        match served {
            Some(carrier) => Ok(carrier),
            None => {
                let disk = self.located()?;
                if self.is_on_btrfs() {
                    data_chunks(self.holder())?;
                }
                Ok(Carrier::Disk {
                    number: disk.number,
                    has_requests: disk.has_requests,
                })
            }
        }
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
                let mut on_device = match self.is_on_btrfs() {
                    true => mapped(&all, &data_chunks(self.holder())?),
                    false => all,
                };
                for extent in &mut on_device {
                    extent.physical += disk.start;
                }
                on_device
            }
        };
        Ok(SectorMap {
            disk: disk.number,
            has_requests: disk.has_requests,
            is_layer: disk.is_layer,
            extents,
        })
    }

    /// Whether a written block gets a new place, so that extents do not show the places of past writes.
    pub fn moves_written_blocks(&self) -> bool {
        self.is_on_btrfs()
    }

    /// Present position of the places that the file system names, for a file system that moves written blocks.
    ///
    /// # Errors
    /// The reason why that is unknown, in a few words.
    pub fn moving_places(&self) -> Result<MovingPlaces, &'static str> {
        let disk = self.located()?;
        let told = fstatvfs(self.holder());
        Ok(MovingPlaces {
            disk: disk.number,
            has_requests: disk.has_requests,
            is_layer: disk.is_layer,
            file_system: told
                .map_err(|_| "the file system cannot be asked (fstatfs)")?
                .f_fsid,
            start: disk.start,
            chunks: data_chunks(self.holder())?,
        })
    }

    fn is_on_btrfs(&self) -> bool {
        self.filesystem().is_some_and(|fs| fs.kind == BTRFS)
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

/// Parts of extents that lie in chunks, with their places on the device.
fn mapped(extents: &[Extent], chunks: &[Chunk]) -> Vec<Extent> {
    let in_chunks = extents.iter().flat_map(|extent| {
        chunks.iter().filter_map(move |chunk| {
            let from = extent.physical.max(chunk.logical);
            let to = (extent.physical + extent.bytes).min(chunk.logical + chunk.bytes);
            (from < to).then(|| Extent {
                offset: extent.offset + (from - extent.physical),
                bytes: to - from,
                physical: chunk.physical + (from - chunk.logical),
            })
        })
    });
    in_chunks.collect()
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
        let sys = tempfile::tempdir().expect("a folder");
        let disk = sys.path().join("devices/sdq");
        let own = disk.join("sdq1");
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::create_dir_all(disk.join("mq")).expect("a folder");
        std::fs::create_dir_all(sys.path().join("dev/block")).expect("a folder");
        for (folder, number) in [(&disk, "259:0"), (&own, "259:1")] {
            std::fs::write(folder.join("dev"), number).expect("written");
            let link = sys.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(folder, link).expect("linked");
        }
        std::fs::write(own.join("partition"), "1").expect("written");
        std::fs::write(own.join("start"), "2048").expect("written");
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
        let sys = tempfile::tempdir().expect("a folder");
        let links = sys.path().join("dev/block");
        std::fs::create_dir_all(&links).expect("a folder");
        let add = |folder: &str, number: &str, files: &[&str]| {
            let folder = sys.path().join("devices").join(folder);
            for file in files.iter().chain(&[""]) {
                std::fs::create_dir_all(folder.join(file)).expect("a folder");
            }
            std::os::unix::fs::symlink(folder, links.join(number)).expect("linked");
        };
        add("nvme0n1", "259:3", &[]);
        add("nvme0n1/nvme0n1p1", "259:4", &["partition"]);
        add("nvme1n1", "259:5", &["mq"]);
        add("nvme1n1/nvme1n1p1", "259:6", &["partition"]);
        add("dm-0", "253:0", &[]);
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
            return needs::skip(needs::Need::Fiemap, "not of a file beside the sources");
        };
        let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
        assert_eq!(bytes, 1 << 16);
    }

    #[test]
    fn extent_over_two_chunks_has_two_places() {
        let extent = Extent {
            offset: 4096,
            bytes: 12_288,
            physical: 1 << 20,
        };
        let chunk = |logical, bytes, physical| Chunk {
            logical,
            bytes,
            physical,
        };
        let chunks = [
            chunk(0, (1 << 20) + 4096, 1 << 30),
            chunk((1 << 20) + 4096, 1 << 20, 1 << 24),
        ];
        let places: Vec<(u64, u64, u64)> = mapped(&[extent], &chunks)
            .iter()
            .map(|part| (part.offset, part.bytes, part.physical))
            .collect();
        assert_eq!(
            places,
            [(4096, 4096, (1 << 30) + (1 << 20)), (8192, 8192, 1 << 24)]
        );
        assert_eq!(mapped(&[extent], &chunks[1..]).len(), 1);
        let places = MovingPlaces {
            disk: (8, 0),
            has_requests: true,
            is_layer: false,
            file_system: 7,
            start: 512,
            chunks: chunks.to_vec(),
        };
        let of = |place, bytes| -> Vec<(u64, u32)> {
            let sectors = places.sectors(place, bytes);
            sectors.map(|one| (one.first, one.count)).collect()
        };
        let second = ((1 << 24) + 512) / SECTOR;
        assert_eq!(
            of(1 << 20, 12_288),
            [(((1 << 30) + (1 << 20) + 512) / SECTOR, 8), (second, 16)]
        );
        assert_eq!(of(1 << 40, 4096), []);
    }
}
