//! What reading back has shown.

/// What can be wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It bears a header of ours, and its checksum is wrong.
    Corrupted,
    /// It is whole, but was written for another offset.
    Misplaced,
    /// It is whole and in its place, but from an earlier write, trial or run.
    Stale,
    /// A part of it is from one write, another part from before.
    Torn,
    /// It holds nothing that was ever written with a header of ours: zeros, or what was there before.
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
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the write among the thread's, from 0.
    pub number: u64,
}

/// What lies where something else was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundInstead {
    /// Data with a header of ours whose checksum is wrong.
    Damaged,
    /// What the trial wrote for the place that begins at this byte.
    MadeFor(u64),
    /// What an earlier trial or run wrote.
    Earlier,
    /// An earlier write of the same trial.
    Written(Write),
    /// Zeros.
    Zeros,
    /// Data without a header of ours.
    Unknown,
}

impl FoundInstead {
    /// Data without a header of ours, which may be zeros.
    pub fn unknown(zeros: bool) -> Self {
        if zeros { Self::Zeros } else { Self::Unknown }
    }
}

/// Blocks with one kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// How many.
    pub blocks: u64,
    /// The first byte in the target that is wrong with any of them; 0 without blocks.
    pub first_offset: u64,
}

/// What reading back has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Blocks read back: each that the trial wrote, once.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the region that the page cache still held when reading back began, after everything was written out
    /// and the cache was told to drop it; `None` where the system does not tell.
    pub cached_bytes: Option<u64>,
    /// By the kinds of [`FaultKind::ALL`], in their order.
    pub faults: [Faults; FaultKind::ALL.len()],
}

impl Verified {
    /// The blocks with a kind of fault.
    pub fn of(&self, kind: FaultKind) -> Faults {
        self.faults[kind as usize]
    }

    /// Blocks that are not as they were written.
    pub fn faulty_blocks(&self) -> u64 {
        self.faults.iter().map(|faults| faults.blocks).sum()
    }

    /// What was read back of two ranges together.
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

    /// Counts one more block with a fault at `offset`, the first byte in the target that is wrong.
    pub fn count(&mut self, kind: FaultKind, offset: u64) {
        let faults = &mut self.faults[kind as usize];
        faults.first_offset = match faults.blocks {
            0 => offset,
            _ => faults.first_offset.min(offset),
        };
        faults.blocks += 1;
    }
}

/// The first place at which the target does not hold what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyBlock {
    /// What is wrong with the block.
    pub kind: FaultKind,
    /// The first byte in the target that is wrong.
    pub offset: u64,
    /// The last write to the block; of several threads that share blocks, of one of them.
    pub wanted: Write,
    /// What is there instead.
    pub found: FoundInstead,
}

/// Data that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyData {
    /// Everything that was found.
    pub verified: Verified,
    /// The first faulty block.
    pub first: FaultyBlock,
}
