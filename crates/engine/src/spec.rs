//! What one trial shall do: every setting of the engine, typed, with the names users write.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::schedule::{self, Arrivals};
use crate::verify;

mod sharing;

pub use sharing::{Descriptors, Layout};

/// How requests are issued; the names are fio's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// `lseek` where the position is not already right, then `read` or `write`.
    Sync,
    /// `pread` and `pwrite`.
    Psync,
    /// `preadv2` and `pwritev2`.
    Pvsync2,
    /// Copies to and from a shared mapping.
    Mmap,
    /// Linux native asynchronous I/O (`io_submit`).
    Libaio,
    /// `io_uring`.
    IoUring,
    /// Completes at once without I/O: what iolab itself costs.
    Null,
}

/// The order in which blocks of the region are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Ascending, one block after the other.
    Seq,
    /// Ascending with `skip` bytes left out after each block; wraps to the next unvisited phase.
    Strided,
    /// Descending.
    Reverse,
    /// A random permutation: each block once per pass.
    Rand,
    /// Uniform, independent draws.
    RandReplace,
    /// Zipf-distributed popularity with the given exponent over scattered blocks.
    Zipf(f64),
}

/// When written data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyncPolicy {
    /// Never.
    None,
    /// `fsync` once at the end, inside the timed span.
    End,
    /// `fsync` after every write, part of that write's latency.
    Each,
    /// The file is opened with `O_SYNC`.
    Osync,
    /// The file is opened with `O_DSYNC`.
    Odsync,
}

/// State of the page cache before the trial and how it is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheState {
    /// `O_DIRECT`: the page cache is bypassed.
    Direct,
    /// Buffered; the region is dropped from the page cache before the trial.
    Cold,
    /// Buffered; the region is read once before the trial.
    Hot,
}

/// How I/O buffers are prepared before the timed span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BufferInit {
    /// Fresh mappings that nobody has touched. Reads only: written data has to come from somewhere.
    Untouched,
    /// Every byte set to zero.
    Zeroed,
    /// One byte of each page touched.
    Touched,
    /// `MADV_POPULATE_WRITE`.
    Populated,
    /// `MADV_HUGEPAGE` and then touched: the buffers of a worker lie in huge pages, so that each is one piece of physical
    /// memory, or few, as far as the kernel has any.
    Huge,
    /// `MADV_NOHUGEPAGE` and then touched.
    NoHuge,
    /// Filled with incompressible data.
    Random,
}

/// What writes put on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// Incompressible, and different in every 4 KiB.
    Unique,
    /// Incompressible, the same buffer again and again: can be deduplicated.
    Repeated,
    /// Zeros: can be compressed and deduplicated.
    Zero,
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

/// What ends a trial; the first bound that is reached counts. With none set, one pass over the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
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
    /// I/O size in bytes.
    pub bs: u64,
    /// Bytes left out after each block by [`Pattern::Strided`].
    pub skip: u64,
    /// First byte of the region.
    pub offset: u64,
    /// Length of the region in bytes.
    pub region: u64,
    /// Workers, 1 to 1024.
    pub threads: u32,
    /// Outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only.
    pub depth: u32,
    /// Completion strategy of the asynchronous backends.
    pub batch: Batch,
    /// Share of reads in percent; 100 reads only, 0 writes only.
    pub read_percent: u8,
    /// Which bytes belong to which worker.
    pub layout: Layout,
    /// Whose the open file descriptions are.
    pub descriptors: Descriptors,
    /// Trials that only write start on a file that is created for each; see [`TrialSpec::starts_fresh`].
    pub fresh: bool,
    /// When written data is made durable.
    pub sync: SyncPolicy,
    /// Page cache state.
    pub cache: CacheState,
    /// Buffer preparation.
    pub buffer_init: BufferInit,
    /// What is written.
    pub content: Content,
    /// Whether written blocks bear their offset, generation and checksum, and are read back after the timed span.
    pub verify: bool,
    /// What ends the trial.
    pub limit: Limit,
    /// Requests per second over all threads, 1 to [`RATE_MAX`](crate::schedule::RATE_MAX), made at intended starts
    /// whatever the storage does (open loop); `None`: as soon as one completes (closed loop).
    pub rate: Option<u64>,
    /// How the intended starts of a rate are spaced.
    pub arrivals: Arrivals,
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
}

