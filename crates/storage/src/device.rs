//! The number of a block device.

use rustix::fs::{FileType, Stat, major, minor};

/// Device number: major and minor.
pub(super) type Number = (u32, u32);

/// Number of the device that a block device's inode represents.
pub(super) fn number_of(stat: &Stat) -> Option<Number> {
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| (major(stat.st_rdev), minor(stat.st_rdev)))
}
