//! The result of reading back written data.

use serde::{Deserialize, Serialize};

/// Fault of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A header of iolab's with a wrong checksum.
    Corrupted,
    /// Valid data that was written for another offset.
    Misplaced,
    /// Valid data in its place, but from an earlier write, trial or run.
    Stale,
    /// Block with one part from one write and another part from an earlier one.
    Torn,
    /// No header of iolab's: zeros, or earlier content.
    Lost,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Corrupted,
        Self::Misplaced,
        Self::Stale,
        Self::Torn,
        Self::Lost,
    ];

    /// Its name in messages, run files and exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrupted => "corrupted",
            Self::Misplaced => "misplaced",
            Self::Stale => "stale",
            Self::Torn => "torn",
            Self::Lost => "lost",
        }
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

impl FoundInstead {
    /// Data without a header of ours; `zeros` says whether they are all zero.
    pub fn unknown(zeros: bool) -> Self {
        if zeros { Self::Zeros } else { Self::Unknown }
    }
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
