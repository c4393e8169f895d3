//! What a run file holds, as plain values: the common ground of the writer (runner), the
//! reader (analysis) and everything that prints.

mod counts;

pub use counts::Count;
pub(crate) use counts::fault_names;
pub use iolab_engine::counters::{
    Bottom, Counters, DeviceStat, Extents, Hardware, HardwareEvents, NoHardware, Pressure,
    ProcessIo, Residency, ResourceUse,
};
pub use iolab_engine::outcome::{Pace, Region};
pub use iolab_engine::series::{Done, Interval, Series};
pub use iolab_engine::verify::{FaultKind, Faults, Verified};

use std::collections::BTreeMap;

use serde_json::Value;

/// Schema version this build writes; a file with a greater one is refused.
pub const SCHEMA_VERSION: i64 = 4;

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Being measured, or cut off by a crash.
    Running,
    /// The plan was carried out.
    Done,
    /// Stopped by the user; can be resumed.
    Interrupted,
    /// Ended by a failure; can be resumed.
    Failed,
}

/// The run: one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// How it stands.
    pub status: RunStatus,
    /// iolab's version.
    pub tool_version: String,
    /// RFC 3339, UTC.
    pub started_utc: String,
    /// RFC 3339, UTC; when the status last changed.
    pub ended_utc: Option<String>,
    /// The target as the user named it, made absolute.
    pub target: String,
    /// `scratch`, `file`, `block-device`, `char-device`; `imported` where another tool measured, before.
    pub target_kind: String,
    /// Usable bytes of the target.
    pub target_bytes: u64,
    /// Seed of the plan; trial seeds derive from it.
    pub seed: u64,
    /// Cost of one time stamp, ns.
    pub clock_cost_ns: f64,
    /// `tsc` or `clock_monotonic_raw`, and why.
    pub clock_source: String,
    /// CPU cost of one request of the null backend with latency recorded, ns: iolab's own floor.
    pub floor_ns: f64,
}

/// The experiment: one row.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRecord {
    /// Its name.
    pub name: String,
    /// The question it asks.
    pub question: String,
    /// `throughput`, `iops`, `latency` or `elapsed`.
    pub response: String,
    /// The whole resolved definition; enough to repeat it.
    pub toml: String,
    /// Names of the factors in order; more than one level each.
    pub factors: Vec<String>,
    /// Precision goal: half-width of the median's 95 % interval over the median.
    pub precision: f64,
    /// Time budget, ns.
    pub budget_ns: u64,
    /// Fewest measured trials per cell.
    pub trials_min: u32,
    /// Most measured trials per cell.
    pub trials_max: u32,
}

/// One combination of levels, with every setting in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// 0-based, in the order of the definition.
    pub id: i64,
    /// The factor levels, in the order of [`ExperimentRecord::factors`], canonical text (`4KiB`, `rand`).
    pub levels: Vec<String>,
    /// The program that a trial runs, with `{file}`, `{size}` and `{bs}` not filled in; `None` where iolab issues the requests
    /// itself. Of the settings below only those of the file it reads (`bs`, `region`, `cache`) have a meaning then.
    pub command: Option<String>,
    /// What carries the trials out: `iolab`, `fio` or `iozone`.
    pub tool: String,
    /// I/O engine.
    pub backend: String,
    /// Access pattern.
    pub pattern: String,
    /// I/O size, bytes.
    pub bs_bytes: u64,
    /// Skipped after each I/O, bytes.
    pub skip_bytes: u64,
    /// First byte of the region.
    pub offset_bytes: u64,
    /// Length of the region, bytes.
    pub region_bytes: u64,
    /// Workers.
    pub threads: u32,
    /// Outstanding requests per worker.
    pub depth: u32,
    /// Completion strategy; `auto` until it has been chosen by measurement.
    pub batch: String,
    /// Share of reads, percent.
    pub read_percent: u8,
    /// Which bytes belong to which worker.
    pub layout: String,
    /// Whose the open file descriptions are.
    pub descriptors: String,
    /// Whether trials that only write start on a new file each.
    pub fresh: bool,
    /// Sync policy.
    pub sync: String,
    /// Cache state.
    pub cache: String,
    /// Buffer preparation.
    pub buffer_init: String,
    /// What is written.
    pub content: String,
    /// Whether written data was read back after each trial.
    pub verify: bool,
    /// Requests per second over all threads (open loop); `None` in the closed loop.
    pub rate: Option<u64>,
    /// How the intended starts of a rate are spaced; `None` in the closed loop.
    pub arrivals: Option<String>,
    /// What ended the repetition: `precision`, `budget`, `trials-max`; `None` while it is open.
    pub ended_by: Option<String>,
}

