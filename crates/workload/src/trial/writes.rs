//! The flags of a trial, and its writes: their durability, data and trims.

use super::{Backend, CacheState, FileLayout, Others, Pattern, TrialSpec};
use crate::error::{Error, Result};
use crate::names::named;
use crate::usage_errors;

named! {
    /// When written data is made durable.
    pub enum SyncPolicy: "sync policy", else other_sync_names {
        /// Never.
        None = "none",
        /// `fsync` once at the end, inside the timed span.
        End = "end",
        /// `fsync` after every [`TrialSpec::sync_every`] writes; its time is part of the latency of the last of these
        /// writes.
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
        /// A new, empty file for each trial that only writes.
        Fresh = "fresh",
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
    /// Whether a trial writes a new file once from start to end; the pass is then its limit.
    pub(super) fn fills_new_file(&self) -> bool {
        matches!(
            self.allocate,
            Some(Allocate::Append | Allocate::Preallocated)
        )
    }

    /// Checks durability and allocation.
    pub(super) fn check_durability(&self) -> Result<()> {
        usage_errors! {
            self.sync_every == 0 => "sync_every is 0", "choose 1 for a sync after each write, or sync=none for none";
            self.sync_every > 1 && !self.sync.follows_writes() => format!("sync_every={} with sync={}", self.sync_every, self.sync),
                "only a call of its own can follow several writes: set sync=each or sync=fdatasync";
            self.sync == SyncPolicy::RwfDsync && !self.backend.takes_write_flags() => format!("sync=rwf_dsync with backend {}", self.backend),
                "its calls take no flags: set backend=pvsync2, io_uring or libaio, or sync=odsync";
            self.iopoll && self.sync.follows_writes() => format!("iopoll with sync={}", self.sync),
                "a polled ring cannot sync; set sync=odsync";
        }
        self.check_allocation()
    }

    fn check_allocation(&self) -> Result<()> {
        let Some(allocate) = self.allocate else {
            return Ok(());
        };
        let append = allocate == Allocate::Append;
        usage_errors! {
            self.fills_new_file() && self.reads() => format!("allocate={allocate} with reads"), "a new file has nothing to read; set read_percent=0";
            append && self.pattern != Pattern::Seq => format!("allocate=append with pattern {}", self.pattern),
                "a file grows at its end; set pattern=seq";
            append && self.threads > 1 && self.layout != FileLayout::Private =>
                format!("allocate=append with {} threads and layout={}", self.threads, self.layout),
                "each thread needs a file to append to; set layout=private";
            append && self.depth > 1 => format!("allocate=append with depth {}", self.depth),
                "writes that are in flight together do not append in order; set depth=1";
            append && self.backend == Backend::Mmap => "allocate=append with backend mmap",
                "a mapping does not grow its file; set backend=psync";
        }
        Ok(())
    }

    /// Checks the settings of written data.
    pub(super) fn check_data(&self) -> Result<()> {
        let percent = self.compressible;
        if percent == 0 {
            return Ok(());
        }
        usage_errors! {
            percent > 100 => format!("compressible is {percent}"), "choose 0 to 100";
            !self.writes_data() => format!("compressible={percent} in a trial that writes no data"),
                "it describes the data that is written: set read_percent=0";
            self.reads() => format!("compressible={percent} in a mix of reads and writes"),
                "reads leave what they found in the buffers that writes take their data from: set read_percent=0";
            self.verify => format!("verify with compressible={percent}"),
                "blocks with checksums are all different and do not shrink: leave out one of the two";
        }
        Ok(())
    }

    /// Whether any request of this trial trims.
    pub fn trims(&self) -> bool {
        self.writes() && self.trim_percent > 0
    }

    /// Whether any request of this trial writes data.
    pub fn writes_data(&self) -> bool {
        self.writes() && self.trim_percent < 100
    }

    /// The share of the requests that write data, 0 to 1.
    pub fn data_share(&self) -> f64 {
        f64::from(100 - self.read_percent) / 100.0 * f64::from(100 - self.trim_percent) / 100.0
    }

    /// Checks the settings of trims.
    pub(super) fn check_trims(&self) -> Result<()> {
        usage_errors! {
            self.trim_percent > 100 => format!("trim_percent is {}", self.trim_percent), "choose 0 to 100";
        }
        if self.trim_percent == 0 {
            return Ok(());
        }
        let asked = format!("trim_percent={}", self.trim_percent);
        usage_errors! {
            !self.writes() => format!("{asked} with reads alone"),
                "only writes trim: set read_percent below 100, or leave the trims out";
            matches!(self.backend, Backend::Mmap | Backend::Libaio | Backend::IoUring) => format!("{asked} with backend {}", self.backend),
                "this backend has no request that trims: set backend=psync, pvsync2 or sync, and more threads for more at a time";
            self.verify => "verify with trims", "trimmed blocks hold nothing to verify: leave out one of the two";
            self.starts_fresh() => "trims on a new file",
                "it has no data that could be trimmed: set allocate=recycled";
        }
        Ok(())
    }

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

    /// Checks that each request of a traced trial is one that the kernel's trace events can be joined with.
    pub(super) fn check_trace(&self) -> Result<()> {
        if !self.trace {
            return Ok(());
        }
        usage_errors! {
            self.backend == Backend::Null => "trace=true with backend null", "it issues no I/O: set another backend";
            self.cache != CacheState::Direct => "trace=true with buffered I/O",
                "a request that the page cache serves reaches no device, and read-ahead reaches it for several: set cache=direct";
            !self.latency => "trace=true with latency=false", "the stages are parts of each request's service time: set latency=true";
            self.trims() => "trace=true with trims", "a file system may delay them or split them as it likes: set trim_percent=0";
            self.iopoll => "trace=true with iopoll", "polled completions wake no thread: leave iopoll out";
            self.others != Others::default() => "trace=true with several processes (ranks)",
                "each would trace the requests of all: trace a run of one process";
        }
        Ok(())
    }
}
