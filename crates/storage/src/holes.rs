//! Space of a file besides its extents: holes by lseek(2), if FIEMAP is missing or says nothing, and whether its file system never writes in place.

use std::fs::File;
use std::ops::Range;

use rustix::fd::AsFd;
use rustix::fs::{IFlags, SeekFrom, seek};
use rustix::io::Errno;

use super::overlay::{self, Ground};

/// Follows data and holes of a range in at most `steps` steps. Returns the end of the examined part, and its
/// bytes in holes; `None` where the file system does not report them.
pub fn seek_holes(file: &File, range: &Range<u64>, steps: usize) -> Option<(u64, u64)> {
    let (mut at, mut holes) = (range.start, 0);
    for _ in 0..steps {
        if at >= range.end {
            break;
        }
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.clamp(at, range.end),
            // No data from here to the end of the file.
            Err(Errno::NXIO) => range.end,
            Err(_) => return None,
        };
        holes += data - at;
        at = data;
        if data < range.end {
            let hole = seek(file, SeekFrom::Hole(data)).ok()?;
            // Progress is made even if the data has become a hole meanwhile.
            at = hole.clamp(data + 1, range.end);
        }
    }
    Some((at, holes))
}

/// Whether a file system writes changed data to a new place and frees the former one later: magic numbers of
/// btrfs, bcachefs, ZFS and NILFS2 (linux/magic.h, and OpenZFS). An overlay behaves as its layer. True if that
/// is unknown.
pub(super) fn moves_data(file: impl AsFd) -> bool {
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