/// Where the bytes of a sample came from or went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServedBy {
    /// The storage device.
    Device,
    /// The page cache.
    PageCache,
    /// Partly the device; see the fraction.
    Mixed,
    /// Nothing: the bytes lie in holes or unwritten extents, which read as zeros.
    Hole,
    /// A character device, a file system in memory, or no I/O at all.
    NotStorage,
    /// The evidence does not tell; see the reason.
    Unknown,
}

/// The verdict on one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Where from.
    pub served_by: ServedBy,
    /// Share of the bytes that the device carried, 0 to 1, where it is known.
    pub device_fraction: Option<f64>,
    /// Why this verdict, in a few words.
    pub reason: String,
}

/// Requests of one direction in a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Direction {
    /// Requests completed.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Transfers the kernel cut short and iolab continued.
    pub short_transfers: u64,
    /// Service time: completion minus submission. `None` without requests.
    pub latency: Option<LatencySummary>,
    /// Response time: completion minus intended start. `None` in the closed loop.
    pub response: Option<LatencySummary>,
    /// Submission minus intended start. `None` in the closed loop.
    pub lateness: Option<LatencySummary>,
}

/// Quantiles of one histogram, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencySummary {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Greatest.
    pub max_ns: u64,
}

/// What one trial yielded.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Row number in the file, in the order of time.
    pub id: i64,
    /// The cell.
    pub cell: i64,
    /// Block number; block 0 is the warm-up.
    pub block: u32,
    /// Place within the block.
    pub position: u32,
    /// Whether it is left out of summaries: the cell's first, or made before finer sizes were added.
    pub warmup: bool,
    /// `ok` or `failed`.
    pub ok: bool,
    /// RFC 3339, UTC.
    pub started_utc: String,
    /// Reads.
    pub reads: Direction,
    /// Writes.
    pub writes: Direction,
    /// `fsync` calls.
    pub syncs: u64,
    /// Requests that failed.
    pub errors: u64,
    /// First failure in words.
    pub failure: Option<String>,
    /// `done` or `time`; `failed` for a failed one.
    pub ended: String,
    /// First start to last end, ns.
    pub elapsed_ns: u64,
    /// Span with every worker active, ns.
    pub all_active_ns: u64,
    /// Final `fsync`, ns.
    pub end_sync_ns: u64,
    /// Preparation, trial and evidence together: what it took from the budget, ns.
    pub wall_ns: u64,
    /// TSC against `CLOCK_MONOTONIC_RAW`, ppm.
    pub clock_drift_ppm: f64,
    /// Seed of this trial.
    pub seed: u64,
    /// What the kernel counted over the timed span.
    pub counters: Counters,
    /// The page cache and the file around the timed span.
    pub region: Region,
    /// How the rate was kept up with; `None` in the closed loop.
    pub pace: Option<Pace>,
    /// What reading back has shown; `None` where that was not done.
    pub verified: Option<Verified>,
    /// Settings in force, where they can differ from those asked (`fixed_file,fixed_buffers,...; note`).
    pub effective: String,
    /// Where the bytes came from.
    pub verdict: Verdict,
}

/// A trial over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleSeries {
    /// The sample's number in the file.
    pub sample: i64,
    /// Its intervals, at least one.
    pub series: Series,
}

