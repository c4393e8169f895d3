//! The settings of one trial, typed, with the names that users write, and their check except for what depends on the target.

mod files;
mod pattern;
mod sizes;
mod writes;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::names::named;
use crate::operation::Operation;
use crate::system_settings::{Cpus, Placement};
use crate::units::exact_duration;
use crate::usage_errors;
pub use files::{Descriptors, FILES_MAX, FileLayout, FileSlots, Others, Shift, share};
pub use pattern::{Pattern, WorkloadCode, Zone, Zones};
pub use sizes::{RATE_MAX, Rate, SizeMix, SizeShare, Sizes};
pub use writes::{Advice, Allocate, SyncCall, SyncPolicy};

named! {
    /// How requests are issued; the names are fio's, except `pool`.
    pub enum Backend: "backend" {
        /// `lseek` if the position differs, then `read` or `write`.
        Sync = "sync",
        /// `pread` and `pwrite`.
        Psync = "psync",
        /// `preadv2` and `pwritev2`.
        Pvsync2 = "pvsync2",
        /// Copies to and from a shared mapping.
        Mmap = "mmap",
        /// Linux native asynchronous I/O (`io_submit`).
        Libaio = "libaio",
        /// `io_uring`.
        IoUring = "io_uring",
        /// `pread` and `pwrite` on additional threads, one for each outstanding request.
        Pool = "pool",
        /// Completes at once without I/O: measures the cost of iolab itself.
        Null = "null",
    }
}

named! {
    /// Use of the page cache, and its state before the trial.
    pub enum CacheState: "cache state" {
        /// `O_DIRECT`: the page cache is bypassed.
        Direct = "direct",
        /// Buffered; the region is dropped from the page cache before the trial.
        Cold = "cold",
        /// Buffered; the region is read once before the trial.
        Hot = "hot",
    }
}

named! {
    /// How I/O buffers are prepared before the timed span.
    pub enum BufferInit: "buffer_init" {
        /// Newly mapped and never touched. Reads only, since writes need data.
        Untouched = "untouched",
        /// Every byte set to zero.
        Zeroed = "zeroed",
        /// One byte of each page touched.
        Touched = "touched",
        /// `MADV_POPULATE_WRITE`.
        Populated = "populated",
        /// `MADV_HUGEPAGE`, then touched: the buffers of a worker are in huge pages, as far as the kernel has any, so that each
        /// is physically contiguous or nearly so.
        Huge = "huge",
        /// `MADV_NOHUGEPAGE`, then touched.
        NoHuge = "nohuge",
        /// Filled with incompressible data.
        Random = "random",
    }
}

named! {
    /// First block of an ordered pattern (`seq`, `reverse`, `strided`) in a worker's share.
    pub enum FirstOffset: "first_offset" {
        /// At the first block in every trial, as with other tools. The drive may still cache these blocks from the previous
        /// trial.
        Zero = "zero",
        /// At a block drawn for every trial; the first block follows the last one.
        Random = "random",
    }
}

named! {
    /// The physical memory of I/O buffers. The kernel splits a request to a device whose buffer has too many pieces.
    pub enum BufferMemory: "buffer_memory" {
        /// In few pieces: the buffers of all workers are in one arena of huge pages, as far as the kernel has any.
        Contiguous = "contiguous",
        /// Any pages the kernel gives: mostly 4 KiB each, in many pieces.
        Kernel = "kernel",
    }
}

/// How many completions an asynchronous worker waits for before it submits again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Batch {
    /// At least one.
    One,
    /// This percentage of the depth, 1 to 99.
    Percent(u8),
    /// All outstanding ones.
    All,
}

impl Batch {
    /// Number of completions to wait for at this depth, from 1 to the depth.
    pub fn wait_for(self, depth: u32) -> u32 {
        match self {
            Batch::One => 1,
            Batch::Percent(p) => (u64::from(depth) * u64::from(p)).div_ceil(100) as u32,
            Batch::All => depth,
        }
        .clamp(1, depth.max(1))
    }
}

