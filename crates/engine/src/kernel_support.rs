//! Mechanisms that not every kernel has: whether this process may use them, tried once.

use std::io::Error as IoError;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::backend::io_uring;
use crate::buffer;
use iolab_workload::Result;
use iolab_workload::trial::{Backend, BufferInit, TrialSpec};

/// A level of a setting that trials cannot have on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLevel {
    /// The setting (`backend`).
    pub setting: &'static str,
    /// Its level (`io_uring`).
    pub level: &'static str,
    /// A level that does the same by another mechanism, if there is one (`libaio`).
    pub instead: Option<&'static str>,
    /// Why it cannot be had, in a few words.
    pub why: String,
}

/// The levels that this system refuses to every trial of this process.
pub fn missing_levels() -> Vec<MissingLevel> {
    let ring = io_uring_refused().map(|errno| MissingLevel {
        setting: "backend",
        level: Backend::IoUring.name(),
        instead: Some(Backend::Libaio.name()),
        why: format!("the system refuses io_uring: {}", IoError::from(errno)),
    });
    let populated = populating_refused().map(|errno| MissingLevel {
        setting: "buffer_init",
        level: BufferInit::Populated.name(),
        instead: None,
        why: format!(
            "the kernel refuses MADV_POPULATE_WRITE, which Linux has since 5.14: {}",
            IoError::from(errno)
        ),
    });
    ring.into_iter().chain(populated).collect()
}

/// Checks that the mechanisms of a trial are there.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the first that is not, and what to use instead.
pub(crate) fn check(spec: &TrialSpec) -> Result<()> {
    if spec.backend == Backend::IoUring
        && let Some(errno) = io_uring_refused()
    {
        return Err(io_uring::refused(&errno.into()));
    }
    if spec.buffer_init == BufferInit::Populated
        && let Some(errno) = populating_refused()
    {
        return Err(buffer::advice_refused("MADV_POPULATE_WRITE", errno));
    }
    Ok(())
}

/// The error with which the system refuses rings altogether. Conditions that may change later, such as memory, are left to
/// the trial.
fn io_uring_refused() -> Option<Errno> {
    static REFUSED: OnceLock<Option<Errno>> = OnceLock::new();
    *REFUSED.get_or_init(|| {
        let errno = Errno::from_io_error(&io_uring::try_ring().err()?)?;
        [Errno::NOSYS, Errno::PERM, Errno::ACCESS]
            .contains(&errno)
            .then_some(errno)
    })
}

/// The error with which the kernel refuses to populate memory: it does not know the advice.
fn populating_refused() -> Option<Errno> {
    static REFUSED: OnceLock<Option<Errno>> = OnceLock::new();
    *REFUSED.get_or_init(|| {
        let length = iolab_storage::procfs::page_size();
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping of our own, which nothing refers to.
        let page = unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, kind) }.ok()?;
        // SAFETY: the mapping made above; the advice discards nothing.
        let advised = unsafe { madvise(page, length, Advice::LinuxPopulateWrite) };
        // SAFETY: the same mapping, used nowhere else. If it fails, one page stays mapped.
        let _ = unsafe { munmap(page, length) };
        advised.err().filter(|errno| *errno == Errno::INVAL)
    })
}