/// Something that happened: a warning, an error, a choice made by measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// RFC 3339, UTC.
    pub at_utc: String,
    /// `note`, `warning`, `error`, `choice`, `resume`, `gap` (why a cell has no trial).
    pub kind: String,
    /// The cell it concerns.
    pub cell: Option<i64>,
    /// What happened, in words.
    pub message: String,
}

/// A whole run file in memory, latency histograms left out.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run: Run,
    /// Environment, in order: key with its unit (`memory_bytes`), value.
    pub environment: Vec<(String, String)>,
    /// The experiment.
    pub experiment: ExperimentRecord,
    /// All cells.
    pub cells: Vec<Cell>,
    /// All samples in the order of time.
    pub samples: Vec<Sample>,
    /// Trials over time, in the order of the samples; none of programs, and none in files before schema version 4. Where
    /// there are more than a million intervals, neighbouring ones are folded.
    pub series: Vec<SampleSeries>,
    /// All events in the order of time.
    pub events: Vec<Event>,
}

impl Cell {
    /// Every setting, named as run files and exports name it.
    pub fn settings(&self) -> [(&'static str, Value); 22] {
        [
            ("command", self.command.clone().into()),
            ("tool", self.tool.clone().into()),
            ("backend", self.backend.clone().into()),
            ("pattern", self.pattern.clone().into()),
            ("bs_bytes", self.bs_bytes.into()),
            ("skip_bytes", self.skip_bytes.into()),
            ("offset_bytes", self.offset_bytes.into()),
            ("region_bytes", self.region_bytes.into()),
            ("threads", self.threads.into()),
            ("depth", self.depth.into()),
            ("batch", self.batch.clone().into()),
            ("read_percent", self.read_percent.into()),
            ("layout", self.layout.clone().into()),
            ("descriptors", self.descriptors.clone().into()),
            ("fresh", self.fresh.into()),
            ("sync", self.sync.clone().into()),
            ("cache", self.cache.clone().into()),
            ("buffer_init", self.buffer_init.clone().into()),
            ("content", self.content.clone().into()),
            ("verify", self.verify.into()),
            ("rate", self.rate.into()),
            ("arrivals", self.arrivals.clone().into()),
        ]
    }
}

impl RunRecord {
    /// Each cell with the trials that summaries rest on: those that succeeded and are no warm-up, in the order of time.
    pub fn measured(&self) -> impl Iterator<Item = (&Cell, Vec<&Sample>)> {
        let mut trials: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|s| s.ok && !s.warmup) {
            trials.entry(sample.cell).or_default().push(sample);
        }
        let mut of = move |cell: &Cell| trials.remove(&cell.id).unwrap_or_default();
        self.cells.iter().map(move |cell| (cell, of(cell)))
    }
}

impl Sample {
    /// Requests completed, both directions.
    pub fn requests(&self) -> u64 {
        self.reads.requests + self.writes.requests
    }

    /// Bytes transferred, both directions.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }

    /// Throughput in MB/s (10^6 bytes per second) over the full span.
    pub fn throughput_mb_s(&self) -> f64 {
        self.bytes() as f64 * 1e3 / self.elapsed_ns.max(1) as f64
    }

    /// Requests per second over the full span.
    pub fn iops(&self) -> f64 {
        self.requests() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// CPU time, user and system together, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.counters.usage.user_ns + self.counters.usage.system_ns
    }

    /// The direction with more requests; reads when they are equal.
    pub fn main_direction(&self) -> &Direction {
        if self.reads.requests >= self.writes.requests {
            &self.reads
        } else {
            &self.writes
        }
    }

    /// Median response time at a given rate, else median service time, ns; of the direction with more requests.
    pub fn latency_p50_ns(&self) -> Option<u64> {
        self.main_direction().waited().map(|l| l.p50_ns)
    }
}

impl Direction {
    /// What whoever made the requests waited for them: their response time where they had an intended start, else
    /// their service time.
    pub fn waited(&self) -> Option<LatencySummary> {
        self.response.or(self.latency)
    }
}