named! {
    /// The distribution of intended starts in the open loop.
    pub enum Arrivals: "arrivals" {
        /// At constant intervals.
        Constant = "constant",
        /// Independent: gaps are exponentially distributed.
        Poisson = "poisson",
    }
}

/// The limits of a trial; the first one reached ends it. Without any, one pass over the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialLimit {
    /// Bytes over all threads; rounded up to whole requests.
    pub bytes: Option<u64>,
    /// Time from the start of each worker.
    pub time: Option<Duration>,
}

/// The settings of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSpec {
    /// How requests are issued.
    pub backend: Backend,
    /// The order in which blocks are visited.
    pub pattern: Pattern,
    /// I/O size in bytes; with [`TrialSpec::bs_mix`], the alignment of requests.
    pub bs: u64,
    /// Sizes to draw from; `None`: all requests have [`TrialSpec::bs`].
    pub bs_mix: Option<SizeMix>,
    /// Bytes left out by [`Pattern::Strided`] after each block.
    pub skip: u64,
    /// First byte of the region.
    pub offset: u64,
    /// Length of the region in bytes.
    pub region: u64,
    /// Workers, 1 to 1024.
    pub threads: u32,
    /// Workers of other processes with which these share the region, the limits and the rate.
    pub others: Others,
    /// Number of processes (ranks) that take part; `None`: all.
    pub ranks: Option<u32>,
    /// Number of hosts whose processes take part; `None`: all.
    pub hosts: Option<u32>,
    /// Part of the region that a process reads.
    pub shift: Shift,
    /// The CPUs that workers may run on; `None`: all that the process may use.
    pub cpus: Option<Cpus>,
    /// Placement of the workers on the CPUs.
    pub placement: Placement,
    /// Outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only.
    pub depth: u32,
    /// Completion strategy of the asynchronous backends.
    pub batch: Batch,
    /// Share of reads in percent; 100 reads only, 0 writes only.
    pub read_percent: u8,
    /// Share of the requests other than reads, in percent, that trim instead of write.
    pub trim_percent: u8,
    /// Division of the bytes among workers.
    pub layout: FileLayout,
    /// Number of files of each worker, with [`FileLayout::Private`], up to [`FILES_MAX`]; `None`: one.
    pub files: Option<u32>,
    /// Sharing of open file descriptions among workers.
    pub descriptors: Descriptors,
    /// When written data is made durable.
    pub sync: SyncPolicy,
    /// Number of writes per sync of a worker, for policies `each` and `fdatasync`.
    pub sync_every: u32,
    /// The allocation of the file that is written; `None`: as it is.
    pub allocate: Option<Allocate>,
    /// Page cache state.
    pub cache: CacheState,
    /// First block of an ordered pattern.
    pub first_offset: FirstOffset,
    /// Buffer preparation.
    pub buffer_init: BufferInit,
    /// Physical memory of the buffers.
    pub buffer_memory: BufferMemory,
    /// Share of each 4 KiB of written data that is zeros, in percent; a compressor saves that much.
    pub compressible: u8,
    /// Whether written blocks carry offset, generation and checksum, and are read back after the timed span.
    pub verify: bool,
    /// The limits of the trial.
    pub limit: TrialLimit,
    /// Requests or bytes per second over all threads, at intended starts that do not wait for completions (open loop); `None`:
    /// closed loop.
    pub rate: Option<Rate>,
    /// Distribution of the intended starts.
    pub arrivals: Arrivals,
    /// Time by which requests of a rate may start late so that one sleep of the worker serves several; zero: the worker spins before
    /// each.
    pub rate_slack: Duration,
    /// Pause of a worker after each completed request.
    pub thinktime: Option<Duration>,
    /// Whether to record the service time of every request. For requests about as fast as the clock, reading it would dominate.
    pub latency: bool,
    /// Whether to keep latencies over the time of the trial.
    pub latency_over_time: bool,
    /// Whether to count events of the processor.
    pub hardware_counters: bool,
    /// Seed of offsets, of the mix of reads and writes, and of data.
    pub seed: u64,
    /// `io_uring`: a kernel thread polls the submission queue.
    pub sqpoll: bool,
    /// `io_uring`, `pvsync2`: poll for completions instead of waiting for interrupts.
    pub iopoll: bool,
    /// Advice to the kernel about the order of reads; `None`: none.
    pub fadvise: Option<Advice>,
    /// Nice value of the workers, -20 (first) to 19; `None`: as the process.
    pub nice: Option<i8>,
    /// Priority of the workers as real-time threads (`SCHED_FIFO`), 1 to 99 (first); `None`: scheduled as the process is.
    pub realtime: Option<u8>,
    /// Whether each request's time is split by layer, from the kernel's trace.
    pub trace: bool,
}

