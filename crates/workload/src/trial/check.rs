//! Checks a trial, except for what depends on the target.

use std::time::Duration;

use super::{
    Allocate, BLOCKS_MAX, BS_MAX, Backend, Batch, BufferInit, CacheState, DEPTH_MAX, FileLayout,
    FirstOffset, Others, Pattern, RATE_MAX, SyncPolicy, THREADS_MAX, TrialSpec,
};
use crate::error::{Error, Result};
use crate::units::exact_duration;
use crate::usage_errors;

/// Each sector of a verified block has a checksum, bytes.
const SECTOR: u64 = 512;
/// Most blocks that can be verified: their table has 8 bytes each, 1 GiB in all.
pub const VERIFIED_BLOCKS_MAX: u64 = 1 << 27;

impl TrialSpec {
    /// Checks everything that does not depend on the target.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](crate::Kind::Usage), with the setting and the accepted values.
    pub fn check(&self) -> Result<()> {
        let end = self.offset.checked_add(self.region);
        usage_errors! {
            self.bs == 0 || self.bs > BS_MAX => format!("bs is {} bytes", self.bs),
                "choose an I/O size from 1 byte to 2 GiB minus 4 KiB, the most one system call transfers";
            self.region < self.bs => format!("the region of {} bytes is smaller than one request of {} bytes", self.region, self.bs),
                "enlarge it with --size or choose a smaller bs";
        }
        let blocks = self.region / self.bs;
        let is_mapped = self.backend == Backend::Mmap;
        usage_errors! {
            blocks > BLOCKS_MAX => format!("{blocks} blocks are more than 2^48"), "choose a larger bs or a smaller region";
            end.is_none_or(|end| end > i64::MAX as u64) => "offset plus region is beyond what a file can have",
                "choose a smaller offset or region";
            self.threads == 0 || self.threads > THREADS_MAX => format!("threads is {}", self.threads), "choose 1 to 1024 threads";
            self.depth == 0 || self.depth > DEPTH_MAX => format!("depth is {}", self.depth), "choose a depth from 1 to 4096";
            self.depth > 1 && !self.backend.is_asynchronous() => format!("depth {} with backend {}", self.depth, self.backend),
                "it keeps one request outstanding; raise threads instead, or set backend=io_uring or libaio";
            blocks < u64::from(self.workers()) && self.parts_region() =>
                format!("{} share {blocks} blocks of {} bytes", self.workers_in_words(), self.bs),
                format!("each thread needs at least one block: enlarge the region, or use {} or a smaller bs", self.fewer_workers());
            self.read_percent > 100 => format!("read_percent is {}", self.read_percent), "choose 0 to 100";
            self.writes() && self.buffer_init == BufferInit::Untouched => "buffer_init=untouched with writes",
                "an untouched buffer has nothing to write; set another buffer_init";
            is_mapped && self.cache == CacheState::Direct => "backend mmap with cache=direct",
                "a mapping lives in the page cache; set cache=cold or cache=hot";
            self.iopoll && self.cache != CacheState::Direct && self.backend != Backend::Null => "iopoll with buffered I/O",
                "polled completions need cache=direct";
            is_mapped && matches!(self.sync, SyncPolicy::Osync | SyncPolicy::Odsync) => format!("backend mmap with sync={}", self.sync),
                "the flag has no effect on a mapping; set sync=each or sync=end";
            self.limit.bytes == Some(0) || self.limit.time == Some(Duration::ZERO) => "limits that leave a trial nothing to do",
                "give bytes or time a value above zero";
            self.first_offset == FirstOffset::Random && self.allocate == Some(Allocate::Append) =>
                "first_offset=random with allocate=append",
                "a file that grows begins at its first byte; set first_offset=zero";
        }
        self.check_sizes()?;
        self.check_pauses()?;
        self.check_trims()?;
        self.check_flags()?;
        self.check_trace()?;
        usage_errors! {
            self.latency_over_time && !self.latency && self.rate.is_none() => "latency_over_time=true with latency=false",
                "set latency=true: without it no request is timed";
        }
        self.check_data()?;
        check_verify(self)?;
        usage_errors! {
            !self.sharing_applies() => "descriptors=shared with layout=private",
                "a file per thread has a descriptor per thread; set descriptors=private or another layout";
            self.layout == FileLayout::Interleaved && self.pattern == Pattern::Strided => "layout interleaved with pattern strided",
                "both define the gap after a block; set layout=shared, or pattern=seq";
            self.layout == FileLayout::Private && self.offset > 0 => format!("offset {} with layout=private", self.offset),
                "files of their own begin at 0; leave the offset out";
        }
        self.check_files()?;
        self.check_ranks()?;
        self.check_durability()?;
        check_rate(self)
    }
}

