//! The files below loop devices that writes pass down to.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use iolab_workload::Result;

use super::super::space_sources::moves_data;
use super::aliases::Aliases;
use super::graph::{FileId, Node, Span};
use super::{Number, Users};

/// A file that a loop device stands on, directly or by further ones.
pub(in super::super) struct Image {
    /// The file, without access to its content; where it is out of reach, anything on its file system.
    pub(in super::super) handle: File,
    /// Whether the handle is the file.
    pub(in super::super) is_reached: bool,
    /// As a person knows it.
    pub(in super::super) name: String,
    /// Its bytes that may be written.
    pub(in super::super) range: Range<u64>,
    /// A file system above puts what is written again at another place.
    pub(in super::super) is_moved: bool,
}

/// The files that hold the first bytes of a device.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when `/proc` or `/sys` do not tell.
pub(in super::super) fn below_device(number: Number, bytes: u64) -> Result<Vec<Image>> {
    let users = Users::read()?;
    let whole = users.inventory.graph.whole(number);
    let span = Span {
        end: whole.end.min(bytes),
        ..whole
    };
    Ok(users.images(vec![span], false))
}

/// The files below the file system of an open file or directory. What cannot be seen is left out.
pub(in super::super) fn below_file(handle: &File) -> Vec<Image> {
    if !super::inventory::may_show_twice(Path::new("/sys")) {
        return Vec::new();
    }
    let Ok(users) = Users::read() else {
        return Vec::new();
    };
    let spans = users.wholes(handle);
    users.images(spans, moves_data(handle))
}

impl Users {
    /// All bytes of the devices that the file system of a file lies on.
    fn wholes(&self, file: &File) -> Vec<Span> {
        let devices = Aliases::of(&self.inventory, file).devices.into_iter();
        devices
            .map(|number| self.inventory.graph.whole(number))
            .collect()
    }

    fn images(&self, spans: Vec<Span>, is_moved: bool) -> Vec<Image> {
        let mut images = Vec::new();
        let mut seen = BTreeSet::new();
        let mut queue = vec![(spans, is_moved)];
        while let Some((spans, is_moved)) = queue.pop() {
            let ways = spans
                .into_iter()
                .flat_map(|span| self.inventory.graph.ways(span));
            for span in ways.filter_map(|way| way.last().copied()) {
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
                images.push(Image {
                    handle,
                    is_reached,
                    name: self.inventory.name(span.node),
                    range: span.start..span.end,
                    is_moved,
                });
            }
        }
        images
    }

    /// The file, or the place where its file system is mounted.
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
