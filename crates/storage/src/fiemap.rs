//! Extents of a file by `FS_IOC_FIEMAP`; see Documentation/filesystems/fiemap.rst of Linux.
//!
//! Space of a file besides its extents: holes by lseek(2), if FIEMAP is missing or says nothing, and whether its file system never writes in place.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustix::fd::AsFd;
use rustix::fs::{IFlags, SeekFrom, seek};
use rustix::io::Errno;
use rustix::ioctl::opcode;

use super::overlay::{self, Ground};

/// Most extents in one call.
pub const EXTENTS: usize = 64;

/// Extent flag: no place known yet (flags of linux/fiemap.h).
pub const UNKNOWN: u32 = 0x2;

/// Extent flag: the file system chooses the place when it writes; the space is already reserved.
pub(super) const DELALLOC: u32 = 0x4;

/// Extent flag: data is encoded, mostly compressed.
pub const ENCODED: u32 = 0x8;

/// Extent flag: data is encrypted.
pub const ENCRYPTED: u32 = 0x80;

/// Extent flag: space is allocated without data.
pub const UNWRITTEN: u32 = 0x800;

/// Extent flag: other files share the extent.
pub const SHARED: u32 = 0x2000;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct FiemapExtent {
    /// First byte in the file.
    pub fe_logical: u64,
    /// First byte on the device.
    pub fe_physical: u64,
    /// Length, bytes.
    pub fe_length: u64,
    /// Zeros.
    pub fe_reserved64: [u64; 2],
    /// Extent flags.
    pub fe_flags: u32,
    /// Zeros.
    pub fe_reserved: [u32; 3],
}

/// Head of `struct fiemap` of linux/fiemap.h; the extents follow.
#[repr(C)]
#[derive(Debug, Default)]
struct FiemapHead {
    fm_start: u64,
    fm_length: u64,
    fm_flags: u32,
    fm_mapped_extents: u32,
    fm_extent_count: u32,
    fm_reserved: u32,
}

#[repr(C)]
struct Fiemap {
    head: FiemapHead,
    extents: [FiemapExtent; EXTENTS],
}

/// Shows each part of `range` in one answer of the kernel, in ascending order: with its extent, or `None` in a hole. Returns the end
/// of what was shown; `None` if the file system does not list extents.
pub fn show_parts(
    file: &File,
    range: &Range<u64>,
    show: impl FnMut(Range<u64>, Option<&FiemapExtent>),
) -> Option<u64> {
    let mut map = Fiemap {
        head: FiemapHead {
            fm_start: range.start,
            fm_length: range.end - range.start,
            fm_extent_count: EXTENTS as u32,
            ..FiemapHead::default()
        },
        extents: [FiemapExtent::default(); EXTENTS],
    };
    // FS_IOC_FIEMAP is _IOWR('f', 11, struct fiemap), whose size does not count the extents.
    const REQUEST: rustix::ioctl::Opcode = opcode::read_write::<FiemapHead>(b'f', 11);
    // SAFETY: the argument is a fiemap with room for as many extents as it says, laid out as in linux/fiemap.h, and
    // outlives the call, which writes nothing beyond it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), REQUEST as _, &raw mut map) };
    let count = (map.head.fm_mapped_extents as usize).min(EXTENTS);
    (result == 0).then(|| show_extents(&map.extents[..count], range, show))
}

/// Shows each part of `range` that a list of extents describes: all of it, unless the list is full.
fn show_extents(
    extents: &[FiemapExtent],
    range: &Range<u64>,
    mut show: impl FnMut(Range<u64>, Option<&FiemapExtent>),
) -> u64 {
    let mut at = range.start;
    for extent in extents {
        let start = extent.fe_logical.clamp(at, range.end);
        let end = extent.fe_logical.saturating_add(extent.fe_length);
        let end = end.clamp(start, range.end);
        if start > at {
            show(at..start, None);
        }
        if end > start {
            show(start..end, Some(extent));
        }
        at = end;
    }
    // A full list goes on, unless it leads nowhere.
    let is_whole = extents.len() < EXTENTS || at == range.start;
    if is_whole && at < range.end {
        show(at..range.end, None);
    }
    if is_whole { range.end } else { at }
}

/// The next stretch of data from `at` on and before `end`, where it is empty without data; `None` where the file system does
/// not report holes.
pub fn next_data(file: &File, at: u64, end: u64) -> Option<Range<u64>> {
    let data = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.clamp(at, end),
        // No data from here to the end of the file.
        Err(Errno::NXIO) => end,
        Err(_) => return None,
    };
    if data == end {
        return Some(end..end);
    }
    let hole = seek(file, SeekFrom::Hole(data)).ok()?;
    // Progress is made even if the data has become a hole meanwhile.
    Some(data..hole.clamp(data + 1, end))
}

/// Follows data and holes of a range in at most `steps` steps. Returns the end of the examined part, and its
/// bytes in holes; `None` where the file system does not report them.
pub fn seek_holes(file: &File, range: &Range<u64>, steps: usize) -> Option<(u64, u64)> {
    let (mut at, mut holes) = (range.start, 0);
    for _ in 0..steps {
        if at >= range.end {
            break;
        }
        let data = next_data(file, at, range.end)?;
        holes += data.start - at;
        at = data.end;
    }
    Some((at, holes))
}

/// Whether a file system writes changed data to a new place and frees the former one later: magic numbers of
/// btrfs, bcachefs, ZFS and NILFS2 (linux/magic.h, and OpenZFS). An overlay behaves as its layer. True if that
/// is unknown.
pub(crate) fn moves_data(file: impl AsFd) -> bool {
    const MOVING: [u32; 4] = [0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1, 0x3434];
    let is_moving = |file: &File| {
        let moving =
            rustix::fs::fstatfs(file).is_ok_and(|stat| MOVING.contains(&(stat.f_type as u32)));
        moving && !rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
    };
    let Ok(own) = file.as_fd().try_clone_to_owned().map(File::from) else {
        return true;
    };
    match overlay::ground(&own) {
        Ground::Itself => is_moving(&own),
        Ground::Layer(layer) => is_moving(&layer),
        Ground::OutOfReach => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_cover_the_range_once(
            start in 0..1u64 << 40, length in 1..1u64 << 40, full: bool,
            list in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 0..=EXTENTS),
        ) {
            let range = start..start + length;
            let list = list.into_iter().map(|(fe_logical, fe_length, fe_flags)| FiemapExtent {
                fe_logical,
                fe_length,
                fe_flags,
                ..FiemapExtent::default()
            });
            let mut list: Vec<_> = list.collect();
            if full {
                list.resize(EXTENTS, FiemapExtent::default());
            }
            let mut at = range.start;
            let mut misplaced = Vec::new();
            let to = show_extents(&list, &range, |part, extent| {
                let end = |of: &FiemapExtent| of.fe_logical.saturating_add(of.fe_length);
                let is_own = extent.is_none_or(|of| of.fe_logical <= part.start && part.end <= end(of));
                if part.start != at || part.is_empty() || !is_own {
                    misplaced.push(part.clone());
                }
                at = part.end;
            });
            prop_assert_eq!((misplaced, at), (Vec::new(), to));
            prop_assert!(range.start < to && to <= range.end && (list.len() == EXTENTS || to == range.end));
        }
    }

    #[test]
    fn the_structures_are_as_large_as_the_kernels() {
        assert_eq!(size_of::<FiemapExtent>(), 56);
        assert_eq!(size_of::<FiemapHead>(), 32);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }
}
