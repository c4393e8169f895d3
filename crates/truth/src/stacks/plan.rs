//! Plan of a stack as plain values, and the geometry that follows from them.

use std::ops::Range;

use needs::Need;

use super::mapping::Mapping;
use crate::files::MIB;

/// Number of a step, by which later steps refer to its result.
pub type Id = usize;

/// One step of making a stack, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The private folder that contains everything: always the first step, and only that.
    Root,
    /// A folder.
    Folder {
        /// The folder that contains it.
        within: Id,
    },
    /// A regular file: sparse, with data in three places.
    File {
        /// The folder that contains it.
        within: Id,
        /// Length, bytes.
        bytes: u64,
    },
    /// A second name (hard link) of a file in the same folder.
    Link {
        /// The file.
        file: Id,
    },
    /// A loop device.
    Loop {
        /// The file or device below.
        over: Id,
        /// First byte in the object below.
        offset: u64,
        /// Length, if it ends before the object below.
        limit: Option<u64>,
    },
    /// A device that a driver puts over another one.
    Mapped {
        /// Kind of driver.
        kind: Mapping,
        /// The device below.
        over: Id,
    },
    /// The end of a mapped device; its data stays.
    Ended {
        /// The device.
        mapped: Id,
    },
    /// An MBR partition table with two partitions of about half a device each.
    Table {
        /// A loop device, or a device of a driver.
        on: Id,
    },
    /// Device of a partition: the kernel's, or a mapped one where the kernel knows no partitions on the device.
    Partition {
        /// The table.
        table: Id,
        /// 0 or 1.
        nth: u64,
    },
    /// A file system or swap space, not yet in use.
    Format {
        /// Kind of file system.
        kind: Format,
        /// Devices or file that it is made on: two if the kind takes two.
        on: Vec<Id>,
    },
    /// The folder where a file system is mounted.
    Mount {
        /// The file system.
        format: Id,
        /// Whether only a process in a separate mount namespace sees it.
        hidden: bool,
    },
    /// Activation of swap space.
    Swap {
        /// The swap space.
        format: Id,
    },
    /// A bind mount of a folder, elsewhere.
    Bind {
        /// The folder.
        folder: Id,
    },
    /// The folder where this machine mounts a folder that it exports itself (NFS).
    Remote {
        /// The folder.
        folder: Id,
        /// Whether version 3 is used instead of 4.2.
        is_old: bool,
    },
    /// The folder where an overlay is mounted.
    Overlay {
        /// Lower layer of the overlay.
        lower: Id,
        /// Folder that contains its upper layer.
        host: Id,
    },
    /// A file, by its path through a bind mount or an export, or through an overlay with the file in its lower
    /// layer.
    Seen {
        /// The file.
        file: Id,
        /// The bind mount, export or overlay.
        through: Id,
    },
    /// A file made in an overlay, by its path in the upper layer.
    Under {
        /// The file.
        file: Id,
    },
    /// Another process that holds a file or device.
    Hold {
        /// The file or device.
        node: Id,
        /// Kind of hold.
        how: Hold,
    },
}

/// Kind of hold by a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A descriptor open for writing, without O_EXCL.
    Writing,
    /// A shared, writable mapping whose descriptor is closed.
    Mapped,
    /// A descriptor open for reading.
    Reading,
    /// An export by the kernel with NVMe over Fabrics, without a process.
    Exported,
}

/// Possible format of a device.
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
    /// All formats.
    pub const ALL: &[Self] = &[
        Self::Ext4,
        Self::Ext4Journal,
        Self::Xfs,
        Self::XfsLog,
        Self::Btrfs,
        Self::BtrfsTwo,
        Self::Swap,
    ];

    /// Requirement of a machine to make and mount it.
    pub fn need(self) -> Need {
        match self {
            Format::Ext4 | Format::Ext4Journal => Need::Ext4,
            Format::Xfs | Format::XfsLog => Need::Xfs,
            Format::Btrfs | Format::BtrfsTwo => Need::Btrfs,
            Format::Swap => Need::Swap,
        }
    }

    /// Smallest sizes of its devices, bytes.
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

    /// Name of its signature on its first or second device, as `--destroy-data=` takes it. The journal of an
    /// ext4 has the magic number of an ext file system, so either name will do.
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