impl Default for TrialSpec {
    fn default() -> Self {
        Self {
            backend: Backend::Psync,
            pattern: Pattern::Seq,
            bs: 4096,
            skip: 0,
            offset: 0,
            region: 1 << 30,
            threads: 1,
            depth: 1,
            batch: Batch::One,
            read_percent: 100,
            layout: Layout::Shared,
            descriptors: Descriptors::Private,
            fresh: false,
            sync: SyncPolicy::None,
            cache: CacheState::Direct,
            buffer_init: BufferInit::Random,
            content: Content::Unique,
            verify: false,
            limit: Limit::default(),
            rate: None,
            arrivals: Arrivals::Constant,
            latency: true,
            hardware_counters: false,
            seed: 1,
            registered: true,
            sqpoll: false,
            iopoll: false,
            noatime: false,
        }
    }
}

/// Most workers of a trial.
pub const THREADS_MAX: u32 = 1024;
/// Greatest queue depth.
pub const DEPTH_MAX: u32 = 4096;
/// Most blocks a region may have: the random permutation is tested up to here.
pub const BLOCKS_MAX: u64 = 1 << 48;
/// Largest single request: what one `read` or `write` transfers at most, `MAX_RW_COUNT` of Linux.
pub const BS_MAX: u64 = 0x7fff_f000;

/// Size of a huge page, bytes: that of x86-64, and of ARM64 with pages of 4 KiB.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;

impl TrialSpec {
    /// Whether the preparation of the buffers has a meaning at this I/O size: `nohuge` has none below
    /// [`HUGE_PAGE_BYTES`], where the kernel uses small pages anyway.
    pub fn buffer_init_applies(&self) -> bool {
        self.buffer_init != BufferInit::NoHuge || self.bs >= HUGE_PAGE_BYTES
    }

    /// Whether any request of this trial writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Whether any request of this trial reads.
    pub fn reads(&self) -> bool {
        self.read_percent > 0
    }

    /// Requests over all threads that end a trial; `None` where only time does.
    pub fn requests_bound(&self) -> Option<u64> {
        let bytes = self.limit.bytes.map(|bytes| bytes.div_ceil(self.bs));
        let counted = [bytes, self.limit.requests];
        match counted.into_iter().flatten().min() {
            None if self.limit.time.is_none() => Some(self.region / self.bs),
            bound => bound,
        }
    }

    /// Checks everything that can be checked without a target.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it may be.
    pub fn check(&self) -> Result<()> {
        let fail = |message: String, hint: &str| Err(Error::usage(message).hint(hint));
        if self.bs == 0 || self.bs > BS_MAX {
            return fail(
                format!("bs is {} bytes", self.bs),
                "choose an I/O size from 1 byte to 2 GiB minus 4 KiB, the most one system call transfers",
            );
        }
        if self.region < self.bs {
            return fail(
                format!(
                    "the region of {} bytes is smaller than one request of {} bytes",
                    self.region, self.bs
                ),
                "enlarge it with --size or choose a smaller bs",
            );
        }
        if self.region / self.bs > BLOCKS_MAX {
            return fail(
                format!("{} blocks are more than 2^48", self.region / self.bs),
                "choose a larger bs or a smaller region",
            );
        }
        if self
            .offset
            .checked_add(self.region)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            return fail(
                "offset plus region is beyond what a file can have".to_owned(),
                "choose a smaller offset or region",
            );
        }
        if self.threads == 0 || self.threads > THREADS_MAX {
            return fail(
                format!("threads is {}", self.threads),
                "choose 1 to 1024 threads",
            );
        }
        if self.depth == 0 || self.depth > DEPTH_MAX {
            return fail(
                format!("depth is {}", self.depth),
                "choose a depth from 1 to 4096",
            );
        }
        if self.depth > 1 && !self.backend.is_asynchronous() {
            return fail(
                format!("depth {} with backend {}", self.depth, self.backend),
                "only io_uring, libaio and null keep more than one request outstanding; raise threads instead, or set backend=io_uring",
            );
        }
        let shares = !self.pattern.shares_region() || self.layout == Layout::Private;
        if self.region / self.bs < u64::from(self.threads) && shares {
            return fail(
                format!(
                    "{} threads share {} blocks of {} bytes",
                    self.threads,
                    self.region / self.bs,
                    self.bs
                ),
                "each thread needs at least one block: enlarge the region, or use fewer threads or a smaller bs",
            );
        }
        if self.read_percent > 100 {
            return fail(
                format!("read_percent is {}", self.read_percent),
                "choose 0 to 100",
            );
        }
        if self.writes() && self.buffer_init == BufferInit::Untouched {
            return fail(
                "buffer_init=untouched with writes".to_owned(),
                "an untouched buffer has nothing to write; set another buffer_init",
            );
        }
        if self.backend == Backend::Mmap && self.cache == CacheState::Direct {
            return fail(
                "backend mmap with cache=direct".to_owned(),
                "a mapping lives in the page cache; set cache=cold or cache=hot",
            );
        }
        if self.iopoll && self.cache != CacheState::Direct && self.backend != Backend::Null {
            return fail(
                "iopoll with buffered I/O".to_owned(),
                "polled completions need cache=direct",
            );
        }
        if self.backend == Backend::Mmap
            && matches!(self.sync, SyncPolicy::Osync | SyncPolicy::Odsync)
        {
            return fail(
                format!("backend mmap with sync={}", self.sync),
                "the flag has no effect on a mapping; set sync=each or sync=end",
            );
        }
        if self.iopoll && self.sync == SyncPolicy::Each {
            return fail(
                "iopoll with sync=each".to_owned(),
                "a polled ring cannot fsync; set sync=odsync",
            );
        }
        if self.limit.bytes == Some(0)
            || self.limit.requests == Some(0)
            || self.limit.time == Some(Duration::ZERO)
        {
            return fail(
                "a trial bounded to nothing".to_owned(),
                "give bytes, requests or time a value above zero",
            );
        }
        verify::check(self)?;
        self.check_sharing()?;
        schedule::check(self)
    }
}

