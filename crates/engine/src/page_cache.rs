//! What becomes of pages in the page cache.

use std::ops::Range;

use rustix::fs::{Advice, fadvise};

use iolab_spec::outcome::FailedRequest;
use iolab_target::Target;

/// Writes out what the page cache still owes a target; the range is what is known to have been written.
pub(crate) fn make_durable(target: &Target, range: Range<u64>) -> Result<(), FailedRequest> {
    rustix::fs::fdatasync(target.file()).map_err(|errno| FailedRequest {
        syscall: "fdatasync",
        offset: range.start,
        length: range.end - range.start,
        errno: errno.raw_os_error(),
    })
}

/// Has the page cache drop a range. Devices without a page cache refuse the advice, and need none.
pub(crate) fn drop_pages(target: &Target, range: Range<u64>) {
    let length = std::num::NonZero::new(range.end - range.start);
    let _ = fadvise(target.file(), range.start, length, Advice::DontNeed);
}
