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
pub(crate) mod signer;
mod table;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

use iolab_workload::verify::{FoundInstead, Write};

use iolab_workload::pattern::derive;

use format::Generation;
pub(crate) use read_back::{Reading, read_back};

/// An identity that no other trial has, also not one of the same seed: what it left must not pass for this one's.
pub(crate) fn identity(seed: u64) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    derive(
        derive(seed, now.as_nanos() as u64),
        u64::from(std::process::id()),
    )
}

impl From<Generation> for Write {
    fn from(generation: Generation) -> Self {
        Self {
            thread: generation.thread(),
            number: generation.number(),
        }
    }
}

/// What a write of the same trial left.
fn written(generation: Generation) -> FoundInstead {
    FoundInstead::Written(generation.into())
}