impl Default for TrialSpec {
    fn default() -> Self {
        Self {
            backend: Backend::Psync,
            pattern: Pattern::Seq,
            bs: 4096,
            bs_mix: None,
            skip: 0,
            offset: 0,
            region: 1 << 30,
            threads: 1,
            others: Others::default(),
            ranks: None,
            hosts: None,
            shift: Shift::None,
            cpus: None,
            placement: Placement::Float,
            depth: 1,
            batch: Batch::One,
            read_percent: 100,
            trim_percent: 0,
            layout: FileLayout::Shared,
            files: None,
            descriptors: Descriptors::Private,
            sync: SyncPolicy::None,
            sync_every: 1,
            allocate: None,
            cache: CacheState::Direct,
            first_offset: FirstOffset::Zero,
            buffer_init: BufferInit::Random,
            buffer_memory: BufferMemory::Kernel,
            compressible: 0,
            verify: false,
            limit: TrialLimit::default(),
            rate: None,
            arrivals: Arrivals::Constant,
            rate_slack: sizes::RATE_SLACK,
            thinktime: None,
            latency: true,
            latency_over_time: false,
            hardware_counters: false,
            seed: 1,
            sqpoll: false,
            iopoll: false,
            fadvise: None,
            nice: None,
            realtime: None,
            trace: false,
        }
    }
}

/// The limit that decides the number of requests of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedBound {
    /// [`TrialLimit::bytes`].
    Bytes,
    /// One pass over the region.
    Region,
}

/// Most workers of a trial.
pub const THREADS_MAX: u32 = 1024;
/// Greatest queue depth.
pub const DEPTH_MAX: u32 = 4096;
/// Nice values of threads, from the highest to the lowest priority.
pub const NICE: RangeInclusive<i8> = -20..=19;
/// Priorities of real-time threads.
pub const REALTIME: RangeInclusive<u8> = 1..=99;
/// Most blocks a region may have: the random permutation is tested up to here.
pub const BLOCKS_MAX: u64 = 1 << 48;
/// Largest single request, bytes: the most that `read` or `write` transfers, `MAX_RW_COUNT` of Linux.
pub const BS_MAX: u64 = 0x7fff_f000;

/// Size of the smallest huge page of any kernel, bytes: x86-64, and ARM64 with pages of 4 KiB.
pub const HUGE_PAGE_MIN_BYTES: u64 = 2 << 20;

impl TrialSpec {
    /// Whether the preparation of the buffers has an effect at this I/O size: below a huge page, `nohuge` has none, since
    /// the kernel uses small pages anyway.
    pub fn buffer_init_applies(&self) -> bool {
        self.buffer_init != BufferInit::NoHuge || self.bs >= HUGE_PAGE_MIN_BYTES
    }

    /// Whether each worker has a share of the region instead of all of it.
    pub fn parts_region(&self) -> bool {
        match self.layout {
            FileLayout::Private => true,
            FileLayout::Overlapping => false,
            FileLayout::Shared | FileLayout::Interleaved => !self.pattern.shares_region(),
        }
    }

