//! Free memory in single pages, as on a machine that has run for long: no two consecutively allocated pages are
//! adjacent.

use std::fs::File;

use needs::Need;
use rustix::fs::{FallocateFlags, fallocate};

use crate::system::{Made, failed, lacks};

/// Bytes of which every second page is freed.
const BYTES: u64 = 1 << 30;
/// Size of a page, bytes.
const PAGE: u64 = 4096;

/// Frees every second page of a file in memory. The kernel allocates single pages before it divides larger
/// blocks. While the file is open, no freed page has a free neighbour to merge with.
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
