//! Graph of the bytes of storage: devices, files, and which ranges stand on which. Pure: other modules read the
//! kernel's data.

use std::collections::{BTreeMap, BTreeSet};

use crate::sysfs::Number;

/// Most levels that are followed down, more than any sane stack has.
const DEPTH_MAX: usize = 32;

/// A file by stat(2): the device number of its file system, and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileId {
    pub(super) dev: Number,
    pub(super) inode: u64,
}

/// Holder of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Node {
    Device(Number),
    File(FileId),
    /// A disk that several devices are paths to: its index in [`Graph::disks`].
    Disk(usize),
}

impl Node {
    pub(super) fn device(self) -> Option<Number> {
        match self {
            Self::Device(number) => Some(number),
            Self::File(_) | Self::Disk(_) => None,
        }
    }

    pub(super) fn file(self) -> Option<FileId> {
        match self {
            Self::File(file) => Some(file),
            Self::Device(_) | Self::Disk(_) => None,
        }
    }
}

/// Bytes `start..end` of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) node: Node,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Span {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.node == other.node && self.start < other.end && other.start < self.end
    }

    /// This span moved to another node: `length` bytes at `from` in its own node are the bytes at `to` in the
    /// other. `None` when it has none of them.
    fn moved(&self, piece: &Piece) -> Option<Self> {
        let (from, upto) = (piece.from, piece.from.saturating_add(piece.length));
        let (start, end) = (self.start.max(from), self.end.min(upto));
        (start < end).then(|| Self {
            node: piece.below,
            start: piece.to.saturating_add(start - from),
            end: piece.to.saturating_add(end - from),
        })
    }
}

/// A device's bytes in another node: `length` bytes at `from` are the bytes at `to` in `below`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) length: u64,
    pub(super) below: Node,
    pub(super) to: u64,
}

impl Piece {
    /// All of a device, from `to` in `below`.
    pub(super) fn whole(length: u64, below: Node, to: u64) -> Self {
        Self {
            from: 0,
            length,
            below,
            to,
        }
    }
}

/// Origin of a device's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Below {
    /// The device's own bytes.
    Nothing,
    /// Bytes of a disk that other devices are paths to as well.
    Path(Piece),
    /// A part of a disk.
    Partition(Piece),
    /// Bytes of a file, or of another device.
    Loop(Piece),
    /// Bytes of an export of this machine to itself; if several exports are possible, all of them.
    Export {
        pieces: Vec<Piece>,
        /// Whether the export keeps others from claiming it.
        claims: bool,
    },
    /// A loop device on an unknown object, with the reason.
    Unknown(String),
    /// Pieces of other devices, by a driver that keeps their other bytes to itself (device mapper).
    Mapped(Vec<Piece>),
    /// Blocks of a pool that the device mapper gave to this volume alone; a snapshot's blocks are copied before
    /// they are written.
    Thin(Number),
    /// Anywhere on these devices (md, bcache, an unreadable mapping).
    Spread(Vec<Number>),
}

impl Below {
    /// Pieces that may be bytes of files.
    fn in_files(&self) -> &[Piece] {
        match self {
            Self::Loop(piece) => std::slice::from_ref(piece),
            Self::Export { pieces, .. } => pieces,
            _ => &[],
        }
    }

    fn in_files_mut(&mut self) -> &mut [Piece] {
        match self {
            Self::Loop(piece) => std::slice::from_mut(piece),
            Self::Export { pieces, .. } => pieces,
            _ => &mut [],
        }
    }
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) below: Below,
    /// Devices that stand on it, according to the kernel.
    pub(super) holders: Vec<Number>,
    pub(super) read_only: bool,
}

/// A disk that several devices are paths to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disk {
    /// Id that the paths share.
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// All block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) devices: BTreeMap<Number, Device>,
    pub(super) disks: Vec<Disk>,
}

/// Chain of spans from the top to the bottom, each standing on the next.
pub(super) type Way = Vec<Span>;

impl Graph {
    /// All bytes of a device.
    pub(super) fn whole(&self, number: Number) -> Span {
        Span {
            node: Node::Device(number),
            start: 0,
            end: self.devices.get(&number).map_or(0, |device| device.bytes),
        }
    }

    /// Whether a span covers its whole node; the size of a file is not known here.
    pub(super) fn is_whole(&self, span: &Span) -> bool {
        match span.node {
            Node::Device(number) => *span == self.whole(number),
            Node::Disk(disk) => span.start == 0 && span.end == self.disks[disk].bytes,
            Node::File(_) => false,
        }
    }

    /// Every way from a span down to a node that stands on nothing known.
    pub(super) fn ways(&self, span: Span) -> Vec<Way> {
        let mut ways = Vec::new();
        self.follow(&mut vec![span], &mut ways);
        ways
    }

    fn follow(&self, way: &mut Way, ways: &mut Vec<Way>) {
        let Some(&span) = way.last() else { return };
        let next = if way.len() < DEPTH_MAX {
            self.next(&span)
        } else {
            Vec::new()
        };
        if next.is_empty() {
            ways.push(way.clone());
        }
        for below in next {
            // A cycle ends the way: exports with the same id can seem to stand on each other, and `/sys` can be
            // damaged.
            if way.iter().any(|span| span.node == below.node) {
                ways.push(way.clone());
                continue;
            }
            way.push(below);
            self.follow(way, ways);
            way.pop();
        }
    }

