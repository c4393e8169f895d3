//! Free memory in single pages, as on a machine that has run for long: no two pages that are given out next lie side by side.

use std::fs::File;

use needs::Need;
use rustix::fs::{FallocateFlags, fallocate};

use crate::system::{Made, failed, lacks};

/// Bytes of which every second page is freed.
const BYTES: u64 = 1 << 30;
/// Bytes of a page.
const PAGE: u64 = 4096;

/// Frees every second page of a file in memory. The kernel gives out single pages before it divides larger pieces; as long as the file is open,
/// none of these has a free neighbour to become one with.
///
/// # Errors
/// No `/dev/shm`, or too little room in it.
pub fn scatter() -> Made<File> {
    const FOLDER: &str = "/dev/shm";
    let file = tempfile::tempfile_in(FOLDER).map_err(lacks(Need::Shm, FOLDER))?;
    let made = fallocate(&file, FallocateFlags::empty(), 0, BYTES);
    made.map_err(lacks(Need::Shm, "1 GiB in memory"))?;
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for at in (0..BYTES / PAGE).step_by(2).map(|page| page * PAGE) {
        fallocate(&file, hole, at, PAGE).map_err(failed("a hole"))?;
    }
    Ok(file)
}
