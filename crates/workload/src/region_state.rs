//! The bytes of a target around a trial: their medium, their state in the page cache, and whether they read back
//! as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Number, counter_set, known};
use crate::names::named;

counter_set! {
    /// The part of a range that is in the page cache.
    pub struct Residency: known {
        /// Bytes of the range that were examined, evenly spread; the other counts are extrapolated to the whole range.
        pub looked_bytes: u64,
        /// Bytes in the page cache.
        pub resident_bytes: u64,
        /// Bytes in the page cache that are not yet written; `None` if only mincore is available.
        pub dirty_bytes: Option<u64>,
        /// Bytes being written at that moment; `None` if only mincore is available.
        pub writeback_bytes: Option<u64>,
    }
}

impl Residency {
    /// Bytes that have not reached storage; `None` if unknown.
    pub fn owed_bytes(&self) -> Option<u64> {
        Some(self.dirty_bytes?.saturating_add(self.writeback_bytes?))
    }
}

counter_set! {
    /// The part of a range that was never written, and reads as zeros without storage I/O.
    pub struct Extents: known {
        /// Bytes of the range that were examined, evenly spread; the other counts are extrapolated to the whole range.
        pub looked_bytes: u64,
        /// Bytes in holes; includes unwritten extents if only SEEK_HOLE is available.
        pub hole_bytes: u64,
        /// Bytes allocated (`fallocate`) but never written; `None` if only SEEK_HOLE is available.
        pub unwritten_bytes: Option<u64>,
    }
}

impl Extents {
    /// Bytes that were never written.
    pub fn empty_bytes(&self) -> u64 {
        self.hole_bytes
            .saturating_add(self.unwritten_bytes.unwrap_or(0))
    }
}

/// State of the region that a trial may access, and the cost of examining it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Page cache before the start.
    pub before: Option<Residency>,
    /// Page cache after the end.
    pub after: Option<Residency>,
    /// Holes and unwritten extents before the start; devices have none.
    pub extents: Option<Extents>,
    /// Time of the `fdatasync` after writes that no sync of the trial made durable, ns: the time to write the remaining
    /// data of the page cache, or of the drive's volatile cache.
    pub owed_sync_ns: Option<u64>,
    /// Time of examining the region before and after the timed span, without the `fdatasync`, ns.
    pub evidence_ns: u64,
}

impl Region {
    /// Share of a region of `region_bytes` that was never written, without bytes that dirty pages of the cache may still
    /// fill. `None` if the extents are unknown.
    pub fn empty_share(&self, region_bytes: u64) -> Option<f64> {
        let extents = self.extents.filter(|extents| extents.looked_bytes > 0)?;
        let owed = self.before.as_ref().and_then(Residency::owed_bytes);
        let empty = extents.empty_bytes().saturating_sub(owed.unwrap_or(0));
        Some(match region_bytes {
            0 => 0.0,
            all => (empty as f64 / all as f64).min(1.0),
        })
    }
}

named! {
    /// The storage medium of a target's bytes.
    #[derive(Default)]
    pub enum Medium: "medium" {
        /// Devices of this machine, through the kernel.
        #[default]
        Storage = "storage",
        /// Certainly memory.
        Memory = "memory",
        /// A process (FUSE) or another machine (NFS, SMB, a hypervisor's shared folder), about whose storage the kernel knows
        /// nothing.
        Elsewhere = "elsewhere",
    }
}

impl Medium {
    /// Medium of several targets together: storage only if each of them is.
    pub fn of_all(media: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut media = media.into_iter();
        let first = media.next()?;
        let others = media.find(|medium| *medium != Self::Storage);
        Some(match first {
            Self::Storage => others.unwrap_or(first),
            _ => first,
        })
    }
}

named! {
    /// Fault of a block.
    pub enum FaultKind: "fault" {
        /// A header of iolab's with a wrong checksum.
        Corrupted = "corrupted",
        /// Valid data that was written for another offset.
        Misplaced = "misplaced",
        /// Valid data in its place, but from an earlier write, trial or run.
        Stale = "stale",
        /// Block with one part from one write and another part from an earlier one.
        Torn = "torn",
        /// No header of iolab's: zeros, or earlier content.
        Lost = "lost",
    }
}

/// A write of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Index of the thread.
    pub thread: u32,
    /// Index of the write among the writes of the thread.
    pub number: u64,
}

/// Content found in place of the expected write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundInstead {
    /// Data with a header of iolab's whose checksum is wrong.
    Damaged,
    /// Data that the trial wrote for the block at this byte offset.
    MadeFor(u64),
    /// Data of an earlier trial or run.
    Earlier,
    /// An earlier write of the same trial.
    Written(Write),
    /// Zeros.
    Zeros,
    /// Data without a header of iolab's.
    Unknown,
}

/// Blocks with one kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Faults {
    /// Number of blocks.
    pub blocks: u64,
    /// Offset in the target of the first wrong byte; 0 without blocks.
    pub first_offset: u64,
}

/// The result of reading back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verified {
    /// Number of distinct blocks that the trial wrote and that were read back.
    pub blocks: u64,
    /// Bytes of the blocks that were read back.
    pub bytes: u64,
    /// Bytes of the region still in the page cache when reading back began, after they were written and the cache was asked to
    /// drop them; `None` if unknown.
    pub cached_bytes: Option<u64>,
    /// In the order of [`FaultKind::ALL`].
    pub faults: [Faults; FaultKind::ALL.len()],
}

impl Verified {
    /// The blocks with this kind of fault.
    pub fn of(&self, kind: FaultKind) -> Faults {
        self.faults[kind as usize]
    }

    /// Number of blocks with any fault.
    pub fn faulty_blocks(&self) -> u64 {
        let blocks = self.faults.iter().map(|faults| faults.blocks);
        // The numbers of a damaged run file may be anything.
        blocks.fold(0, u64::saturating_add)
    }

    /// The sum of two ranges.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        let cached = self.cached_bytes.zip(other.cached_bytes);
        self.cached_bytes = cached.map(|(a, b)| a + b);
        for (sum, part) in self.faults.iter_mut().zip(other.faults) {
            sum.first_offset = match (sum.blocks, part.blocks) {
                (0, _) => part.first_offset,
                (_, 0) => sum.first_offset,
                _ => sum.first_offset.min(part.first_offset),
            };
            sum.blocks += part.blocks;
        }
        self
    }

    /// Counts a block with a fault, whose first wrong byte is at `offset` in the target.
    pub fn count(&mut self, kind: FaultKind, offset: u64) {
        let faults = &mut self.faults[kind as usize];
        faults.first_offset = match faults.blocks {
            0 => offset,
            _ => faults.first_offset.min(offset),
        };
        faults.blocks += 1;
    }
}

/// The first faulty block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyBlock {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Offset in the target of the first wrong byte.
    pub offset: u64,
    /// The last write to the block; if several threads share blocks, of one of them.
    pub wanted: Write,
    /// The content found.
    pub found: FoundInstead,
}

/// Data that differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyData {
    /// Counts over all blocks.
    pub verified: Verified,
    /// The first faulty block.
    pub first: FaultyBlock,
}