/// Memory for the table of written blocks that reading back needs, bytes; 0 without verification.
pub fn verify_table_bytes(spec: &TrialSpec) -> u64 {
    match spec.verify {
        true => spec.region.div_ceil(spec.bs.max(1)).saturating_mul(8),
        false => 0,
    }
}

/// Refuses verification if it is unknown which write each block should hold, or if blocks cannot be read back, recognised,
/// or kept in memory.
fn check_verify(spec: &TrialSpec) -> Result<()> {
    if !spec.verify {
        return Ok(());
    }
    let are_apart = spec.pattern.is_ordered() && spec.parts_region();
    let blocks = verify_table_bytes(spec) / 8;
    usage_errors! {
        !spec.writes() => "verify in a trial that only reads",
            "only data that the trial itself has written can be verified: set read_percent below 100, or leave verify out";
        spec.others != Others::default() && !are_apart => "verify in a trial of several processes that write the same blocks",
            "a process knows only what its own threads have written: set pattern=seq and layout=shared or interleaved, or leave verify out";
        spec.backend == Backend::Mmap && spec.threads > 1 && !are_apart =>
            "verify with backend mmap and several threads that write the same blocks",
            "two copies into a mapping can mix within a sector, which would look like damage: set threads=1, backend=psync, or pattern=seq with layout=shared or interleaved";
        spec.backend == Backend::Null => "verify with backend null",
            "it writes nothing, so that there is nothing to read back: choose another backend, or leave verify out";
        spec.layout == FileLayout::Private => "verify with layout=private",
            "what is written is read back from one file: set another layout, or leave verify out";
        !spec.bs.is_multiple_of(SECTOR) => format!("verify with bs of {} bytes", spec.bs),
            "every 512 bytes have a checksum: choose a multiple of 512, or leave verify out";
        blocks > VERIFIED_BLOCKS_MAX => format!("verify of {blocks} blocks, more than {VERIFIED_BLOCKS_MAX}"),
            "8 bytes of memory are needed for each block: choose a larger bs or a smaller region, or leave verify out";
    }
    Ok(())
}

/// Refuses invalid rates, and settings that exclude a rate.
fn check_rate(spec: &TrialSpec) -> Result<()> {
    let Some(rate) = spec.rate else {
        return Ok(());
    };
    let per_second = rate.per_second(spec.mean_request());
    usage_errors! {
        !(f64::MIN_POSITIVE..=RATE_MAX as f64).contains(&per_second) => format!("rate is {rate}"),
            format!("choose a rate from 1 to {RATE_MAX} requests per second, or leave it out to issue the next request as soon as one completes; only a group may have the rate 0");
    }
    if let Some(time) = spec.limit.time
        && per_second * time.as_secs_f64() < 1.0
    {
        let time = exact_duration(time);
        return Err(
            Error::usage(format!("rate is {rate}: no request is due within {time}"))
                .hint("choose a higher rate, or a longer --time"),
        );
    }
    usage_errors! {
        !spec.latency => "a rate with latency=false", "a rate measures response times: set latency=true, or leave the rate out";
        spec.batch != Batch::One => format!("a rate with batch={}", spec.batch),
            "at a given rate each completion is taken as it comes: set batch=one, or leave batch or the rate out";
    }
    Ok(())
}
