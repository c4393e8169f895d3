//! Block devices as sysfs shows them (Documentation/ABI/stable/sysfs-block of Linux).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::device::Number;

/// Kernel name of a device from its directory, where `!` stands for `/`.
pub fn name_of(dir: &Path) -> String {
    dir.file_name()
        .map(|name| name.to_string_lossy().replace('!', "/"))
        .unwrap_or_default()
}

/// A file that holds one number.
pub fn value(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number of the device that a directory shows.
pub fn device_number(dir: &Path) -> Option<Number> {
    parse_number(&std::fs::read_to_string(dir.join("dev")).ok()?)
}

/// Reads `MAJOR:MINOR`.
pub fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The numbers of the devices that a directory has links to; none when it is not there.
///
/// # Errors
/// When it cannot be read, or a device has no number.
pub fn linked_devices(dir: &Path) -> io::Result<Vec<Number>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries
        .map(|entry| device_number(&entry?.path()).ok_or_else(|| io::ErrorKind::InvalidData.into()))
        .collect()
}

/// The size of a device, bytes, without opening it. Sectors here have 512 bytes, whatever those of the device have.
pub(super) fn bytes_of((major, minor): Number) -> Option<u64> {
    let size = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/size"));
    Some(value(&size)? << 9)
}

/// The devices of each mounted btrfs file system.
pub fn btrfs_devices(sys: &Path) -> Vec<Vec<Number>> {
    let entries = std::fs::read_dir(sys.join("fs/btrfs"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| linked_devices(&entry.path().join("devices")).ok())
        .filter(|devices| !devices.is_empty())
        .collect()
}

/// Whether a disk has a queue of requests, and so events of their ways; device mapper, md and zram have none.
pub fn has_requests(disk: &Path) -> bool {
    disk.join("mq").exists()
}

/// The folders of the controllers of an NVMe disk: its own one, or the folder of its subsystem with those of that.
pub fn nvme_controllers(disk: &Path) -> Vec<PathBuf> {
    // `nvme0`, and not `nvme0n1`, which lies beside it.
    let is_controller = |folder: &PathBuf| {
        let name = name_of(folder);
        let number = name.strip_prefix("nvme");
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let device = disk.join("device");
    let entries = std::fs::read_dir(&device).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(is_controller);
    folders.chain([device.clone()]).collect()
}

/// Whether the kernel counts the traffic of a disk; `None` where its folder does not tell. What has no request queue counts by
/// itself, even where the queue's switch is off.
pub fn counts_traffic(disk: &Path) -> Option<bool> {
    let on = value(&disk.join("queue/iostats"))? != 0;
    (on || has_requests(disk)).then_some(on)
}

/// The name of the file or device that a loop device stands on; there only while it is set up.
pub fn backing_file(dir: &Path) -> Option<PathBuf> {
    let mut bytes = match std::fs::read(dir.join("loop/backing_file")) {
        Ok(bytes) => bytes,
        // Set up all the same: the kernel does not tell paths longer than a page.
        Err(_) if dir.join("loop").exists() => b"a file whose path cannot be read".to_vec(),
        Err(_) => return None,
    };
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}
