//! What stands on what: a stack as plain values, and the geometry that follows from them.

use std::ops::Range;

use needs::Need;

use super::mapping::Mapping;
use crate::files::MIB;

/// The number of a step; later steps refer to what it made by this.
pub type Id = usize;

/// One thing that is made, in the order in which it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The private folder that everything lies in: always the first step, and only that.
    Root,
    /// A folder.
    Folder {
        /// The folder it lies in.
        within: Id,
    },
    /// A regular file: sparse, with data in three places.
    File {
        /// The folder it lies in.
        within: Id,
        /// Its length.
        bytes: u64,
    },
    /// A second name (hard link) of a file, beside it.
    Link {
        /// The file.
        file: Id,
    },
    /// A loop device.
    Loop {
        /// The file or device below.
        over: Id,
        /// Its first byte in what lies below.
        offset: u64,
        /// Its length where it ends before what lies below does.
        limit: Option<u64>,
    },
    /// A device that a driver puts over another one.
    Mapped {
        /// Which driver.
        kind: Mapping,
        /// The device below.
        over: Id,
    },
    /// Such a device is ended; its data stays.
    Ended {
        /// The device.
        mapped: Id,
    },
    /// An MBR partition table with two partitions of about half a device each.
    Table {
        /// A loop device, or a device of a driver.
        on: Id,
    },
    /// The device of a partition: of the kernel, or mapped where that knows no partitions on the device.
    Partition {
        /// The table.
        table: Id,
        /// 0 or 1.
        nth: u64,
    },
    /// A file system or swap space, not yet in use.
    Format {
        /// Which one.
        kind: Format,
        /// The devices or the file it is made on: two where the kind takes two.
        on: Vec<Id>,
    },
    /// The folder where a file system is mounted.
    Mount {
        /// The file system.
        format: Id,
        /// Only a process in a mount namespace of its own sees it.
        hidden: bool,
    },
    /// Swap space is put to use.
    Swap {
        /// The swap space.
        format: Id,
    },
    /// A bind mount of a folder, elsewhere.
    Bind {
        /// The folder.
        folder: Id,
    },
    /// The folder where an export of a folder is mounted by this machine, which is its server as well (NFS).
    Remote {
        /// The folder.
        folder: Id,
        /// By version 3 instead of 4.2.
        is_old: bool,
    },
    /// The folder where an overlay is mounted.
    Overlay {
        /// Its lower layer.
        lower: Id,
        /// The folder in which its upper layer lies.
        host: Id,
    },
    /// A file, by its path through a bind mount or an export, or through an overlay whose lower layer it lies in.
    Seen {
        /// The file.
        file: Id,
        /// The bind mount, export or overlay.
        through: Id,
    },
    /// A file that was made in an overlay, by its path in the upper layer.
    Under {
        /// The file.
        file: Id,
    },
    /// Another process holds a file or device.
    Hold {
        /// The file or device.
        node: Id,
        /// How it holds it.
        how: Hold,
    },
}

/// How a process holds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A descriptor open for writing, without O_EXCL.
    Writing,
    /// A shared, writable mapping whose descriptor is closed.
    Mapped,
    /// A descriptor open for reading.
    Reading,
    /// Not a process, but the kernel, which exports it by NVMe over Fabrics.
    Exported,
}

/// What a device can be formatted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// ext4.
    Ext4,
    /// ext4 with its journal on a second device.
    Ext4Journal,
    /// XFS.
    Xfs,
    /// XFS with its log on a second device.
    XfsLog,
    /// btrfs.
    Btrfs,
    /// btrfs over two devices.
    BtrfsTwo,
    /// Swap space.
    Swap,
}

impl Format {
    /// Each of them.
    pub const ALL: &[Self] = &[
        Self::Ext4,
        Self::Ext4Journal,
        Self::Xfs,
        Self::XfsLog,
        Self::Btrfs,
        Self::BtrfsTwo,
        Self::Swap,
    ];