    /// Most requests in flight, over all threads of this process.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.depth)
    }

    /// Most requests in flight, over all threads of all processes.
    pub fn in_flight_of_all(&self) -> u64 {
        u64::from(self.workers()) * u64::from(self.depth)
    }

    /// Whether any request of this trial writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Whether any request of this trial reads.
    pub fn reads(&self) -> bool {
        self.read_percent > 0
    }

    /// Whether it has requests of this operation.
    pub fn requests(&self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.reads(),
            Operation::Write => self.writes_data(),
            Operation::Trim => self.trims(),
            Operation::Sync => false,
        }
    }

    /// Whether it has a limit besides the pass over its region.
    pub fn has_bound(&self) -> bool {
        self.limit != TrialLimit::default() || self.fills_new_file()
    }

    /// Bytes of every request; `None` where a mix gives their sizes.
    pub fn request_size(&self) -> Option<u64> {
        self.bs_mix.is_none().then_some(self.bs)
    }

    /// Number of requests over all threads that ends a trial; `None` if only time does. With [`TrialSpec::bs_mix`], the
    /// expected number for the bytes.
    pub fn requests_bound(&self) -> Option<u64> {
        self.counted_bound().map(|(_, requests)| requests)
    }

    /// The limit that sets [`TrialSpec::requests_bound`], and that number.
    pub fn counted_bound(&self) -> Option<(CountedBound, u64)> {
        let bytes = match &self.bs_mix {
            None => self.limit.bytes.map(|bytes| bytes.div_ceil(self.bs)),
            Some(_) => self
                .bytes_bound()
                .map(|bytes| (bytes as f64 / self.mean_request()).ceil() as u64),
        };
        let pass = self.region / self.bs;
        let counted = [
            (CountedBound::Bytes, bytes),
            (CountedBound::Region, self.fills_new_file().then_some(pass)),
        ];
        let counted = counted
            .into_iter()
            .filter_map(|(by, count)| Some((by, count?)));
        match counted.min_by_key(|(_, count)| *count) {
            None if self.limit.time.is_none() => Some((CountedBound::Region, pass)),
            bound => bound,
        }
    }

    /// The longest time of a trial according to its limits: its time limit, or its requests at its rate.
    pub fn time_foreseen(&self) -> Option<Duration> {
        let paced = || {
            let seconds = self.requests_bound()? as f64
                / self.rate?.per_second(self.mean_request()).max(1e-9);
            Some(Duration::from_secs(seconds.ceil() as u64))
        };
        let bounds = [self.limit.time, paced()];
        bounds.into_iter().flatten().min()
    }
}

impl Backend {
    /// Whether a worker can have more than one request in flight.
    pub fn is_asynchronous(self) -> bool {
        match self {
            Backend::Libaio | Backend::IoUring | Backend::Pool | Backend::Null => true,
            Backend::Sync | Backend::Psync | Backend::Pvsync2 | Backend::Mmap => false,
        }
    }

    /// Whether single writes can have flags such as `RWF_DSYNC`.
    pub fn takes_write_flags(self) -> bool {
        match self {
            Backend::Pvsync2 | Backend::Libaio | Backend::IoUring | Backend::Null => true,
            Backend::Sync | Backend::Psync | Backend::Mmap | Backend::Pool => false,
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Batch::One => f.pad("one"),
            Batch::Percent(p) => f.pad(&format!("{p}%")),
            Batch::All => f.pad("all"),
        }
    }
}

impl FromStr for Batch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "one" => Ok(Batch::One),
            "all" => Ok(Batch::All),
            _ => match text.strip_suffix('%').map(str::parse::<u8>) {
                Some(Ok(p)) if (1..=99).contains(&p) => Ok(Batch::Percent(p)),
                _ => Err(Error::usage(format!("'{text}' is unknown")).hint(
                    "it is one of: one, all, a share of the depth such as 50% (1% to 99%), or auto",
                )),
            },
        }
    }
}

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
