//! File systems that never write in place.

use std::fs::File;

use rustix::fd::AsFd;
use rustix::fs::IFlags;

use super::overlay::{self, Ground};

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
