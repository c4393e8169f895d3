//! The one table of settings that an experiment may set or sweep: it serves TOML, `--set`,
//! messages and help.

mod cell;
mod value;
mod values;

use crate::Result;

pub use self::cell::CellSpec;
pub use self::value::Value;
use self::values::{
    parse_count, put, put_batch, put_bound, put_count, put_duration, put_flag, put_memory_node,
    put_or_none, put_percent, put_size, put_workload,
};
use crate::units::{parse_duration, parse_size};

/// Version of the run file's schema for columns that later releases brought within the present one: a file may lack them.
pub const LATER: i64 = i64::MAX;

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes: `4096`, `4k`, `4KiB`.
    Size,
    /// A whole number.
    Count,
    /// A time: `0.5`, `250ms`.
    Time,
    /// Requests or bytes per second: `5000`, `50MB/s`.
    Rate,
    /// `true` or `false`.
    Flag,
    /// A name out of a list.
    Word,
    /// A text that may hold commas.
    List,
}

impl ValueKind {
    /// Whether its values are stored as numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, ValueKind::Word | ValueKind::List)
    }

    /// What stands between several values on the command line.
    pub fn separator(self) -> char {
        match self {
            ValueKind::List => ';',
            _ => ',',
        }
    }

    /// Whether its values are times.
    pub fn is_time(self) -> bool {
        self == ValueKind::Time
    }

    /// What it takes, for messages.
    pub fn wants(self) -> &'static str {
        match self {
            ValueKind::Size => "a size such as \"4KiB\" or 4096",
            ValueKind::Count => "a whole number",
            ValueKind::Time => "a time such as \"250ms\" or 0.5",
            ValueKind::Rate => "requests per second, or bytes per second such as \"50MB/s\"",
            ValueKind::Flag => "true or false",
            ValueKind::Word => "a name in quotes",
            ValueKind::List => "a text in quotes",
        }
    }
}

/// What a setting is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What a request is.
    Requests,
    /// Where requests go.
    Place,
    /// How many requests are made, and how.
    Load,
    /// When writes are made durable.
    Durability,
    /// The page cache.
    Cache,
    /// What is written.
    Data,
    /// Processors and memory.
    Processors,
    /// What ends a trial.
    Bounds,
    /// What is recorded.
    Records,
    /// Programs that are measured instead.
    Programs,
}

impl Topic {
    /// Every topic, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Requests,
        Self::Place,
        Self::Load,
        Self::Durability,
        Self::Cache,
        Self::Data,
        Self::Processors,
        Self::Bounds,
        Self::Records,
        Self::Programs,
    ];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "What a request is",
            Self::Place => "Where requests go",
            Self::Load => "How requests are issued",
            Self::Durability => "When writes are synced",
            Self::Cache => "Page cache",
            Self::Data => "What is written",
            Self::Processors => "Processors and memory",
            Self::Bounds => "What ends a trial",
            Self::Records => "What is recorded",
            Self::Programs => "Programs and other tools",
        }
    }
}

/// One setting of the engine.
#[derive(Debug)]
pub struct Setting {
    /// Its name in files, arguments and messages.
    pub name: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// Names that fio users know it by.
    pub aliases: &'static [&'static str],
    /// Unit of its values; empty where there is none.
    pub unit: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What kind of value it takes.
    pub kind: ValueKind,
    /// The column of a run file and of exports that holds it; the name carries the unit.
    pub column: &'static str,
    /// The schema version that brought the column; [`LATER`] for a new one.
    pub since: i64,
    /// Whether exports have that column.
    pub exported: bool,
    set: fn(&mut CellSpec, &str) -> Result<()>,
    get: fn(&CellSpec) -> Value,
}