    fn next(&self, span: &Span) -> Vec<Span> {
        let device = span.node.device().and_then(|n| self.devices.get(&n));
        let Some(device) = device else {
            return Vec::new();
        };
        match &device.below {
            Below::Nothing | Below::Unknown(_) => Vec::new(),
            Below::Path(piece) | Below::Partition(piece) | Below::Loop(piece) => {
                span.moved(piece).into_iter().collect()
            }
            Below::Mapped(pieces) | Below::Export { pieces, claims: _ } => pieces
                .iter()
                .filter_map(|piece| span.moved(piece))
                .collect(),
            Below::Thin(pool) => vec![self.whole(*pool)],
            Below::Spread(devices) => devices.iter().map(|number| self.whole(*number)).collect(),
        }
    }

    /// Whether two devices are paths to one disk, or the same part of such paths.
    pub(super) fn are_paths_to_same(&self, a: Number, b: Number) -> bool {
        self.other_paths(a).any(|other| other == b)
    }

    /// Devices that show the bytes of this one by other paths to their disk.
    pub(super) fn other_paths(&self, number: Number) -> impl Iterator<Item = Number> {
        let ways = self.ways(self.whole(number));
        let is_path =
            |device: &Device| matches!(device.below, Below::Path(_) | Below::Partition(_));
        let is_whole = |device: &Device| matches!(device.below, Below::Path(_));
        let own_is_whole = self.devices.get(&number).is_some_and(is_whole);
        let paths = self.devices.iter().filter(move |(other, device)| {
            if !is_path(device) {
                return false;
            }
            let is_own = |span: &Span| span.node == Node::Device(**other);
            let theirs = self.ways(self.whole(**other));
            let theirs = theirs.first().and_then(|way| way.last());
            let is_disk = |span: &&Span| matches!(span.node, Node::Disk(_));
            // Paths to a whole disk that has grown show different sizes.
            let are_whole = own_is_whole && is_whole(device);
            let is_on_it = |span: &Span| {
                let mut own = ways.iter().filter_map(|way| way.last());
                own.any(|own| own == span || (are_whole && own.node == span.node))
            };
            theirs.filter(is_disk).is_some_and(is_on_it) && !ways.iter().flatten().any(is_own)
        });
        paths.map(|(other, _)| *other)
    }

    /// First shared bytes of two ways, from the top of the first one: the positions in both. Two volumes of one
    /// pool share none.
    pub(super) fn meeting(&self, a: &Way, b: &Way) -> Option<(usize, usize)> {
        let (at, place) = a.iter().enumerate().find_map(|(at, span)| {
            let other = b.iter().position(|other| other.overlaps(span))?;
            Some((at, other))
        })?;
        let pools = |way: &[Span]| {
            let pools = way
                .iter()
                .filter_map(|span| self.pool_of(span.node.device()?));
            pools.collect::<BTreeSet<Number>>()
        };
        let are_apart = !pools(&a[..at]).is_disjoint(&pools(&b[..place]));
        (!are_apart).then_some((at, place))
    }

    /// Pool whose blocks a thin volume has.
    pub(super) fn pool_of(&self, number: Number) -> Option<Number> {
        match self.devices.get(&number)?.below {
            Below::Thin(pool) => Some(pool),
            _ => None,
        }
    }

    /// Merges several identities of one file (a file of an overlay, and the one in its layer).
    pub(super) fn unify(&mut self, aliases: &[FileId], as_one: FileId) {
        for device in self.devices.values_mut() {
            for piece in device.below.in_files_mut() {
                let file = piece.below.file();
                if file.is_some_and(|file| aliases.contains(&file)) {
                    piece.below = Node::File(as_one);
                }
            }
        }
    }

    /// Files below loop devices and clients of this machine's exports.
    pub(super) fn files(&self) -> BTreeSet<FileId> {
        let below = self.devices.values().map(|device| &device.below);
        let pieces = below.flat_map(Below::in_files);
        pieces.filter_map(|piece| piece.below.file()).collect()
    }

    /// Origin of a device's bytes.
    fn below(&self, number: Number) -> Option<&Below> {
        self.devices.get(&number).map(|device| &device.below)
    }

    /// Whether a device is connected to an export of this machine.
    pub(super) fn is_client(&self, number: Number) -> bool {
        matches!(self.below(number), Some(Below::Export { .. }))
    }

    /// Whether a device shows bytes of another device or a file unchanged: a loop device, or a client of an own
    /// export.
    pub(super) fn shows_others(&self, number: Number) -> bool {
        self.is_loop(number) || self.is_client(number)
    }

    pub(super) fn is_loop(&self, number: Number) -> bool {
        matches!(self.below(number), Some(Below::Loop(_) | Below::Unknown(_)))
    }

    pub(super) fn is_partition(&self, number: Number) -> bool {
        matches!(self.below(number), Some(Below::Partition(_)))
    }

    /// Whether a driver assembles the device from others.
    pub(super) fn is_stacked(&self, number: Number) -> bool {
        matches!(
            self.below(number),
            Some(
                Below::Mapped(_)
                    | Below::Thin(_)
                    | Below::Spread(_)
                    | Below::Export { claims: true, .. }
            )
        )
    }

    /// Partitions of a device.
    pub(super) fn partitions(&self, disk: Number) -> impl Iterator<Item = (Number, &Device)> {
        self.devices.iter().filter_map(move |(number, device)| {
            matches!(&device.below, Below::Partition(piece) if piece.below == Node::Device(disk))
                .then_some((*number, device))
        })
    }
}
