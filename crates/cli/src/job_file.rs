//! Reading a job file of fio for this machine.

use std::path::Path;

use iolab_fio::job::{JobFile, PageSize};
use iolab_workload::Result;

/// Reads the job file that a command was given.
///
/// # Errors
/// As [`JobFile::read`].
pub(crate) fn read(path: &Path, target: Option<&Path>, allow_include: bool) -> Result<JobFile> {
    JobFile::read(path, target, allow_include, page_size())
}

#[cfg(feature = "measure")]
fn page_size() -> PageSize {
    PageSize(iolab_storage::procfs::page_size() as u64)
}

/// The usual size, because the file is measured on another machine.
#[cfg(not(feature = "measure"))]
fn page_size() -> PageSize {
    PageSize::USUAL
}
