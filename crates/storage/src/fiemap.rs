//! Extents of a file by `FS_IOC_FIEMAP`; see Documentation/filesystems/fiemap.rst of Linux.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustix::ioctl::opcode;

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

/// Passes the first extents of a range to `see`, in ascending order and at most [`EXTENTS`]; `None` where the
/// file system does not report them.
pub fn with_extents<T>(
    file: &File,
    range: &Range<u64>,
    see: impl FnOnce(&[FiemapExtent]) -> T,
) -> Option<T> {
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
    (result == 0).then(|| see(&map.extents[..count]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_large_as_the_kernels() {
        assert_eq!(size_of::<FiemapExtent>(), 56);
        assert_eq!(size_of::<FiemapHead>(), 32);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }
}
