//! `FS_IOC_FIEMAP`: the extents of a file, see Documentation/filesystems/fiemap.rst of Linux.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustix::ioctl::opcode;

/// Extents that one call can tell of.
pub const EXTENTS: usize = 64;

/// No place known yet (flags of linux/fiemap.h).
pub const UNKNOWN: u32 = 0x2;
/// The file system decides about the place when it writes; the space is set aside already.
pub(super) const DELALLOC: u32 = 0x4;
/// Data encoded, mostly compressed.
pub const ENCODED: u32 = 0x8;
/// Data encrypted.
pub const ENCRYPTED: u32 = 0x80;
/// Space allocated, but no data.
pub const UNWRITTEN: u32 = 0x800;
/// Other files have it too.
pub const SHARED: u32 = 0x2000;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct FiemapExtent {
    /// Where it is in the file, bytes.
    pub fe_logical: u64,
    /// Where it is on the device, bytes.
    pub fe_physical: u64,
    /// How long it is, bytes.
    pub fe_length: u64,
    /// Zeros.
    pub fe_reserved64: [u64; 2],
    /// What is special about it.
    pub fe_flags: u32,
    /// Zeros.
    pub fe_reserved: [u32; 3],
}

/// The head of `struct fiemap` of linux/fiemap.h, which the extents follow.
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

/// Hands the first extents of a range, in ascending order and at most [`EXTENTS`], to `see`; `None` where the file system
/// does not tell.
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
