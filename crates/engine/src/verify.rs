//! Checks that written data is read back: blocks say where and when they were written.
//!
//! The expected content of each block is known without a table in the hot loop. Offsets follow from the seed, so they are
//! generated again after the trial. If two writes to a block overlap in time, the block may hold either: the storage may
//! complete them in any order. Each worker keeps the largest number of its writes that began while one of them was in
//! flight. A block is stale if the same worker wrote to it again more than that many writes later. With one request at a
//! time the number is 0.

mod read_back;
pub(crate) mod signer;
#[cfg(test)]
mod tests;

use std::time::SystemTime;

use iolab_workload::region_state::{FoundInstead, Write};

use iolab_workload::pattern::derive;

pub(crate) use read_back::{Reading, read_back};
use signer::Generation;

/// An identity that no other trial has, not even one with the same seed: earlier data must not pass for this trial's.
pub(crate) fn identity(seed: u64) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    derive(
        derive(seed, now.as_nanos() as u64),
        u64::from(std::process::id()),
    )
}

/// A write of the same trial as the content found.
fn written(generation: Generation) -> FoundInstead {
    FoundInstead::Written(Write {
        thread: generation.thread(),
        number: generation.number(),
    })
}
