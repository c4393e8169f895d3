//! What one trial shall do: every setting of the engine, typed, with the names users write.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::cpus::{Cpus, Placement};
use crate::error::{Error, Result};
use crate::named::named;
use crate::operation::Operation;
use crate::series::INTERVAL_NS;

mod check;
mod data;
mod durability;
mod flags;
mod pauses;
mod rate;
mod sharing;
mod sizes;
mod trims;
mod zones;

pub use check::{VERIFIED_BLOCKS_MAX, verify_table_bytes};
pub use durability::{Allocate, SyncCall, SyncPolicy};
pub use flags::{Advice, IoPriority, PRIORITY_LEVEL_MAX};
pub use pauses::Bursts;
pub use rate::{RATE_MAX, Rate};
pub use sharing::{Descriptors, FileLayout, Others, Shift, share};
pub use sizes::{SizeMix, SizeShare, Sizes};
pub use trims::TrimBy;
pub use zones::{Zone, Zones};

named! {
    /// How requests are issued; the names are fio's, but for `pool`.
    pub enum Backend: "backend" {
        /// `lseek` where the position is not already right, then `read` or `write`.
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
        /// `pread` and `pwrite` on as many threads of its own as requests are to be outstanding.
        Pool = "pool",
        /// Completes at once without I/O: what iolab itself costs.
        Null = "null",
    }
}

/// The order in which blocks of the region are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Ascending, one block after the other.
    Seq,
    /// Ascending with `skip` bytes left out after each block, or run of blocks; wraps to the next unvisited phase.
    Strided,
    /// Descending.
    Reverse,
    /// A random permutation: each block once per pass.
    Rand,
    /// Uniform, independent draws.
    RandReplace,
    /// Zipf-distributed popularity with the given exponent over scattered blocks.
    Zipf(f64),
    /// Independent draws that prefer parts of the region.
    Zoned(Zones),
}

named! {
    /// State of the page cache before the trial and how it is passed.
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
        /// Fresh mappings that were never touched. Reads only: written data has to come from somewhere.
        Untouched = "untouched",
        /// Every byte set to zero.
        Zeroed = "zeroed",
        /// One byte of each page touched.
        Touched = "touched",
        /// `MADV_POPULATE_WRITE`.
        Populated = "populated",
        /// `MADV_HUGEPAGE` and then touched: the buffers of a worker lie in huge pages, so that each is one piece of physical
        /// memory, or few, as far as the kernel has any.
        Huge = "huge",
        /// `MADV_NOHUGEPAGE` and then touched.
        NoHuge = "nohuge",
        /// Filled with incompressible data.
        Random = "random",
    }
}

named! {
    /// Where an ordered pattern (`seq`, `reverse`, `strided`) begins in the share of a worker.
    pub enum FirstOffset: "first_offset" {
        /// At its first block in every trial, as other tools do. What the drive has kept of the trial before serves the
        /// first blocks again.
        Zero = "zero",
        /// At a block drawn anew for every trial; behind the last block comes the first.
        Random = "random",
    }
}

named! {
    /// The physical memory that I/O buffers lie in. A request to a device is split where its buffer has too many pieces.
    pub enum BufferMemory: "buffer_memory" {
        /// In few pieces: the buffers of all workers lie beside each other in an arena of huge pages, as far as the kernel
        /// has any.
        Contiguous = "contiguous",
        /// Whatever pages the kernel gives: mostly the smallest that there are, in many pieces.
        Kernel = "kernel",
    }
}

named! {
    /// What writes put on the target.
    pub enum Content: "content" {
        /// Incompressible, and different in every 4 KiB.
        Unique = "unique",
        /// Incompressible, the same buffer again and again: can be deduplicated.
        Repeated = "repeated",
        /// Zeros: can be compressed and deduplicated.
        Zero = "zero",
    }
}

/// How many completions an asynchronous worker waits for before it submits again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Batch {
    /// At least one.
    One,
    /// This percentage of the depth, 1 to 99.
    Percent(u8),
    /// All that are outstanding.
    All,
}

impl Batch {
    /// Completions to wait for at this depth, at least 1 and at most the depth.
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
    /// How the intended starts of the open loop are spaced.
    pub enum Arrivals: "arrivals" {
        /// Evenly.
        Constant = "constant",
        /// Independently of each other: gaps are exponentially distributed.
        Poisson = "poisson",
    }
}