    /// What a machine needs to make and mount it.
    pub fn need(self) -> Need {
        match self {
            Format::Ext4 | Format::Ext4Journal => Need::Ext4,
            Format::Xfs | Format::XfsLog => Need::Xfs,
            Format::Btrfs | Format::BtrfsTwo => Need::Btrfs,
            Format::Swap => Need::Swap,
        }
    }

    /// The least sizes of its devices.
    pub fn sizes(self) -> &'static [u64] {
        match self {
            Format::Ext4 => &[16 * MIB],
            Format::Ext4Journal => &[16 * MIB, 8 * MIB],
            // mkfs.xfs and mkfs.btrfs refuse less.
            Format::Xfs => &[300 * MIB],
            Format::XfsLog => &[300 * MIB, 65 * MIB],
            Format::Btrfs => &[128 * MIB],
            Format::BtrfsTwo => &[128 * MIB, 128 * MIB],
            Format::Swap => &[8 * MIB],
        }
    }

    /// The name of its signature on its first or second device, as `--destroy-data=` takes it. The journal of an ext4 has
    /// the magic number of an ext file system: either name will do.
    pub fn signature(self, device: usize) -> &'static str {
        match (self, device) {
            (Format::Ext4Journal, 1) => "jbd,ext2,ext3,ext4",
            (Format::Ext4 | Format::Ext4Journal, _) => "ext4",
            (Format::XfsLog, 1) => "xfs_external_log",
            (Format::Xfs | Format::XfsLog, _) => "xfs",
            (Format::Btrfs | Format::BtrfsTwo, _) => "btrfs",
            (Format::Swap, _) => "swap",
        }
    }
}

/// What the user names along with the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// `--destroy-data`.
    Plain,
    /// `--destroy-data=` with all signatures that are not in use and lie in the target.
    Named,
    /// `--destroy-data=` with a signature that is not there.
    Wrong,
}

/// What iolab can see of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// All of it.
    Whole,
    /// An empty folder instead of `/sys`.
    NoSys,
    /// An empty folder instead of `/proc`.
    NoProc,
}

/// A stack, the node of it that iolab is to write to, and how that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What is made, in this order.
    pub steps: Vec<Step>,
    /// A folder, file or device of it.
    pub target: Id,
    /// What the user names.
    pub consent: Consent,
    /// What iolab can see.
    pub view: View,
}

/// Bytes of a file that stands on no other node of the stack byte by byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The file.
    pub base: Id,
    /// Where in it.
    pub range: Range<u64>,
}

impl Extent {
    /// Whether both have a byte in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.base == other.base
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }

    /// Their number of bytes.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// Bytes that a table, a file system, swap space or a driver takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The step that took them.
    pub by: Id,
    /// The bytes.
    pub extent: Extent,
    /// Its signature there; empty where it leaves none.
    pub signature: &'static str,
    /// The step that put it to use.
    pub active: Option<Id>,
}

impl Plan {
    /// The first step alone, as its own target.
    pub fn new() -> Self {
        Self {
            steps: vec![Step::Root],
            target: 0,
            consent: Consent::Plain,
            view: View::Whole,
        }
    }

    /// Adds a step; its number.
    pub fn push(&mut self, step: Step) -> Id {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// All steps with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (Id, &Step)> {
        self.steps.iter().enumerate()
    }

    /// Whether a step made a folder in which all users can make files.
    pub fn is_folder(&self, id: Id) -> bool {
        matches!(
            self.steps[id],
            Step::Root
                | Step::Folder { .. }
                | Step::Mount { hidden: false, .. }
                | Step::Bind { .. }
                | Step::Remote { .. }
                | Step::Overlay { .. }
        )
    }

    /// Whether a step made a folder or file that this machine is the server and the client of.
    pub fn is_remote(&self, id: Id) -> bool {
        match self.steps[id] {
            Step::Remote { .. } => true,
            Step::Seen { through, .. } => self.is_remote(through),
            _ => false,
        }
    }

    /// Whether a step made a block device.
    pub fn is_device(&self, id: Id) -> bool {
        let made_one = matches!(
            self.steps[id],
            Step::Loop { .. } | Step::Partition { .. } | Step::Mapped { .. }
        );
        made_one && self.is_there(id)
    }

