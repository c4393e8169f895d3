//! Free space for a scratch file, with room left for the rest of the system.

use std::path::Path;

use rustix::fd::AsFd;

use crate::meminfo;
use iolab_spec::{Error, Result};

use super::errno;
use super::mounts::is_memory_fs;

/// Least and greatest reserve that is left free, bytes.
const RESERVE_MIN: u64 = 64 << 20;
const RESERVE_MAX: u64 = 2 << 30;

/// Bytes that a new file in this directory may take; `None` when the file system does not say.
///
/// What an ordinary user may take counts (`f_bavail`), even for root: the blocks beyond are what
/// keeps a full system alive.
pub(super) fn room(dir: impl AsFd, path: &Path) -> Result<Option<u64>> {
    let fail = |errno| errno::on_path("ask for the free space of", path, errno);
    let vfs = rustix::fs::fstatvfs(&dir).map_err(fail)?;
    let disk = (vfs.f_blocks > 0).then(|| {
        let total = vfs.f_blocks.saturating_mul(vfs.f_frsize);
        beyond_reserve(total, vfs.f_bavail.saturating_mul(vfs.f_frsize))
    });
    let in_memory = is_memory_fs(&rustix::fs::fstatfs(&dir).map_err(fail)?);
    let memory = in_memory.then(|| meminfo::bytes("MemAvailable").unwrap_or(0) / 2);
    Ok(match (disk, memory) {
        (Some(disk), Some(memory)) => Some(disk.min(memory)),
        (disk, memory) => disk.or(memory),
    })
}

/// Bytes that a new file in this directory may take, which leave a reserve to the rest of the system; `None` when the file
/// system does not say.
///
/// # Errors
/// When the directory cannot be opened or asked.
pub fn free(dir: &Path) -> Result<Option<u64>> {
    let open = std::fs::File::open(dir).map_err(|error| {
        Error::usage(format!("cannot open {}: {error}", dir.display()))
            .hint("name a directory that can be read")
    })?;
    room(&open, dir)
}

fn beyond_reserve(total: u64, available: u64) -> u64 {
    let reserve = (total / 20).clamp(RESERVE_MIN, RESERVE_MAX);
    available.saturating_sub(reserve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_a_twentieth_within_bounds() {
        let (mib, gib) = (1u64 << 20, 1u64 << 30);
        assert_eq!(beyond_reserve(100 * mib, 100 * mib), 36 * mib);
        assert_eq!(beyond_reserve(10 * gib, 5 * gib), 5 * gib - 512 * mib);
        assert_eq!(beyond_reserve(1000 * gib, 5 * gib), 3 * gib);
        assert_eq!(beyond_reserve(1000 * gib, gib), 0);
    }
}
