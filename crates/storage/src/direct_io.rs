//! Direct I/O: whether a target supports it, and which alignment it needs.

use std::fs::File;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use super::path_lookup::open_same;
use super::{DirectAlignment, TargetKind, errno};

/// What files get by default: the page size of nearly every machine, and no smaller than
/// the logical block of nearly every device.
const FALLBACK: u64 = 4096;

/// Asks `statx` (`STATX_DIOALIGN`, Linux 6.1), else tries an `O_DIRECT` open.
pub(super) fn alignment(file: &File, path: &Path, kind: TargetKind) -> Result<DirectAlignment> {
    if kind == TargetKind::CharDevice {
        return Err(unsupported(path, "a character device"));
    }
    if let Some(told) = ask_statx(file) {
        return match told {
            (0, _) | (_, 0) => Err(unsupported(path, "its file system")),
            (memory, offset) => Ok(DirectAlignment { memory, offset }),
        };
    }
    match open_same(file, path, OFlags::RDONLY | OFlags::DIRECT) {
        Ok(_) => {}
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Err(unsupported(path, "its file system")),
        Err(errno) => return Err(errno::on_path("open with O_DIRECT", path, errno)),
    }
    let block = match kind {
        TargetKind::BlockDevice => rustix::fs::ioctl_blksszget(file)
            .map_err(|errno| errno::on_path("ask for the block size of", path, errno))?
            .into(),
        _ => FALLBACK,
    };
    Ok(DirectAlignment {
        memory: block,
        offset: block,
    })
}

fn ask_statx(file: &File) -> Option<(u64, u64)> {
    let statx = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let answered = statx.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    answered.then_some((
        statx.stx_dio_mem_align.into(),
        statx.stx_dio_offset_align.into(),
    ))
}

pub(super) fn unsupported(path: &Path, who: &str) -> Error {
    Error::usage(format!(
        "{} cannot be opened for direct I/O: {who} does not support O_DIRECT",
        path.display()
    ))
    .hint("measure through the page cache with --buffered, or choose another target")
}