/// What ends a trial; the first bound that is reached counts. With none set, one pass over the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialLimit {
    /// Bytes over all threads; rounded up to whole requests.
    pub bytes: Option<u64>,
    /// Requests over all threads.
    pub requests: Option<u64>,
    /// Time from the start of each worker.
    pub time: Option<Duration>,
}

/// Everything that one trial is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSpec {
    /// How requests are issued.
    pub backend: Backend,
    /// In which order blocks are visited.
    pub pattern: Pattern,
    /// I/O size in bytes; with [`TrialSpec::bs_mix`] what requests begin at multiples of.
    pub bs: u64,
    /// Sizes that requests are drawn from; `None`: all have [`TrialSpec::bs`].
    pub bs_mix: Option<SizeMix>,
    /// Bytes left out by [`Pattern::Strided`] after each block, or each [`TrialSpec::skip_every`].
    pub skip: u64,
    /// Bytes that [`Pattern::Strided`] visits one after the other before it leaves some out; `None`: one block.
    pub skip_every: Option<u64>,
    /// Bytes that go to one target before the next one has its turn, where a trial is striped over several; `None`: one block.
    pub stripe: Option<u64>,
    /// First byte of the region.
    pub offset: u64,
    /// Length of the region in bytes.
    pub region: u64,
    /// Workers, 1 to 1024.
    pub threads: u32,
    /// Workers of other processes that share the region, the bounds and the rate with these.
    pub others: Others,
    /// Processes (ranks) that take part, of those that measure together; `None`: all.
    pub ranks: Option<u32>,
    /// Hosts whose processes take part; `None`: all.
    pub hosts: Option<u32>,
    /// Whose part of the region a process reads.
    pub shift: Shift,
    /// The CPUs that workers may run on; `None`: all that the process may use.
    pub cpus: Option<Cpus>,
    /// How workers are placed on them.
    pub placement: Placement,
    /// The NUMA node that the memory of the workers is taken from; `None`: as the kernel likes.
    pub memory_node: Option<u32>,
    /// Outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only.
    pub depth: u32,
    /// Completion strategy of the asynchronous backends.
    pub batch: Batch,
    /// Share of reads in percent; 100 reads only, 0 writes only.
    pub read_percent: u8,
    /// Share of the requests that do not read, in percent, that take data away instead of writing any.
    pub trim_percent: u8,
    /// How they do that.
    pub trim_by: TrimBy,
    /// Which bytes belong to which worker.
    pub layout: FileLayout,
    /// Whose the open file descriptions are.
    pub descriptors: Descriptors,
    /// Trials that only write start on a file that is created for each; see [`TrialSpec::starts_fresh`].
    pub fresh: bool,
    /// When written data is made durable.
    pub sync: SyncPolicy,
    /// Writes of a worker between two syncs of the policies `each` and `fdatasync`; 1: a sync follows each write.
    pub sync_every: u32,
    /// The space that writes go to; `None`: the file or device as it is, or with `fresh` a new file without space.
    pub allocate: Option<Allocate>,
    /// Page cache state.
    pub cache: CacheState,
    /// Where an ordered pattern begins.
    pub first_offset: FirstOffset,
    /// Buffer preparation.
    pub buffer_init: BufferInit,
    /// What the buffers lie in.
    pub buffer_memory: BufferMemory,
    /// What is written.
    pub content: Content,
    /// Share of each 4 KiB of written data that is zeros, in percent: what a compressor saves.
    pub compressible: u8,
    /// Share of the writes whose data was written before, in percent.
    pub dedup: u8,
    /// Whether written blocks bear their offset, generation and checksum, and are read back after the timed span.
    pub verify: bool,
    /// What ends the trial.
    pub limit: TrialLimit,
    /// Requests or bytes per second over all threads, made at intended starts whatever the storage does (open loop);
    /// `None`: as soon as one completes (closed loop).
    pub rate: Option<Rate>,
    /// How the intended starts of a rate are spaced.
    pub arrivals: Arrivals,
    /// How long a worker pauses after each [`TrialSpec::thinktime_every`] requests, once they have completed.
    pub thinktime: Option<Duration>,
    /// Requests of a worker from one pause to the next.
    pub thinktime_every: u32,
    /// Requests for one time, none for another.
    pub bursts: Option<Bursts>,
    /// Whether the service time of every request is recorded. Where the requests are as fast as the clock, taking
    /// the time would be most of what is measured.
    pub latency: bool,
    /// Whether the processor's own events are counted.
    pub hardware_counters: bool,
    /// Seed of offsets, of the read-write mix and of the data written.
    pub seed: u64,
    /// `io_uring`: register the file and the buffers.
    pub registered: bool,
    /// `io_uring`: a kernel thread polls the submission queue.
    pub sqpoll: bool,
    /// `io_uring`, `pvsync2`: poll for completions instead of taking interrupts.
    pub iopoll: bool,
    /// The file is opened with `O_NOATIME`: reads do not change its time of access.
    pub noatime: bool,
    /// Length of the intervals of the series, ns.
    pub series_ns: u64,
    /// Buffered requests leave nothing in the page cache (`RWF_DONTCACHE`).
    pub dontcache: bool,
    /// Writes are carried out as a whole or not at all (`RWF_ATOMIC`).
    pub atomic: bool,
    /// Requests are tried without waiting first (`RWF_NOWAIT`).
    pub nowait: bool,
    /// What the kernel is told of the order of reads; `None`: nothing.
    pub fadvise: Option<Advice>,
    /// I/O priority of the workers; `None`: that of the process.
    pub ioprio: Option<IoPriority>,
    /// Nice value of the workers, -20 (first) to 19; `None`: that of the process.
    pub nice: Option<i8>,
    /// How much later than the other groups of the trial the workers start.
    pub start_delay: Duration,
    /// The weight of its group: groups that have one issue requests in the proportion of their weights.
    pub flow: Option<u32>,
    /// Whether the whole trial is over when the first worker of this group is.
    pub ends_trial: bool,
}

