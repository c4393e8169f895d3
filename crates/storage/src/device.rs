//! The number of a block device, and its size.

use std::path::PathBuf;

use rustix::fs::{FileType, Stat, major, minor};

use super::sysfs;

/// Device numbers, MAJOR and MINOR.
pub(super) type Number = (u32, u32);

/// The number of the device that a block device's inode stands for.
pub(super) fn number_of(stat: &Stat) -> Option<Number> {
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| (major(stat.st_rdev), minor(stat.st_rdev)))
}

/// The size of a device, bytes, without opening it. sysfs counts sectors of 512 bytes, whatever those of the device are.
pub(super) fn bytes_of((major, minor): Number) -> Option<u64> {
    let size = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/size"));
    Some(sysfs::value(&size)? << 9)
}
