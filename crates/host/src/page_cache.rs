//! The page cache before and after a trial: filling it, writing it back, dropping its pages.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, fadvise};

use iolab_storage::Target;
use iolab_workload::outcome::FailedRequest;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result};

/// Request size for filling the page cache before a `hot` trial, bytes.
const WARM_REQUEST: usize = 1 << 20;

/// Writes a target's dirty pages back. `range` is the part known to have been written.
///
/// # Errors
/// A failed call of fdatasync(2).
pub fn make_durable(target: &Target, range: Range<u64>) -> std::result::Result<(), FailedRequest> {
    rustix::fs::fdatasync(target.file()).map_err(|errno| FailedRequest {
        syscall: "fdatasync",
        offset: range.start,
        length: range.end - range.start,
        errno: errno.raw_os_error(),
    })
}

/// Asks the page cache to drop a range. Devices without a page cache refuse the advice, and do not need it.
pub fn drop_pages(target: &Target, range: Range<u64>) {
    let length = std::num::NonZero::new(range.end - range.start);
    let _ = fadvise(target.file(), range.start, length, Advice::DontNeed);
}

/// Brings the page cache of a range into the requested state; `warm` is the part that this process fills.
/// Earlier writes are synced first, so that their write-back does not fall into this trial.
///
/// # Errors
/// A sync or read of the target that fails; of kind [`Interrupted`](iolab_workload::Kind::Interrupted) when
/// `stop` was raised.
pub fn prepare(
    spec: &TrialSpec,
    target: &Target,
    range: Range<u64>,
    warm: Range<u64>,
    stop: &AtomicBool,
) -> Result<()> {
    let file = target.file();
    if spec.writes() {
        rustix::fs::fdatasync(file).map_err(|errno| {
            Error::failed(format!("fdatasync before the trial failed: {errno}"))
        })?;
    }
    match spec.cache {
        // Direct I/O would have to invalidate pages of earlier buffered use within the timed span.
        CacheState::Direct | CacheState::Cold => {
            drop_pages(target, range);
            Ok(())
        }
        CacheState::Hot => read_once(file, warm, stop),
    }
}

fn read_once(file: &File, range: Range<u64>, stop: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0u8; WARM_REQUEST];
    let Range { start: mut at, end } = range;
    while at < end {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        let want = (end - at).min(WARM_REQUEST as u64) as usize;
        match rustix::io::pread(file, &mut buffer[..want], at) {
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::failed(format!(
                    "pread at offset {at} failed while warming the cache: {errno}"
                ))
                .hint("look into the kernel's log (dmesg) for errors of the device"));
            }
        }
    }
    Ok(())
}
