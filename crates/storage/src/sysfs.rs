//! Block devices as sysfs shows them (Documentation/ABI/stable/sysfs-block of Linux).
//!
//! The number of a block device.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, major, minor};

/// Kernel name of a device from its directory, in which `!` stands for `/`.
pub fn name_of(dir: &Path) -> String {
    dir.file_name()
        .map(|name| name.to_string_lossy().replace('!', "/"))
        .unwrap_or_default()
}

/// Folder of a device below `sys` (`/sys`).
pub fn folder_of(sys: &Path, (major, minor): Number) -> Option<PathBuf> {
    std::fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}"))).ok()
}

/// Folder of the disk that a device is a partition of, or its own folder.
pub fn disk_of(folder: &Path) -> &Path {
    match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    }
}

/// Content of a file of `/proc` or `/sys` without surrounding blanks; `None` where it is missing or empty.
pub fn text_of(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Number in a file.
pub fn value(path: impl AsRef<Path>) -> Option<u64> {
    text_of(path)?.parse().ok()
}

/// Number of the device at a directory.
pub fn device_number(dir: &Path) -> Option<Number> {
    parse_number(&text_of(dir.join("dev"))?)
}

/// Parses `MAJOR:MINOR`.
pub fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Numbers of the devices that a directory has links to; empty if it does not exist.
///
/// # Errors
/// The directory cannot be read, or a device has no number.
pub fn linked_devices(dir: &Path) -> io::Result<Vec<Number>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries
        .map(|entry| device_number(&entry?.path()).ok_or_else(|| io::ErrorKind::InvalidData.into()))
        .collect()
}

/// Paths of what is in a folder; none if it cannot be read.
pub fn paths_in(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Size of a device without opening it, bytes. Sectors here have 512 bytes, whatever the device's own size.
pub(super) fn bytes_of((major, minor): Number) -> Option<u64> {
    let size = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/size"));
    Some(value(&size)? << 9)
}

/// Devices of each mounted btrfs file system.
pub fn btrfs_devices(sys: &Path) -> Vec<Vec<Number>> {
    paths_in(sys.join("fs/btrfs"))
        .into_iter()
        .filter_map(|folder| linked_devices(&folder.join("devices")).ok())
        .filter(|devices| !devices.is_empty())
        .collect()
}

/// Whether a disk has a request queue, and so events for its requests; device mapper, md and zram have none.
pub fn has_requests(disk: &Path) -> bool {
    disk.join("mq").exists()
}

/// Folders of the controllers of an NVMe disk: its own one, or the controllers' folders in its subsystem and
/// the subsystem's own.
pub fn nvme_controllers(disk: &Path) -> Vec<PathBuf> {
    // `nvme0`, not `nvme0n1`, which is in the same folder.
    let is_controller = |folder: &PathBuf| {
        let name = name_of(folder);
        let number = name.strip_prefix("nvme");
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let device = disk.join("device");
    let mut folders = paths_in(&device);
    folders.retain(is_controller);
    folders.push(device);
    folders
}

/// Whether the kernel counts the traffic of a disk; `None` if its folder does not say. A device without a
/// request queue counts by itself, even if the queue's switch is off.
pub fn counts_traffic(disk: &Path) -> Option<bool> {
    let on = value(disk.join("queue/iostats"))? != 0;
    (on || has_requests(disk)).then_some(on)
}

/// Name of the file or device that a loop device stands on; present only while it is set up.
pub fn backing_file(dir: &Path) -> Option<PathBuf> {
    let mut bytes = match std::fs::read(dir.join("loop/backing_file")) {
        Ok(bytes) => bytes,
        // Set up all the same: the kernel does not report paths longer than a page.
        Err(_) if dir.join("loop").exists() => b"a file whose path cannot be read".to_vec(),
        Err(_) => return None,
    };
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Device number: major and minor.
pub(crate) type Number = (u32, u32);

/// Number of the device that a block device's inode represents.
pub(crate) fn number_of(stat: &Stat) -> Option<Number> {
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| (major(stat.st_rdev), minor(stat.st_rdev)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_devices_are_bytes() {
        // Lines of number and size in KiB, of which other tests may add and remove some meanwhile.
        let listed = || std::fs::read_to_string("/proc/partitions").unwrap_or_default();
        let before = listed();
        let read = before.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let mut next = || words.next()?.parse().ok();
            let (number, kib) = ((next()?, next()?), next()?);
            Some((line, bytes_of(number)?, u64::from(kib)))
        });
        let read: Vec<_> = read.collect();
        let after = listed();
        for (line, bytes, kib) in read {
            assert!(!after.contains(line) || bytes / 1024 == kib, "{line}");
        }
    }
}