impl Backend {
    /// Whether more than one request can be outstanding per worker.
    pub fn is_asynchronous(self) -> bool {
        matches!(self, Backend::Libaio | Backend::IoUring | Backend::Null)
    }
}

impl SyncPolicy {
    /// Whether each write is durable when it is completed.
    pub fn is_per_write(self) -> bool {
        matches!(
            self,
            SyncPolicy::Each | SyncPolicy::Osync | SyncPolicy::Odsync
        )
    }
}

impl Pattern {
    /// Whether every thread draws from the whole region (else each visits a share of its own).
    pub fn shares_region(self) -> bool {
        matches!(self, Pattern::RandReplace | Pattern::Zipf(_))
    }
}

/// Names of an enum's values: one list serves parsing, printing and messages.
macro_rules! named {
    ($type:ty, $what:literal, { $($name:literal => $value:path),+ $(,)? }) => {
        impl $type {
            /// Every name that [`FromStr`] takes.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Without a wildcard: a value that has no name here does not compile.
                f.pad(match self { $($value => $name,)+ })
            }
        }
        impl FromStr for $type {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($name => Ok($value),)+
                    _ => Err(Error::usage(format!(concat!($what, " '{}' is unknown"), text))
                        .hint(format!("it is one of: {}", Self::NAMES.join(", ")))),
                }
            }
        }
    };
}

pub(crate) use named;

named!(Backend, "backend", {
    "sync" => Backend::Sync, "psync" => Backend::Psync, "pvsync2" => Backend::Pvsync2,
    "mmap" => Backend::Mmap, "libaio" => Backend::Libaio, "io_uring" => Backend::IoUring,
    "null" => Backend::Null,
});
named!(SyncPolicy, "sync policy", {
    "none" => SyncPolicy::None, "end" => SyncPolicy::End, "each" => SyncPolicy::Each,
    "osync" => SyncPolicy::Osync, "odsync" => SyncPolicy::Odsync,
});
named!(CacheState, "cache state", {
    "direct" => CacheState::Direct, "cold" => CacheState::Cold, "hot" => CacheState::Hot,
});
named!(BufferInit, "buffer_init", {
    "untouched" => BufferInit::Untouched, "zeroed" => BufferInit::Zeroed,
    "touched" => BufferInit::Touched, "populated" => BufferInit::Populated,
    "huge" => BufferInit::Huge, "nohuge" => BufferInit::NoHuge, "random" => BufferInit::Random,
});
named!(Content, "content", {
    "unique" => Content::Unique, "repeated" => Content::Repeated, "zero" => Content::Zero,
});

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Seq => f.pad("seq"),
            Pattern::Strided => f.pad("strided"),
            Pattern::Reverse => f.pad("reverse"),
            Pattern::Rand => f.pad("rand"),
            Pattern::RandReplace => f.pad("rand-replace"),
            Pattern::Zipf(theta) => f.pad(&format!("zipf:{theta}")),
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
                None => {
                    return Err(Error::usage(format!("pattern '{text}' is unknown")).hint(
                        "it is one of: seq, strided, reverse, rand, rand-replace, zipf:THETA",
                    ));
                }
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