impl Default for TrialSpec {
    fn default() -> Self {
        Self {
            backend: Backend::Psync,
            pattern: Pattern::Seq,
            bs: 4096,
            bs_mix: None,
            skip: 0,
            skip_every: None,
            stripe: None,
            offset: 0,
            region: 1 << 30,
            threads: 1,
            others: Others::default(),
            ranks: None,
            hosts: None,
            shift: Shift::None,
            cpus: None,
            placement: Placement::Float,
            memory_node: None,
            depth: 1,
            batch: Batch::One,
            read_percent: 100,
            trim_percent: 0,
            trim_by: TrimBy::Discard,
            layout: FileLayout::Shared,
            descriptors: Descriptors::Private,
            fresh: false,
            sync: SyncPolicy::None,
            sync_every: 1,
            allocate: None,
            cache: CacheState::Direct,
            first_offset: FirstOffset::Zero,
            buffer_init: BufferInit::Random,
            buffer_memory: BufferMemory::Kernel,
            content: Content::Unique,
            compressible: 0,
            dedup: 0,
            verify: false,
            limit: TrialLimit::default(),
            rate: None,
            arrivals: Arrivals::Constant,
            thinktime: None,
            thinktime_every: 1,
            bursts: None,
            latency: true,
            hardware_counters: false,
            seed: 1,
            registered: true,
            sqpoll: false,
            iopoll: false,
            noatime: false,
            series_ns: INTERVAL_NS,
            dontcache: false,
            atomic: false,
            nowait: false,
            fadvise: None,
            ioprio: None,
            nice: None,
            start_delay: Duration::ZERO,
            flow: None,
            ends_trial: false,
        }
    }
}

/// Most workers of a trial.
pub const THREADS_MAX: u32 = 1024;
/// Greatest queue depth.
pub const DEPTH_MAX: u32 = 4096;
/// Nice values of threads, from the first to get a CPU to the last.
pub const NICE: RangeInclusive<i8> = -20..=19;
/// Most blocks a region may have: the random permutation is tested up to here.
pub const BLOCKS_MAX: u64 = 1 << 48;
/// Largest single request: what one `read` or `write` transfers at most, `MAX_RW_COUNT` of Linux.
pub const BS_MAX: u64 = 0x7fff_f000;

/// Size of the smallest huge page of any kernel, bytes: that of x86-64, and of ARM64 with pages of 4 KiB.
pub const HUGE_PAGE_MIN_BYTES: u64 = 2 << 20;

impl TrialSpec {
    /// Whether the preparation of the buffers has a meaning at this I/O size: `nohuge` has none below
    /// [`HUGE_PAGE_MIN_BYTES`], where the kernel uses small pages anyway.
    pub fn buffer_init_applies(&self) -> bool {
        self.buffer_init != BufferInit::NoHuge || self.bs >= HUGE_PAGE_MIN_BYTES
    }

    /// Whether each worker has a share of the region, and does not go over all of it.
    pub fn parts_region(&self) -> bool {
        match self.layout {
            FileLayout::Private => true,
            FileLayout::Overlapping => false,
            FileLayout::Shared | FileLayout::Interleaved => !self.pattern.shares_region(),
        }
    }

