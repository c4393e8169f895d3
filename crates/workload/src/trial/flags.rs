//! Flags, advice and priority of requests.

use std::fmt;
use std::str::FromStr;

use super::{Backend, CacheState, TrialSpec};
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

named! {
    /// How long written data lives, relative to other data, as the kernel may tell a device (`F_SET_RW_HINT`).
    pub enum WriteHint: "write hint" {
        /// No particular time.
        Unspecific = "unspecific",
        /// A short time.
        Short = "short",
        /// A medium time.
        Medium = "medium",
        /// A long time.
        Long = "long",
        /// A very long time.
        Extreme = "extreme",
    }
}

/// Highest number of an I/O priority level, which is the lowest priority in its class.
pub const PRIORITY_LEVEL_MAX: u8 = 7;

/// I/O priority of the threads (`ioprio_set`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IoPriority {
    /// Before all other classes; level 0 (highest) to 7. Needs CAP_SYS_NICE or CAP_SYS_ADMIN.
    RealTime(u8),
    /// The class of most programs; level 0 (highest) to 7, by default 4.
    BestEffort(u8),
    /// Only when no other process uses the disk.
    Idle,
}

impl FromStr for IoPriority {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not an I/O priority"))
                .hint("write rt:0 to rt:7 (real time), be:0 to be:7 (best effort, 0 first) or idle")
        };
        if text == "idle" {
            return Ok(Self::Idle);
        }
        let (class, level) = text.split_once(':').ok_or_else(wrong)?;
        let level = level.parse().ok();
        let level = level
            .filter(|level| *level <= PRIORITY_LEVEL_MAX)
            .ok_or_else(wrong)?;
        match class {
            "rt" => Ok(Self::RealTime(level)),
            "be" => Ok(Self::BestEffort(level)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime(level) => f.pad(&format!("rt:{level}")),
            Self::BestEffort(level) => f.pad(&format!("be:{level}")),
            Self::Idle => f.pad("idle"),
        }
    }
}

impl TrialSpec {
    /// Checks flags and advice.
    pub(super) fn check_flags(&self) -> Result<()> {
        let takes_flags = !matches!(self.backend, Backend::Sync | Backend::Psync | Backend::Mmap);
        for (asked, name) in [(self.dontcache, "dontcache"), (self.atomic, "atomic")] {
            usage_errors! {
                asked && !takes_flags => format!("{name} with backend {}", self.backend),
                    "the calls of this backend take no flags: set backend=pvsync2, io_uring or libaio";
            }
        }
        let direct = self.cache == CacheState::Direct;
        usage_errors! {
            self.dontcache && direct => "dontcache with cache=direct",
                "direct I/O leaves nothing in the page cache anyway: set cache=cold, or leave dontcache out";
        }
        if self.atomic {
            self.check_atomic()?;
        }
        usage_errors! {
            self.write_hint.is_some() && !self.writes_data() => "write_hint in a trial that writes nothing",
                "it says how long written data lives: set read_percent below 100, or write_hint=none";
            self.sqpoll && !matches!(self.backend, Backend::IoUring | Backend::Null) => format!("sqpoll with backend {}", self.backend),
                "only io_uring has a thread of the kernel that polls for requests: set backend=io_uring, or sqpoll=false";
            self.iopoll && !matches!(self.backend, Backend::IoUring | Backend::Pvsync2 | Backend::Null) => format!("iopoll with backend {}", self.backend),
                "this backend does not poll for completions: set backend=io_uring or pvsync2, or iopoll=false";
            self.sqpoll_cpu.is_some() && !self.sqpoll => "sqpoll_cpu without sqpoll",
                "it is the CPU of the polling thread: set sqpoll=true, or sqpoll_cpu=none";
            self.realtime.is_some() && self.sqpoll => "realtime with sqpoll",
                "the kernel's polling thread would wait behind real-time threads that wait for it: set realtime=none or sqpoll=false";
            self.realtime.is_some() && self.nice.is_some() => "realtime with nice",
                "a nice value has no effect on real-time threads: set realtime=none or nice=none";
            self.nowait && !matches!(self.backend, Backend::Pvsync2 | Backend::Null) => format!("nowait with backend {}", self.backend),
                "only preadv2 and pwritev2 report that a request would wait: set backend=pvsync2; io_uring tries without waiting by itself";
            self.fadvise.is_some() && direct => "fadvise with cache=direct",
                "the advice controls read-ahead into the page cache: set cache=cold, or leave fadvise out";
            self.fadvise.is_some() && self.backend == Backend::Mmap => "fadvise with backend mmap",
                "the advice applies to read calls: set another backend, or leave fadvise out";
        }
        Ok(())
    }