/// Every setting, in the order of the columns of run files and exports.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "backend",
        topic: Topic::Load,
        aliases: &["ioengine"],
        unit: "",
        doc: "how requests are issued, for example psync, mmap, libaio or io_uring",
        kind: ValueKind::Word,
        column: "backend",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.backend, text),
        get: |cell| Value::word(Some(cell.trial.backend)),
    },
    Setting {
        name: "pattern",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace, zipf:THETA or zones:50/5:30/15:20/80 (half of the requests go to the first 5 % of the region, ...)",
        kind: ValueKind::Word,
        column: "pattern",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.pattern, text),
        get: |cell| Value::word(Some(cell.trial.pattern)),
    },
    Setting {
        name: "bs",
        topic: Topic::Requests,
        aliases: &[],
        unit: "bytes",
        doc: "I/O size: bytes of one request",
        kind: ValueKind::Size,
        column: "bs_bytes",
        since: 1,
        exported: true,
        set: |cell, text| put_size(&mut cell.trial.bs, text),
        get: |cell| cell.trial.bs.into(),
    },
    Setting {
        name: "bs_mix",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "I/O sizes and their shares in percent, drawn for each request: 4k:60,64k:30,1M:10; a slash separates reads from writes; requests start at multiples of bs; none: every request has bs bytes",
        kind: ValueKind::List,
        column: "bs_mix",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.bs_mix, text),
        get: |cell| Value::word(cell.trial.bs_mix.as_ref()),
    },
    Setting {
        name: "skip",
        topic: Topic::Requests,
        aliases: &[],
        unit: "bytes",
        doc: "bytes skipped after each I/O, with pattern=strided",
        kind: ValueKind::Size,
        column: "skip_bytes",
        since: 1,
        exported: true,
        set: |cell, text| put_size(&mut cell.trial.skip, text),
        get: |cell| cell.trial.skip.into(),
    },
    Setting {
        name: "offset",
        topic: Topic::Place,
        aliases: &[],
        unit: "bytes",
        doc: "first byte of the region",
        kind: ValueKind::Size,
        column: "offset_bytes",
        since: 1,
        exported: true,
        set: |cell, text| put_size(&mut cell.trial.offset, text),
        get: |cell| cell.trial.offset.into(),
    },
    Setting {
        name: "region",
        topic: Topic::Place,
        aliases: &["size"],
        unit: "bytes",
        doc: "length of the byte range that a trial may touch; truncated to the size of the target",
        kind: ValueKind::Size,
        column: "region_bytes",
        since: 1,
        exported: true,
        set: |cell, text| put_size(&mut cell.trial.region, text),
        get: |cell| cell.trial.region.into(),
    },
    Setting {
        name: "threads",
        topic: Topic::Load,
        aliases: &["numjobs"],
        unit: "",
        doc: "workers, 1 to 1024",
        kind: ValueKind::Count,
        column: "threads",
        since: 1,
        exported: true,
        set: |cell, text| put_count(&mut cell.trial.threads, text),
        get: |cell| cell.trial.threads.into(),
    },
    Setting {
        name: "cpus",
        topic: Topic::Processors,
        aliases: &["cpus_allowed"],
        unit: "",
        doc: "CPUs that threads may run on: 0-3,8; none: all that the process may use",
        kind: ValueKind::List,
        column: "cpus",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.cpus, text),
        get: |cell| Value::word(cell.trial.cpus.as_ref()),
    },
    Setting {
        name: "placement",
        topic: Topic::Processors,
        aliases: &[],
        unit: "",
        doc: "which CPU a thread runs on: float (any of them), spread (one per thread, far apart: packages, then cores, then hardware threads) or packed (one per thread, close together)",
        kind: ValueKind::Word,
        column: "placement",
        since: LATER,
        exported: true,
        set: |cell, text| put(&mut cell.trial.placement, text),
        get: |cell| Value::word(Some(cell.trial.placement)),
    },
    Setting {
        name: "memory_node",
        topic: Topic::Processors,
        aliases: &[],
        unit: "",
        doc: "NUMA node of the threads' memory, buffers included; none: any",
        kind: ValueKind::Count,
        column: "memory_node",
        since: LATER,
        exported: true,
        set: put_memory_node,
        get: |cell| cell.trial.memory_node.into(),
    },
    Setting {
        name: "depth",
        topic: Topic::Load,
        aliases: &["iodepth"],
        unit: "",
        doc: "outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only",
        kind: ValueKind::Count,
        column: "depth",
        since: 1,
        exported: true,
        set: |cell, text| put_count(&mut cell.trial.depth, text),
        get: |cell| cell.trial.depth.into(),
    },
    Setting {
        name: "batch",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "completions an asynchronous worker waits for: one, a share such as 50%, all, or auto (chosen by short probes)",
        kind: ValueKind::Word,
        column: "batch",
        since: 1,
        exported: true,
        set: put_batch,
        get: |cell| Value::word(Some(cell.batch_name())),
    },
    Setting {
        name: "read_percent",
        topic: Topic::Requests,
        aliases: &["rwmixread"],
        unit: "percent",
        doc: "share of reads: 100 reads only, 0 writes only",
        kind: ValueKind::Count,
        column: "read_percent",
        since: 1,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.read_percent, text),
        get: |cell| cell.trial.read_percent.into(),
    },
    Setting {
        name: "trim_percent",
        topic: Topic::Requests,
        aliases: &[],
        unit: "percent",
        doc: "share of the writes that trim instead of writing data, in percent",
        kind: ValueKind::Count,
        column: "trim_percent",
        since: LATER,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.trim_percent, text),
        get: |cell| cell.trial.trim_percent.into(),
    },
    Setting {
        name: "trim_by",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "how to trim: discard (punch a hole in a file, BLKDISCARD on a device) or write_zeroes (zeros, with their space kept)",
        kind: ValueKind::Word,
        column: "trim_by",
        since: LATER,
        exported: true,
        set: |cell, text| put(&mut cell.trial.trim_by, text),
        get: |cell| Value::word(Some(cell.trial.trim_by)),
    },
    Setting {
        name: "workload",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to set them separately",
        kind: ValueKind::Word,
        column: "workload",
        since: 5,
        exported: false,
        set: put_workload,
        get: |cell| Value::word(cell.workload.as_ref()),
    },
    Setting {
        name: "layout",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "files and threads: shared (one file, a share per thread), interleaved (one file, blocks in turn), overlapping (one file, each thread uses all of it) or private (a file per thread)",
        kind: ValueKind::Word,
        column: "layout",
        since: 4,
        exported: true,
        set: |cell, text| put(&mut cell.trial.layout, text),
        get: |cell| Value::word(Some(cell.trial.layout)),
    },
    Setting {
        name: "descriptors",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "file descriptors: private (one per thread) or shared (one for all; backend sync then locks around lseek and read)",
        kind: ValueKind::Word,
        column: "descriptors",
        since: 4,
        exported: true,
        set: |cell, text| put(&mut cell.trial.descriptors, text),
        get: |cell| Value::word(Some(cell.trial.descriptors)),
    },
    Setting {
        name: "fresh",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "use a new file, without allocated space, for each trial that only writes",
        kind: ValueKind::Flag,
        column: "fresh",
        since: 4,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.fresh, text),
        get: |cell| cell.trial.fresh.into(),
    },
    Setting {
        name: "sync",
        topic: Topic::Durability,
        aliases: &[],
        unit: "",
        doc: "when writes become durable: none, end, each (fsync after writes), fdatasync (after writes), osync, odsync (open flags) or rwf_dsync (a flag of each write)",
        kind: ValueKind::Word,
        column: "sync",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.sync, text),
        get: |cell| Value::word(Some(cell.trial.sync)),
    },
    Setting {
        name: "sync_every",
        topic: Topic::Durability,
        aliases: &[],
        unit: "",
        doc: "writes of a thread per sync, with sync=each and sync=fdatasync",
        kind: ValueKind::Count,
        column: "sync_every",
        since: LATER,
        exported: true,
        set: |cell, text| put_count(&mut cell.trial.sync_every, text),
        get: |cell| cell.trial.sync_every.into(),
    },
    Setting {
        name: "allocate",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "space that is written: append (a new file that grows), preallocated (a new file with fallocate), recycled (existing data is overwritten); none for the file as it is, or without space with fresh=true",
        kind: ValueKind::Word,
        column: "allocate",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.allocate, text),
        get: |cell| Value::word(cell.trial.allocate),
    },
    Setting {
        name: "cache",
        topic: Topic::Cache,
        aliases: &[],
        unit: "",
        doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
        kind: ValueKind::Word,
        column: "cache",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.cache, text),
        get: |cell| Value::word(Some(cell.trial.cache)),
    },
    Setting {
        name: "first_offset",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "where seq, reverse and strided begin: random (a new block in each trial, so that the drive's cache holds none of it; the default with cache=direct) or zero",
        kind: ValueKind::Word,
        column: "first_offset",
        since: LATER,
        exported: true,
        set: |cell, text| put(&mut cell.trial.first_offset, text),
        get: |cell| Value::word(Some(cell.trial.first_offset)),
    },
    Setting {
        name: "buffer_init",
        topic: Topic::Processors,
        aliases: &[],
        unit: "",
        doc: "buffer preparation: untouched, zeroed, touched, populated, huge (huge pages), nohuge or random",
        kind: ValueKind::Word,
        column: "buffer_init",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.buffer_init, text),
        get: |cell| Value::word(Some(cell.trial.buffer_init)),
    },
    Setting {
        name: "buffer_memory",
        topic: Topic::Processors,
        aliases: &[],
        unit: "",
        doc: "memory of the buffers: contiguous (in huge pages; the default with cache=direct) or kernel (mostly pages of 4 KiB)",
        kind: ValueKind::Word,
        column: "buffer_memory",
        since: LATER,
        exported: true,
        set: |cell, text| put(&mut cell.trial.buffer_memory, text),
        get: |cell| Value::word(Some(cell.trial.buffer_memory)),
    },
    Setting {
        name: "content",
        topic: Topic::Data,
        aliases: &[],
        unit: "",
        doc: "data to write: unique (incompressible, different in every 4 KiB), repeated or zero",
        kind: ValueKind::Word,
        column: "content",
        since: 1,
        exported: true,
        set: |cell, text| put(&mut cell.trial.content, text),
        get: |cell| Value::word(Some(cell.trial.content)),
    },
    Setting {
        name: "compressible",
        topic: Topic::Data,
        aliases: &["buffer_compress_percentage"],
        unit: "percent",
        doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
        kind: ValueKind::Count,
        column: "compressible",
        since: LATER,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.compressible, text),
        get: |cell| cell.trial.compressible.into(),
    },
    Setting {
        name: "dedup",
        topic: Topic::Data,
        aliases: &["dedupe_percentage"],
        unit: "percent",
        doc: "share of the writes that repeat data written before, in percent",
        kind: ValueKind::Count,
        column: "dedup",
        since: LATER,
        exported: true,
        set: |cell, text| put_percent(&mut cell.trial.dedup, text),
        get: |cell| cell.trial.dedup.into(),
    },
    Setting {
        name: "verify",
        topic: Topic::Data,
        aliases: &[],
        unit: "",
        doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
        kind: ValueKind::Flag,
        column: "verify",
        since: 4,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.verify, text),
        get: |cell| cell.trial.verify.into(),
    },
    Setting {
        name: "bytes",
        topic: Topic::Bounds,
        aliases: &[],
        unit: "bytes",
        doc: "end a trial after this many bytes over all threads; none for no limit",
        kind: ValueKind::Size,
        column: "bytes",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.bytes, text, parse_size),
        get: |cell| cell.trial.limit.bytes.into(),
    },
    Setting {
        name: "requests",
        topic: Topic::Bounds,
        aliases: &[],
        unit: "",
        doc: "end a trial after this many requests over all threads; none for no limit",
        kind: ValueKind::Count,
        column: "requests",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.requests, text, parse_count),
        get: |cell| cell.trial.limit.requests.into(),
    },
    Setting {
        name: "time",
        topic: Topic::Bounds,
        aliases: &["runtime"],
        unit: "s",
        doc: "end a trial after this time; none for no limit",
        kind: ValueKind::Time,
        column: "time_ns",
        since: 5,
        exported: false,
        set: |cell, text| put_bound(&mut cell.trial.limit.time, text, parse_duration),
        get: |cell| cell.trial.limit.time.into(),
    },
    Setting {
        name: "rate",
        topic: Topic::Load,
        aliases: &["rate_iops"],
        unit: "1/s",
        doc: "requests per second over all threads, or bytes per second such as 50MB/s, issued on schedule whether or not earlier ones have completed (open loop); none to issue the next when one completes; 0 for a group that does nothing",
        kind: ValueKind::Rate,
        column: "rate",
        since: 3,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.rate, text),
        get: |cell| cell.trial.rate.map_or(Value::None, Value::Rate),
    },
    Setting {
        name: "arrivals",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "spacing of the scheduled starts of a rate: constant or poisson",
        kind: ValueKind::Word,
        column: "arrivals",
        since: 3,
        exported: true,
        set: |cell, text| put(&mut cell.trial.arrivals, text),
        get: |cell| Value::word(Some(cell.trial.arrivals)),
    },
    Setting {
        name: "thinktime",
        topic: Topic::Load,
        aliases: &[],
        unit: "s",
        doc: "pause of a thread after every thinktime_every requests, once they have completed; none: no pause",
        kind: ValueKind::Time,
        column: "thinktime_ns",
        since: LATER,
        exported: true,
        set: |cell, text| put_bound(&mut cell.trial.thinktime, text, parse_duration),
        get: |cell| cell.trial.thinktime.into(),
    },
    Setting {
        name: "thinktime_every",
        topic: Topic::Load,
        aliases: &["thinktime_blocks"],
        unit: "",
        doc: "requests of a thread between two pauses of thinktime",
        kind: ValueKind::Count,
        column: "thinktime_every",
        since: LATER,
        exported: true,
        set: |cell, text| put_count(&mut cell.trial.thinktime_every, text),
        get: |cell| cell.trial.thinktime_every.into(),
    },
    Setting {
        name: "bursts",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "time with requests and time without, in turn: 100ms/900ms; none: no pause",
        kind: ValueKind::Word,
        column: "bursts",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.bursts, text),
        get: |cell| Value::word(cell.trial.bursts),
    },
    Setting {
        name: "latency",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "record the service time of every request; false for requests that are shorter than a time stamp",
        kind: ValueKind::Flag,
        column: "latency",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.latency, text),
        get: |cell| cell.trial.latency.into(),
    },
    Setting {
        name: "hardware_counters",
        topic: Topic::Records,
        aliases: &[],
        unit: "",
        doc: "count cycles, instructions, cache and TLB misses of the workers, if the machine supports it",
        kind: ValueKind::Flag,
        column: "hardware_counters",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.hardware_counters, text),
        get: |cell| cell.trial.hardware_counters.into(),
    },
    Setting {
        name: "registered",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "io_uring: register the file and the buffers",
        kind: ValueKind::Flag,
        column: "registered",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.registered, text),
        get: |cell| cell.trial.registered.into(),
    },
    Setting {
        name: "sqpoll",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "io_uring: a kernel thread polls the submission queue",
        kind: ValueKind::Flag,
        column: "sqpoll",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.sqpoll, text),
        get: |cell| cell.trial.sqpoll.into(),
    },
    Setting {
        name: "iopoll",
        topic: Topic::Load,
        aliases: &[],
        unit: "",
        doc: "io_uring, pvsync2: poll for completions instead of taking interrupts",
        kind: ValueKind::Flag,
        column: "iopoll",
        since: 5,
        exported: false,
        set: |cell, text| put_flag(&mut cell.trial.iopoll, text),
        get: |cell| cell.trial.iopoll.into(),
    },
    Setting {
        name: "noatime",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "open the file with O_NOATIME: reads do not change its access time",
        kind: ValueKind::Flag,
        column: "noatime",
        since: LATER,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.noatime, text),
        get: |cell| cell.trial.noatime.into(),
    },
    Setting {
        name: "dontcache",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "leave no data in the page cache (RWF_DONTCACHE, Linux 6.14); buffered I/O with pvsync2, io_uring or libaio",
        kind: ValueKind::Flag,
        column: "dontcache",
        since: LATER,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.dontcache, text),
        get: |cell| cell.trial.dontcache.into(),
    },
    Setting {
        name: "atomic",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "carry out each write as a whole or not at all (RWF_ATOMIC, Linux 6.11); direct I/O with pvsync2, libaio, or io_uring with registered=false",
        kind: ValueKind::Flag,
        column: "atomic",
        since: LATER,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.atomic, text),
        get: |cell| cell.trial.atomic.into(),
    },
    Setting {
        name: "nowait",
        topic: Topic::Requests,
        aliases: &[],
        unit: "",
        doc: "pvsync2: try each request without waiting (RWF_NOWAIT), repeat those that would wait, and count them",
        kind: ValueKind::Flag,
        column: "nowait",
        since: LATER,
        exported: true,
        set: |cell, text| put_flag(&mut cell.trial.nowait, text),
        get: |cell| cell.trial.nowait.into(),
    },
    Setting {
        name: "fadvise",
        topic: Topic::Cache,
        aliases: &[],
        unit: "",
        doc: "advice to the kernel on buffered reads (posix_fadvise): normal, sequential, random or noreuse; none: no advice",
        kind: ValueKind::Word,
        column: "fadvise",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.fadvise, text),
        get: |cell| Value::word(cell.trial.fadvise),
    },
    Setting {
        name: "ioprio",
        topic: Topic::Processors,
        aliases: &[],
        unit: "",
        doc: "I/O priority of the threads: rt:0 to rt:7, be:0 to be:7 (0 is the highest) or idle; none: that of the process",
        kind: ValueKind::Word,
        column: "ioprio",
        since: LATER,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.trial.ioprio, text),
        get: |cell| Value::word(cell.trial.ioprio),
    },
    Setting {
        name: "start_delay",
        topic: Topic::Load,
        aliases: &["startdelay"],
        unit: "s",
        doc: "how much later than the others a group starts",
        kind: ValueKind::Time,
        column: "start_delay_ns",
        since: LATER,
        exported: false,
        set: |cell, text| put_duration(&mut cell.trial.start_delay, text),
        get: |cell| cell.trial.start_delay.into(),
    },
    Setting {
        name: "linkage",
        topic: Topic::Programs,
        aliases: &[],
        unit: "",
        doc: "time iolab's small reader as a whole program, linked static or dynamic; none for no program",
        kind: ValueKind::Word,
        column: "linkage",
        since: 5,
        exported: false,
        set: |cell, text| put_or_none(&mut cell.linkage, text),
        get: |cell| Value::word(cell.linkage.as_ref()),
    },
    Setting {
        name: "command",
        topic: Topic::Programs,
        aliases: &[],
        unit: "",
        doc: "time your own program; iolab fills in {file}, {size} and {bs}; none for no program",
        kind: ValueKind::Word,
        column: "command",
        since: 2,
        exported: true,
        set: |cell, text| put_or_none(&mut cell.command, text),
        get: |cell| Value::word(cell.command.as_ref()),
    },
    Setting {
        name: "tool",
        topic: Topic::Programs,
        aliases: &["peer"],
        unit: "",
        doc: "tool that measures the cell: iolab, or an installed peer such as fio with equivalent options",
        kind: ValueKind::Word,
        column: "tool",
        since: 4,
        exported: true,
        set: |cell, text| put(&mut cell.tool, text),
        get: |cell| Value::word(Some(cell.tool)),
    },
    Setting {
        name: "target",
        topic: Topic::Place,
        aliases: &[],
        unit: "",
        doc: "the target that is read or written, where a run has several: paths; none for the run's own",
        kind: ValueKind::Word,
        column: "target",
        since: LATER,
        exported: false,
        set: |cell, text| put_or_none(&mut cell.target, text),
        get: |cell| Value::word(cell.target.as_ref()),
    },
];

impl PartialEq for Setting {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// The setting of this name or fio alias.
    pub fn find(name: &str) -> Option<&'static Setting> {
        SETTINGS
            .iter()
            .find(|setting| setting.name == name || setting.aliases.contains(&name))
    }

    /// Sets it in a cell.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn set(&self, cell: &mut CellSpec, text: &str) -> Result<()> {
        (self.set)(cell, text.trim()).map_err(|error| error.within(self.name))
    }

    /// Its value in a cell, in the one form in which levels are written: `4KiB`, `rand`, `250ms`.
    pub fn get(&self, cell: &CellSpec) -> String {
        self.value(cell).text(self.kind)
    }

    /// Its value in a cell.
    pub fn value(&self, cell: &CellSpec) -> Value {
        (self.get)(cell)
    }

    /// Brings a value into the one form in which levels are written.
    ///
    /// # Errors
    /// Of kind usage, naming the setting and what it takes.
    pub fn canonical(&self, text: &str) -> Result<String> {
        let mut cell = CellSpec::default();
        self.set(&mut cell, text)?;
        Ok(self.get(&cell))
    }
}

#[cfg(test)]
mod tests;