    /// Whether what a step made, and all that it stands on, was not ended.
    pub fn is_there(&self, id: Id) -> bool {
        !self.steps.iter().any(|step| {
            matches!(step, Step::Ended { mapped } if *mapped == id || self.stands_on(id, *mapped))
        })
    }

    /// The steps that a step stands on directly.
    pub fn below(&self, id: Id) -> Vec<Id> {
        match &self.steps[id] {
            Step::Root => vec![],
            Step::Folder { within } | Step::File { within, .. } => vec![*within],
            Step::Link { file } | Step::Under { file } => vec![*file],
            Step::Loop { over, .. } => vec![*over],
            Step::Mapped { over, .. } => vec![*over],
            Step::Ended { mapped } => vec![*mapped],
            Step::Table { on } => vec![*on],
            Step::Partition { table, .. } => vec![*table],
            Step::Format { on, .. } => on.clone(),
            Step::Mount { format, .. } | Step::Swap { format } => vec![*format],
            Step::Bind { folder } | Step::Remote { folder, .. } => vec![*folder],
            Step::Overlay { lower, host } => vec![*lower, *host],
            Step::Seen { file, through } => vec![*file, *through],
            Step::Hold { node, .. } => vec![*node],
        }
    }

    /// Whether a step stands on another, over however many.
    pub fn stands_on(&self, id: Id, other: Id) -> bool {
        self.below(id)
            .into_iter()
            .any(|below| below == other || self.stands_on(below, other))
    }

    /// Whether the kernel itself knows the partitions of a table.
    pub fn has_kernel_partitions(&self, table: Id) -> bool {
        match self.below(table).first().map(|on| &self.steps[*on]) {
            Some(Step::Mapped { kind, .. }) => kind.has_kernel_partitions(),
            _ => true,
        }
    }

    /// The most loop devices and devices of drivers on a way down from a step.
    pub fn layers(&self, id: Id) -> usize {
        let own = usize::from(matches!(
            self.steps[id],
            Step::Loop { .. } | Step::Mapped { .. }
        ));
        let below = self.below(id).into_iter().map(|below| self.layers(below));
        own + below.max().unwrap_or(0)
    }

    /// The bytes of a file or device; `None` for anything else.
    pub fn extent(&self, id: Id) -> Option<Extent> {
        match &self.steps[id] {
            Step::File { bytes, .. } => Some(Extent {
                base: id,
                range: 0..*bytes,
            }),
            Step::Link { file } | Step::Under { file } => self.extent(*file),
            Step::Seen { file, through } => {
                let extent = self.extent(*file)?;
                // Whoever opens it for writing through the overlay gets a copy.
                let is_copy = matches!(self.steps[*through], Step::Overlay { .. });
                let base = if is_copy { id } else { extent.base };
                Some(Extent { base, ..extent })
            }
            Step::Loop {
                over,
                offset,
                limit,
            } => {
                let below = self.extent(*over)?;
                let start = below.range.start + offset;
                let end = limit.map_or(below.range.end, |limit| start + limit);
                Some(Extent {
                    range: start..end.min(below.range.end),
                    ..below
                })
            }
            Step::Mapped { kind, over } => {
                let below = self.extent(*over)?;
                let data = kind.data(below.len());
                if kind.has_own_bytes() && (self.is_there(id) || kind.hides()) {
                    return Some(Extent {
                        base: id,
                        range: 0..data.end - data.start,
                    });
                }
                let start = below.range.start;
                Some(Extent {
                    range: start + data.start..start + data.end,
                    ..below
                })
            }
            Step::Partition { table, nth } => {
                let Step::Table { on } = self.steps[*table] else {
                    return None;
                };
                let disk = self.extent(on)?;
                let part = partition(disk.len(), *nth);
                let start = disk.range.start;
                Some(Extent {
                    base: disk.base,
                    range: start + part.start..start + part.end,
                })
            }
            _ => None,
        }
    }

