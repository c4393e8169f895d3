//! Durability of written data, and the allocation of the file.

use super::{Backend, FileLayout, Pattern, TrialSpec};
use crate::error::{Error, Result};
use crate::named_enum::named;

named! {
    /// When written data is made durable.
    pub enum SyncPolicy: "sync policy", else other_sync_names {
        /// Never.
        None = "none",
        /// `fsync` once at the end, inside the timed span.
        End = "end",
        /// `fsync` after every [`TrialSpec::sync_every`] writes; part of the latency of the last of these.
        Each = "each",
        /// `fdatasync` after writes, like [`SyncPolicy::Each`].
        Fdatasync = "fdatasync",
        /// The file is opened with `O_SYNC`.
        Osync = "osync",
        /// The file is opened with `O_DSYNC`.
        Odsync = "odsync",
        /// Each write carries `RWF_DSYNC`.
        RwfDsync = "rwf_dsync",
    }
}

/// `fsync` is fio's name of `each`; `sync_file_range` makes nothing durable.
fn other_sync_names(text: &str) -> Option<Result<SyncPolicy>> {
    match text {
        "fsync" => Some(Ok(SyncPolicy::Each)),
        "sync_file_range" => Some(Err(Error::usage(
            "sync=sync_file_range makes nothing durable: it flushes neither metadata nor the cache of the device",
        )
        .hint("set sync=fdatasync for what a log needs, or sync=none"))),
        _ => None,
    }
}

/// A system call that makes earlier writes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncCall {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
}

named! {
    /// The allocation of the file that is written.
    pub enum Allocate: "allocation" {
        /// A new, empty file for each trial, which grows with each write: includes the cost of allocation.
        Append = "append",
        /// A new file for each trial with allocated (`fallocate`), unwritten space.
        Preallocated = "preallocated",
        /// A file that was written before: writes replace its data.
        Recycled = "recycled",
    }
}

impl SyncPolicy {
    /// Whether it makes data durable during the writes, not only at the end.
    pub fn is_per_write(self) -> bool {
        self.follows_writes() || self.is_in_write()
    }

    /// Whether a separate call follows writes.
    pub fn follows_writes(self) -> bool {
        self.call().is_some()
    }

    /// Whether the write itself makes its data durable.
    pub fn is_in_write(self) -> bool {
        matches!(
            self,
            SyncPolicy::Osync | SyncPolicy::Odsync | SyncPolicy::RwfDsync
        )
    }

    /// The call that follows writes; `None` for other policies.
    pub fn call(self) -> Option<SyncCall> {
        match self {
            SyncPolicy::Each => Some(SyncCall::Fsync),
            SyncPolicy::Fdatasync => Some(SyncCall::Fdatasync),
            _ => None,
        }
    }
}

impl TrialSpec {
    /// Whether a trial writes a new file once from start to end; the pass is then its limit.
    pub(super) fn fills_new_file(&self) -> bool {
        matches!(
            self.allocate,
            Some(Allocate::Append | Allocate::Preallocated)
        )
    }

    /// Checks durability and allocation.
    pub(super) fn check_durability(&self) -> Result<()> {
        let fail = |message: String, hint: &str| Err(Error::usage(message).hint(hint));
        if self.sync_every == 0 {
            return fail(
                "sync_every is 0".to_owned(),
                "choose 1 for a sync after each write, or sync=none for none",
            );
        }
        if self.sync_every > 1 && !self.sync.follows_writes() {
            return fail(
                format!("sync_every={} with sync={}", self.sync_every, self.sync),
                "only a call of its own can follow several writes: set sync=each or sync=fdatasync",
            );
        }
        if self.sync == SyncPolicy::RwfDsync && !self.backend.takes_write_flags() {
            return fail(
                format!("sync=rwf_dsync with backend {}", self.backend),
                "its calls take no flags: set backend=pvsync2, io_uring or libaio, or sync=odsync",
            );
        }
        if self.iopoll && self.sync.follows_writes() {
            return fail(
                format!("iopoll with sync={}", self.sync),
                "a polled ring cannot sync; set sync=odsync",
            );
        }
        self.check_allocation()
    }

    fn check_allocation(&self) -> Result<()> {
        let Some(allocate) = self.allocate else {
            return Ok(());
        };
        let fail = |what: &str, hint: &str| {
            Err(Error::usage(format!("allocate={allocate} with {what}")).hint(hint))
        };
        if allocate == Allocate::Recycled {
            return match self.fresh {
                true => fail(
                    "fresh=true",
                    "a new file has nothing to replace; set fresh=false",
                ),
                false => Ok(()),
            };
        }
        if self.reads() {
            return fail(
                "reads",
                "a new file has nothing to read; set read_percent=0",
            );
        }
        if allocate == Allocate::Preallocated {
            return Ok(());
        }
        if self.pattern != Pattern::Seq {
            return fail(
                &format!("pattern {}", self.pattern),
                "a file grows at its end; set pattern=seq",
            );
        }
        if self.threads > 1 && self.layout != FileLayout::Private {
            return fail(
                &format!("{} threads and layout={}", self.threads, self.layout),
                "each thread needs a file to append to; set layout=private",
            );
        }
        if self.depth > 1 {
            return fail(
                &format!("depth {}", self.depth),
                "writes that are in flight together do not append in order; set depth=1",
            );
        }
        if self.backend == Backend::Mmap {
            return fail(
                "backend mmap",
                "a mapping does not grow its file; set backend=psync",
            );
        }
        Ok(())
    }
}