    fn check_atomic(&self) -> Result<()> {
        usage_errors! {
            !self.writes_data() => "atomic in a trial that writes nothing",
                "the flag applies to writes: set read_percent below 100, or leave atomic out";
            self.cache != CacheState::Direct => "atomic with buffered I/O", "only direct writes can be atomic: set cache=direct";
            self.backend == Backend::IoUring && self.registered => "atomic with registered buffers of io_uring",
                "the kernel refuses atomic writes from registered buffers: set registered=false, or backend=pvsync2";
            self.bs_mix.is_some() => "atomic with bs_mix", "an atomic write starts at a multiple of its own size: choose one bs";
            !self.bs.is_power_of_two() || !self.offset.is_multiple_of(self.bs) || !self.skip.is_multiple_of(self.bs) =>
                "atomic with a bs that is not a power of two, or an offset or skip that is not a multiple of bs",
                "the size of an atomic write is a power of two, and it starts at a multiple of its size: choose such a bs";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused_trials::{refusals, trial};
    use super::*;

    #[test]
    fn priorities_read_as_they_are_written() {
        for text in ["rt:0", "be:7", "idle"] {
            assert_eq!(text.parse::<IoPriority>().expect(text).to_string(), text);
        }
        for text in ["", "rt", "be:8", "idle:1", "none:4", "be:-1"] {
            let error = text.parse::<IoPriority>().expect_err(text);
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn flags_without_a_meaning_are_refused() {
        const CACHED: &str = "backend=pvsync2 cache=cold";
        const ATOMIC: &str = "backend=io_uring registered=false read_percent=0 atomic=true";
        for flag in ["dontcache=true", "nowait=true", "fadvise=random"] {
            trial(&format!("{CACHED} {flag}")).check().expect(flag);
        }
        let of_threads = [
            "write_hint=short",
            "sqpoll=true backend=libaio",
            "iopoll=true cache=direct backend=libaio",
            "sqpoll_cpu=0",
            "realtime=50 sqpoll=true backend=io_uring",
            "realtime=50 nice=0",
        ];
        insta::assert_snapshot!(refusals("", &of_threads), @r"
        write_hint=short: write_hint in a trial that writes nothing
        sqpoll=true backend=libaio: sqpoll with backend libaio
        iopoll=true cache=direct backend=libaio: iopoll with backend libaio
        sqpoll_cpu=0: sqpoll_cpu without sqpoll
        realtime=50 sqpoll=true backend=io_uring: realtime with sqpoll
        realtime=50 nice=0: realtime with nice
        ");
        let of_cached = [
            "dontcache=true backend=psync", "dontcache=true cache=direct",
            "nowait=true backend=io_uring", "fadvise=random backend=mmap",
            "fadvise=random cache=direct",
        ];
        insta::assert_snapshot!(refusals(CACHED, &of_cached), @r"
        dontcache=true backend=psync: dontcache with backend psync
        dontcache=true cache=direct: dontcache with cache=direct
        nowait=true backend=io_uring: nowait with backend io_uring
        fadvise=random backend=mmap: fadvise with backend mmap
        fadvise=random cache=direct: fadvise with cache=direct
        ");
        let of_atomic = [
            "backend=sync", "read_percent=100", "registered=true", "cache=hot", "bs=12288",
            "bs=8192 offset=4096", "bs_mix=4k",
        ];
        insta::assert_snapshot!(refusals(ATOMIC, &of_atomic), @r"
        backend=sync: atomic with backend sync
        read_percent=100: atomic in a trial that writes nothing
        registered=true: atomic with registered buffers of io_uring
        cache=hot: atomic with buffered I/O
        bs=12288: atomic with a bs that is not a power of two, or an offset or skip that is not a multiple of bs
        bs=8192 offset=4096: atomic with a bs that is not a power of two, or an offset or skip that is not a multiple of bs
        bs_mix=4k: atomic with bs_mix
        ");
    }
}