    /// All claims on all bytes.
    pub fn claims(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (id, step) in self.all().filter(|(id, _)| !self.is_lost(*id)) {
            match step {
                Step::Table { on } => {
                    let disk = self.extent(*on);
                    claims.extend(disk.map(|disk| Claim {
                        by: id,
                        extent: Extent {
                            base: disk.base,
                            range: disk.range.start..disk.range.start + 512,
                        },
                        signature: "mbr,dos",
                        active: None,
                    }));
                }
                Step::Mapped { kind, over } => {
                    let active = self.is_there(id).then_some(id);
                    let left = kind.signature().or(active.map(|_| ""));
                    claims.extend(
                        left.zip(self.extent(*over))
                            .map(|(signature, extent)| Claim {
                                by: id,
                                extent,
                                signature,
                                active,
                            }),
                    );
                }
                // A mapped device, which keeps the bytes of its partition from others.
                Step::Partition { table, .. } if !self.has_kernel_partitions(*table) => {
                    claims.extend(self.extent(id).map(|extent| Claim {
                        by: id,
                        extent,
                        signature: "",
                        active: Some(id),
                    }));
                }
                Step::Format { kind, on } => {
                    let uses = |step: &Step| matches!(step, Step::Mount { format, .. } | Step::Swap { format } if *format == id);
                    let active = self.steps.iter().position(uses);
                    let extents = on.iter().map(|on| self.extent(*on)).enumerate();
                    claims.extend(extents.filter_map(|(device, extent)| {
                        Some(Claim {
                            by: id,
                            extent: extent?,
                            signature: kind.signature(device),
                            active,
                        })
                    }));
                }
                _ => {}
            }
        }
        claims
    }

    /// Whether a step lies on a device that was ended, and nothing tells of it any more.
    fn is_lost(&self, id: Id) -> bool {
        self.all().any(|(below, step)| {
            let hides = matches!(step, Step::Mapped { kind, .. } if kind.hides());
            hides && !self.is_there(below) && self.stands_on(id, below)
        })
    }

    /// The claims on bytes, but for those by a node itself and by what it stands on.
    pub fn claims_of_others(&self, node: Id) -> impl Iterator<Item = Claim> {
        let is_own = move |claim: &Claim| claim.by == node || self.stands_on(node, claim.by);
        self.claims()
            .into_iter()
            .filter(move |claim| !is_own(claim))
    }

    /// Bytes that the kernel may change at any time: file systems and swap in use, and metadata of drivers.
    pub fn unsettled(&self) -> Vec<Extent> {
        let mut all = Vec::new();
        for claim in self.claims() {
            let (Some(_), extent) = (claim.active, claim.extent) else {
                continue;
            };
            match self.steps[claim.by] {
                Step::Mapped { kind, .. } => {
                    let start = extent.range.start;
                    let own = kind.metadata(extent.len()).into_iter();
                    all.extend(own.map(|part| Extent {
                        base: extent.base,
                        range: start + part.start..start + part.end,
                    }));
                }
                Step::Partition { .. } => {}
                _ => all.push(extent),
            }
        }
        all
    }

    /// The file system that a file or folder lies in: a mount, or the root.
    pub fn home(&self, id: Id) -> Id {
        match &self.steps[id] {
            Step::Folder { within } | Step::File { within, .. } => self.home(*within),
            Step::Link { file } | Step::Under { file } | Step::Seen { file, .. } => {
                self.home(*file)
            }
            Step::Bind { folder } | Step::Remote { folder, .. } => self.home(*folder),
            Step::Overlay { host, .. } => self.home(*host),
            _ => id,
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}

/// The two partitions of a table on so many bytes.
pub fn partitions(bytes: u64) -> [Range<u64>; 2] {
    let middle = bytes / 2 / MIB * MIB;
    [MIB..middle, middle..bytes / MIB * MIB]
}

/// The first (0) or the second partition of a table on so many bytes.
pub fn partition(bytes: u64, nth: u64) -> Range<u64> {
    let [first, second] = partitions(bytes);
    if nth == 0 { first } else { second }
}
