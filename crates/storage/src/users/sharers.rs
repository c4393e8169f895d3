//! Other devices that share bytes with a target, and the sources of space below it, from the graph of storage.

use super::inventory::may_show_twice;
use crate::target_size::human;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use iolab_workload::Result;
use rustix::fs::{Mode, OFlags};

use super::mapper::PoolSpace;
use super::overlay_aliases::Aliases;
use super::storage_graph::{FileId, Node, Span, Way};
use super::{Number, Users, mapper, *};
use crate::fiemap::moves_data;

/// Another device that shares bytes with the target.
pub(super) struct Sharer {
    pub(super) number: Number,
    /// Chain from the target to it, for a message.
    pub(super) chain: String,
    /// Whether the target stands on it.
    pub(super) is_below: bool,
    /// Whether a driver between the two keeps the other bytes to itself (device mapper, md).
    pub(super) is_mapped: bool,
    /// Whether the target is a thin volume and this device shows its pool, to which only the volume manager
    /// writes.
    pub(super) shows_pool: bool,
    /// Whether the target is, or stands on, one of its partitions.
    pub(super) by_partition: bool,
    /// Whether both are, or stand on, paths to one disk: neither's claim keeps the other from the bytes.
    pub(super) by_path: bool,
}

impl Sharer {
    /// Command that shows the users.
    pub(super) fn hint(&self) -> &'static str {
        match self.by_path {
            true => SEE_PATHS,
            false => SEE_DEVICES,
        }
    }
}

impl Users {
    /// Every other device that shares bytes with the target.
    pub(super) fn sharers(&self, number: Number, ways: &[Way]) -> Vec<Sharer> {
        let graph = &self.inventory.graph;
        let others = graph.devices.keys().filter(|other| **other != number);
        others
            .filter_map(|other| {
                let theirs = graph.ways(graph.whole(*other));
                let meetings = ways.iter().flat_map(|way| {
                    theirs.iter().filter_map(move |their| {
                        let (at, place) = graph.meeting(way, their)?;
                        Some((way, at, &their[..place]))
                    })
                });
                // A lower layer of the target can lead to the same disk further down, as two paths to one disk
                // do.
                let (way, at, upon) = meetings.min_by_key(|(_, _, upon)| upon.len())?;
                Some(self.sharer(*other, way, at, upon))
            })
            .collect()
    }

    fn sharer(&self, number: Number, way: &Way, at: usize, upon: &[Span]) -> Sharer {
        let graph = &self.inventory.graph;
        let above = &way[..at];
        let device = |span: &Span| span.node.device();
        Sharer {
            number,
            chain: self.chain(way, at, upon),
            is_below: upon.is_empty(),
            shows_pool: way[at].node.device().is_some_and(|met| {
                let mut pools = above
                    .iter()
                    .filter_map(device)
                    .filter_map(|n| graph.pool_of(n));
                pools.any(|pool| pool == met)
            }),
            is_mapped: above.iter().filter_map(device).any(|n| graph.is_stacked(n)),
            by_partition: above
                .last()
                .and_then(device)
                .is_some_and(|n| graph.is_partition(n)),
            by_path: matches!(way[at].node, Node::Disk(_)),
        }
    }

    /// Chain in words: `/dev/loop2 -> im (bytes 16 MiB to 64 MiB) <- /dev/loop1`.
    pub(super) fn chain(&self, way: &Way, at: usize, upon: &[Span]) -> String {
        let mut text = String::new();
        for (step, span) in way.iter().take(at + 1).enumerate() {
            if step > 0 {
                text.push_str(" -> ");
            }
            text.push_str(&self.inventory.name(span.node));
            if step > 0 && !self.inventory.graph.is_whole(span) {
                let start = match span.start {
                    0 => "0".to_owned(),
                    start => human(start),
                };
                let end = human(span.end);
                text.push_str(&format!(" (bytes {start} to {end})"));
            }
        }
        for span in upon.iter().rev() {
            text.push_str(" <- ");
            text.push_str(&self.inventory.name(span.node));
        }
        text
    }
}

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
    if !may_show_twice(Path::new("/sys")) {
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
