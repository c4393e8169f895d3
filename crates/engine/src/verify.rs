//! Whether what was written is what is there: blocks that say where and when they were written, and reading them back.
//!
//! What each block must hold is known without a table in the hot loop: offsets follow from the seed, so that after
//! the trial they are gone through once more. A block may hold any write that was not over before another one to the
//! same block began: which of two that overlap comes last is not for the storage to know. Each worker keeps how many
//! of its writes at most began while one of them was on its way, and a block is stale when what it holds was followed,
//! at a greater distance than that, by another write of the same worker. With one request at a time that distance is 0.

mod block;
mod format;
mod read_back;
mod signer;
mod table;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::pattern::derive;
use crate::spec::{Backend, Content, Layout, TrialSpec};

use format::{Generation, SECTOR};
pub(crate) use read_back::{Reading, read_back};
pub(crate) use signer::{Signed, Signer};

/// Most blocks that can be verified: the table of them takes 8 bytes each, 1 GiB.
pub const BLOCKS_MAX: u64 = 1 << 27;

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

impl From<Generation> for Write {
    fn from(generation: Generation) -> Self {
        Self {
            thread: generation.thread(),
            number: generation.number(),
        }
    }
}

/// What lies where something else was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
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

impl Found {
    fn of(generation: Generation) -> Self {
        Self::Written(generation.into())
    }

    fn unknown(zeros: bool) -> Self {
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

    fn count(&mut self, kind: FaultKind, offset: u64) {
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
    pub found: Found,
}

/// Data that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyData {
    /// Everything that was found.
    pub verified: Verified,
    /// The first faulty block.
    pub first: FaultyBlock,
}

/// Memory that reading back takes for the table of the blocks, bytes; 0 where nothing is verified.
pub fn table_bytes(spec: &TrialSpec) -> u64 {
    match spec.verify {
        true => spec.region.div_ceil(spec.bs.max(1)).saturating_mul(8),
        false => 0,
    }
}

/// Refuses to verify where there is nothing to verify, or no way to.
pub(crate) fn check(spec: &TrialSpec) -> Result<()> {
    if !spec.verify {
        return Ok(());
    }
    let fail = |message: String, hint: &str| Err(Error::usage(message).hint(hint));
    if !spec.writes() {
        return fail(
            "verify in a trial that only reads".to_owned(),
            "only data that the trial itself has written can be verified: set read_percent below 100, or leave verify out",
        );
    }
    if spec.backend == Backend::Null {
        return fail(
            "verify with backend null".to_owned(),
            "it writes nothing, so that there is nothing to read back: choose another backend, or leave verify out",
        );
    }
    if spec.layout == Layout::Private {
        return fail(
            "verify with layout=private".to_owned(),
            "what is written is read back from one file: set another layout, or leave verify out",
        );
    }
    if spec.content != Content::Unique {
        return fail(
            format!("verify with content={}", spec.content),
            "blocks that are all alike cannot tell which is which: set content=unique, or leave verify out",
        );
    }
    if !spec.bs.is_multiple_of(SECTOR as u64) {
        return fail(
            format!("verify with bs of {} bytes", spec.bs),
            "every 512 bytes bear a checksum: choose a multiple of 512, or leave verify out",
        );
    }
    let blocks = table_bytes(spec) / 8;
    if blocks > BLOCKS_MAX {
        return fail(
            format!("verify of {blocks} blocks, more than {BLOCKS_MAX}"),
            "8 bytes of memory are needed for each block: choose a larger bs or a smaller region, or leave verify out",
        );
    }
    Ok(())
}

/// An identity that no other trial has, also not one of the same seed: what it left must not pass for this one's.
pub(crate) fn identity(seed: u64) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    derive(
        derive(seed, now.as_nanos() as u64),
        u64::from(std::process::id()),
    )
}