/// Consent that the user gives with the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// `--destroy-data`.
    Plain,
    /// `--destroy-data=` with all idle signatures in the target.
    Named,
    /// `--destroy-data=` with a signature that does not exist.
    Wrong,
}

/// Parts of the machine that iolab can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The whole machine.
    Whole,
    /// An empty folder instead of `/sys`.
    NoSys,
    /// An empty folder instead of `/proc`.
    NoProc,
}

/// A stack, the node of it that iolab writes to, and the form of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Steps, in the order of making.
    pub steps: Vec<Step>,
    /// A folder, file or device of the stack.
    pub target: Id,
    /// Consent of the user.
    pub consent: Consent,
    /// Parts of the machine that iolab can see.
    pub view: View,
}

/// Bytes of a file that does not map byte by byte to another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The file.
    pub base: Id,
    /// Range in the file.
    pub range: Range<u64>,
}

impl Extent {
    /// Whether both have a byte in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.base == other.base
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether the extent is empty.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// Bytes taken by a table, a file system, swap space or a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Step that took them.
    pub by: Id,
    /// The bytes.
    pub extent: Extent,
    /// Signature there; empty if there is none.
    pub signature: &'static str,
    /// Step that put it to use.
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

    /// Adds a step, and returns its number.
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

    /// Whether a step made a folder or file with this machine as both server and client.
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

    /// Whether the result of a step, and everything that it stands on, was not ended.
    pub fn is_there(&self, id: Id) -> bool {
        !self.steps.iter().any(|step| {
            matches!(step, Step::Ended { mapped } if *mapped == id || self.stands_on(id, *mapped))
        })
    }

    /// Steps that a step stands on directly.
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

    /// Whether a step stands on another, directly or indirectly.
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

    /// Most loop devices and driver devices on a way down from a step.
    pub fn layers(&self, id: Id) -> usize {
        let own = usize::from(matches!(
            self.steps[id],
            Step::Loop { .. } | Step::Mapped { .. }
        ));
        let below = self.below(id).into_iter().map(|below| self.layers(below));
        own + below.max().unwrap_or(0)
    }

    /// Bytes of a file or device; `None` for anything else.
    pub fn extent(&self, id: Id) -> Option<Extent> {
        match &self.steps[id] {
            Step::File { bytes, .. } => Some(Extent {
                base: id,
                range: 0..*bytes,
            }),
            Step::Link { file } | Step::Under { file } => self.extent(*file),
            Step::Seen { file, through } => {
                let extent = self.extent(*file)?;
                // Opening it for writing through the overlay makes a copy.
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

    /// Whether a step is on a device that was ended, and cannot be recognised any more.
    fn is_lost(&self, id: Id) -> bool {
        self.all().any(|(below, step)| {
            let hides = matches!(step, Step::Mapped { kind, .. } if kind.hides());
            hides && !self.is_there(below) && self.stands_on(id, below)
        })
    }

    /// Claims on bytes, except those by a node itself and by the nodes below it.
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

    /// File system that a file or folder is in: a mount, or the root.
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

/// The two partitions of a table on this number of bytes.
pub fn partitions(bytes: u64) -> [Range<u64>; 2] {
    let middle = bytes / 2 / MIB * MIB;
    [MIB..middle, middle..bytes / MIB * MIB]
}

/// The first (0) or second partition of a table on this number of bytes.
pub fn partition(bytes: u64, nth: u64) -> Range<u64> {
    let [first, second] = partitions(bytes);
    if nth == 0 { first } else { second }
}