    /// Requests that can be outstanding at a time, over all threads.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.depth)
    }

    /// Whether any request of this trial writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Whether any request of this trial reads.
    pub fn reads(&self) -> bool {
        self.read_percent > 0
    }

    /// Whether it makes requests of this operation.
    pub fn requests(&self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.reads(),
            Operation::Write => self.writes_data(),
            Operation::Trim => self.trims(),
            Operation::Sync => false,
        }
    }

    /// Whether anything but the pass over its region ends it.
    pub fn has_bound(&self) -> bool {
        self.limit != TrialLimit::default() || self.fills_new_file()
    }

    /// Requests over all threads that end a trial; `None` where only time does. With [`TrialSpec::bs_mix`] the number that
    /// is expected of the bytes.
    pub fn requests_bound(&self) -> Option<u64> {
        let bytes = match &self.bs_mix {
            None => self.limit.bytes.map(|bytes| bytes.div_ceil(self.bs)),
            Some(_) => self
                .bytes_bound()
                .map(|bytes| (bytes as f64 / self.mean_request()).ceil() as u64),
        };
        let pass = self.region / self.bs;
        let counted = [
            bytes,
            self.limit.requests,
            self.fills_new_file().then_some(pass),
        ];
        match counted.into_iter().flatten().min() {
            None if self.limit.time.is_none() => Some(pass),
            bound => bound,
        }
    }
}

impl Backend {
    /// Whether more than one request can be outstanding per worker.
    pub fn is_asynchronous(self) -> bool {
        match self {
            Backend::Libaio | Backend::IoUring | Backend::Pool | Backend::Null => true,
            Backend::Sync | Backend::Psync | Backend::Pvsync2 | Backend::Mmap => false,
        }
    }

    /// Whether flags can be set on a single write, such as `RWF_DSYNC`.
    pub fn takes_write_flags(self) -> bool {
        match self {
            Backend::Pvsync2 | Backend::Libaio | Backend::IoUring | Backend::Null => true,
            Backend::Sync | Backend::Psync | Backend::Mmap | Backend::Pool => false,
        }
    }
}

impl Pattern {
    /// Whether every worker goes over a contiguous share in the order of its offsets, forwards or backwards.
    pub fn is_ordered(self) -> bool {
        matches!(self, Pattern::Seq | Pattern::Reverse | Pattern::Strided)
    }

    /// Whether every thread draws from the whole region (else each visits a share of its own).
    pub fn shares_region(self) -> bool {
        matches!(
            self,
            Pattern::RandReplace | Pattern::Zipf(_) | Pattern::Zoned(_)
        )
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Seq => f.pad("seq"),
            Pattern::Strided => f.pad("strided"),
            Pattern::Reverse => f.pad("reverse"),
            Pattern::Rand => f.pad("rand"),
            Pattern::RandReplace => f.pad("rand-replace"),
            Pattern::Zipf(theta) => f.pad(&format!("zipf:{theta}")),
            Pattern::Zoned(zones) => f.pad(&format!("zones:{zones}")),
        }
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "seq" => Pattern::Seq,
            "strided" => Pattern::Strided,
            "reverse" => Pattern::Reverse,
            "rand" => Pattern::Rand,
            "rand-replace" => Pattern::RandReplace,
            _ => match text.strip_prefix("zipf:").map(str::parse::<f64>) {
                Some(Ok(theta)) if theta > 0.0 && theta <= 100.0 => Pattern::Zipf(theta),
                Some(_) => {
                    return Err(Error::usage(format!("pattern '{text}' has no usable exponent"))
                        .hint("write zipf:THETA with a number above 0 and at most 100, for example zipf:1.1"));
                }
                None => match text.strip_prefix("zones:") {
                    Some(zones) => Pattern::Zoned(zones.parse()?),
                    None => {
                        return Err(Error::usage(format!("pattern '{text}' is unknown")).hint(
                            "it is one of: seq, strided, reverse, rand, rand-replace, zipf:THETA, zones:50/5:30/15:20/80",
                        ));
                    }
                },
            },
        })
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
                _ => Err(Error::usage(format!("batch '{text}' is unknown")).hint(
                    "it is one of: one, all, or a share of the depth such as 50% (1% to 99%)",
                )),
            },
        }
    }
}

impl TrialSpec {
    /// How long a trial takes at most, as far as its bounds tell: its time, or its requests at its rate.
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
