//! Sources of space for writes to a device: files below loop devices, and pools of thin volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use iolab_workload::Result;

use super::mapper::{self, PoolSpace};
use super::overlay_aliases::Aliases;
use super::storage_graph::{FileId, Node, Span, Way};
use super::{Number, Users};
use crate::fiemap::moves_data;

/// A file that a loop device stands on, directly or through others.
pub(in super::super) struct Image {
    /// The file without access to its content; if it is out of reach, anything on its file system.
    pub(in super::super) handle: File,
    /// Whether the handle is of the file itself.
    pub(in super::super) is_reached: bool,
    /// Name for people.
    pub(in super::super) name: String,
    /// Bytes of the file that may be written.
    pub(in super::super) range: Range<u64>,
    /// Whether a file system above writes changed data to a new place.
    pub(in super::super) is_moved: bool,
}

/// A pool from which a thin volume takes blocks when it is written.
pub(in super::super) struct Pool {
    pub(in super::super) number: Number,
    /// Name for people.
    pub(in super::super) name: String,
    /// Space left; none where the device mapper does not report any.
    pub(in super::super) space: PoolSpace,
    /// Bytes of the volume that may be written.
    pub(in super::super) bytes: u64,
}

/// Source of space for writes.
pub(in super::super) enum Supply {
    Image(Image),
    Pool(Pool),
}

/// Files and pools that hold the first bytes of a device.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when `/proc` or `/sys` cannot be read.
pub(in super::super) fn below_device(number: Number, bytes: u64) -> Result<Vec<Supply>> {
    let users = Users::read()?;
    let whole = users.inventory.graph.whole(number);
    let span = Span {
        end: whole.end.min(bytes),
        ..whole
    };
    Ok(users.supplies(vec![span], false))
}

/// Files and pools below the file system of an open file or directory. Invisible ones are left out.
pub(in super::super) fn below_file(handle: &File) -> Vec<Supply> {
    if !super::inventory::may_show_twice(Path::new("/sys")) {
        return Vec::new();
    }
    let Ok(users) = Users::read() else {
        return Vec::new();
    };
    let spans = users.wholes(handle);
    users.supplies(spans, moves_data(handle))
}

impl Users {
    /// All bytes of the devices below the file system of a file.
    fn wholes(&self, file: &File) -> Vec<Span> {
        let devices = Aliases::of(&self.inventory, file).devices.into_iter();
        devices
            .map(|number| self.inventory.graph.whole(number))
            .collect()
    }

    fn supplies(&self, spans: Vec<Span>, is_moved: bool) -> Vec<Supply> {
        let mut supplies = Vec::new();
        let mut seen = BTreeSet::new();
        let mut queue = vec![(spans, is_moved)];
        while let Some((spans, is_moved)) = queue.pop() {
            let ways: Vec<Way> = spans
                .into_iter()
                .flat_map(|span| self.inventory.graph.ways(span))
                .collect();
            supplies.extend(self.pools(&ways).map(Supply::Pool));
            for span in ways.iter().filter_map(|way| way.last().copied()) {
                let Node::File(file) = span.node else {
                    continue;
                };
                if !seen.insert((file, span.start, span.end, is_moved)) {
                    continue;
                }
                let Some((handle, is_reached)) = self.handle_of(file) else {
                    continue;
                };
                queue.push((self.wholes(&handle), is_moved || moves_data(&handle)));
                supplies.push(Supply::Image(Image {
                    handle,
                    is_reached,
                    name: self.inventory.name(span.node),
                    range: span.start..span.end,
                    is_moved,
                }));
            }
        }
        supplies
    }

    /// Pools on these ways, each once.
    fn pools(&self, ways: &[Way]) -> impl Iterator<Item = Pool> {
        // A volume may be on several ways, and several volumes in one pool.
        let mut volumes = BTreeMap::new();
        for span in ways.iter().flatten() {
            let volume = span.node.device();
            let pool = volume.and_then(|n| self.inventory.graph.pool_of(n));
            if let (Some(volume), Some(pool)) = (volume, pool) {
                let bytes: &mut u64 = volumes.entry((pool, volume)).or_default();
                *bytes = (*bytes).max(span.end - span.start);
            }
        }
        let mut pools: BTreeMap<Number, u64> = BTreeMap::new();
        for ((pool, _), bytes) in volumes {
            let all = pools.entry(pool).or_default();
            *all = all.saturating_add(bytes);
        }
        pools.into_iter().map(|(number, bytes)| Pool {
            number,
            name: self.inventory.name(Node::Device(number)),
            space: mapper::pool_space(number).unwrap_or(PoolSpace {
                total: 0,
                free: 0,
                block: 0,
            }),
            bytes,
        })
    }

    /// The file, or the mount point of its file system.
    fn handle_of(&self, file: FileId) -> Option<(File, bool)> {
        if let Some(reached) = self.inventory.reach(file) {
            return Some((reached, true));
        }
        let mut mounts = self.inventory.namespaces.first()?.mounts.iter();
        let mount = mounts.find(|mount| mount.device == file.dev)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let place = rustix::fs::open(&mount.fs.mount_point, flags, Mode::empty()).ok()?;
        Some((File::from(place), false))
    }
}
