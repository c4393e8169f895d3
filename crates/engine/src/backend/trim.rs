//! Trimming of blocks of a file or a device.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;

use iolab_storage::Target;
use iolab_storage::sysfs::value;
use iolab_workload::{Error, Result};

/// `BLKDISCARD` of linux/fs.h: `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Folder in which the kernel lists block devices by number.
const DEVICES: &str = "/sys/dev/block";
/// Distance beyond the end of a file at which punching a hole is tried, bytes. The file has no data there.
const BEHIND: u64 = 1 << 20;

/// Checks whether a target can be trimmed, as far as that shows without changing it.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the file system or the device cannot do it.
pub fn check_trims(target: &Target) -> Result<()> {
    let file = target.file();
    let call = TrimCall::of(file);
    let refused = |why: &str| {
        Err(Error::usage(format!(
            "{} cannot be trimmed by {}: {why}",
            target.named().display(),
            call.name()
        ))
        .hint("set trim_percent=0"))
    };
    match call {
        TrimCall::PunchHole => {
            let Ok(stat) = rustix::fs::fstat(file) else {
                return Ok(());
            };
            let end = u64::try_from(stat.st_size).unwrap_or(0);
            let behind = end.next_multiple_of(BEHIND) + BEHIND;
            match call.carry_out(file, behind, BEHIND) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    refused("the file system does not support holes")
                }
                // Other faults show when the trial trims.
                _ => Ok(()),
            }
        }
        TrimCall::Discard if discard_max(file) == Some(0) => {
            refused("the device does not support discard")
        }
        _ => Ok(()),
    }
}

/// Most bytes that a device discards at a time; `None` if the kernel does not report it.
fn discard_max(device: &File) -> Option<u64> {
    let number = rustix::fs::fstat(device).ok()?.st_rdev;
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = Path::new(DEVICES).join(format!("{major}:{minor}"));
    // A partition has the queue of its disk.
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| value(&folder.join(queue).join("discard_max_bytes")))
}

/// The call that trims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrimCall {
    PunchHole,
    Discard,
}

impl TrimCall {
    /// The call for a file or device.
    pub(crate) fn of(file: &File) -> Self {
        let is_device = rustix::fs::fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice);
        match is_device {
            false => Self::PunchHole,
            true => Self::Discard,
        }
    }

    /// Its name, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PunchHole => "fallocate(FALLOC_FL_PUNCH_HOLE)",
            Self::Discard => "ioctl(BLKDISCARD)",
        }
    }

    /// Trims the `len` bytes from `offset`, all of them or none.
    pub(crate) fn carry_out(
        self,
        file: &File,
        offset: u64,
        len: u64,
    ) -> std::result::Result<(), Errno> {
        match self {
            Self::PunchHole => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(file, flags, offset, len)
            }
            Self::Discard => discard(file, offset, len),
        }
    }
}

fn discard(file: &File, offset: u64, len: u64) -> std::result::Result<(), Errno> {
    let range: [u64; 2] = [offset, len];
    // SAFETY: the request reads two numbers of 64 bits from the address, and nothing else of this process's memory.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    match status {
        0 => Ok(()),
        _ => Err(Errno::from_raw_os_error(
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        )),
    }
}
