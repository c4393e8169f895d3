//! Flags and advice of a trial, and whether its requests can be traced.

use super::{Backend, CacheState, Others, TrialSpec};
use crate::error::{Error, Result};
use crate::named_enum::named;
use crate::usage_errors;

named! {
    /// Advice to the kernel about the order of reads (`posix_fadvise`).
    pub enum Advice: "advice" {
        /// No special order: the kernel's default.
        Normal = "normal",
        /// In order: doubles the read-ahead.
        Sequential = "sequential",
        /// In no order: disables read-ahead.
        Random = "random",
        /// Each byte once: the pages read do not count as recently used (Linux 6.3).
        NoReuse = "noreuse",
    }
}

impl TrialSpec {
    /// Checks flags and advice.
    pub(super) fn check_flags(&self) -> Result<()> {
        let direct = self.cache == CacheState::Direct;
        usage_errors! {
            self.sqpoll && !matches!(self.backend, Backend::IoUring | Backend::Null) => format!("sqpoll with backend {}", self.backend),
                "only io_uring has a thread of the kernel that polls for requests: set backend=io_uring, or sqpoll=false";
            self.iopoll && !matches!(self.backend, Backend::IoUring | Backend::Pvsync2 | Backend::Null) => format!("iopoll with backend {}", self.backend),
                "this backend does not poll for completions: set backend=io_uring or pvsync2, or iopoll=false";
            self.realtime.is_some() && self.sqpoll => "realtime with sqpoll",
                "the kernel's polling thread would wait for real-time threads that wait for it: set realtime=none or sqpoll=false";
            self.realtime.is_some() && self.nice.is_some() => "realtime with nice",
                "a nice value has no effect on real-time threads: set realtime=none or nice=none";
            self.fadvise.is_some() && direct => "fadvise with cache=direct",
                "the advice controls read-ahead into the page cache: set cache=cold, or leave fadvise out";
            self.fadvise.is_some() && self.backend == Backend::Mmap => "fadvise with backend mmap",
                "the advice applies to read calls: set another backend, or leave fadvise out";
        }
        Ok(())
    }
}

impl TrialSpec {
    /// Checks that each request of a traced trial is one that the kernel's trace events can be joined with.
    pub(super) fn check_trace(&self) -> Result<()> {
        if !self.trace {
            return Ok(());
        }
        let refusals = [
            (
                self.backend == Backend::Null,
                "backend null",
                "it issues no I/O: set another backend",
            ),
            (
                self.cache != CacheState::Direct,
                "buffered I/O",
                "a request that the page cache serves reaches no device, and read-ahead reaches it for several: set cache=direct",
            ),
            (
                !self.latency,
                "latency=false",
                "the stages are parts of each request's service time: set latency=true",
            ),
            (
                self.trims(),
                "trims",
                "a file system may delay them or split them as it likes: set trim_percent=0",
            ),
            (
                self.iopoll,
                "iopoll",
                "polled completions wake no thread: leave iopoll out",
            ),
            (
                self.others != Others::default(),
                "several processes (ranks)",
                "each would trace the requests of all: trace a run of one process",
            ),
        ];
        match refusals.into_iter().find(|(applies, ..)| *applies) {
            Some((_, with, hint)) => {
                Err(Error::usage(format!("trace=true with {with}")).hint(hint))
            }
            None => Ok(()),
        }
    }
}
