//! What a run file holds, as plain values: the common ground of the writer (runner), the
//! reader (analysis) and everything that prints.

pub mod column;
pub mod diagnosis;
mod effective;
pub mod environment;
pub mod peak_source;
pub mod peaks;
pub mod tables;
mod targets;
mod words;

pub use iolab_spec::counters::{
    Bottom, Counters, DeviceStat, Hardware, HardwareEvents, NoHardware, Pressure, ProcessIo,
    ResourceUse,
};
pub use iolab_spec::cpus::Cpus;
pub use iolab_spec::outcome::{Effective, RateReport, RingFlag};
pub use iolab_spec::region::Region;
pub use iolab_spec::region::{Extents, Residency};
pub use iolab_spec::request_sizes::{RequestSizes, SizeCount};
pub use iolab_spec::series::{Done, Interval, Series};
pub use iolab_spec::trial::Arrivals;
pub use iolab_spec::verify::{FaultKind, Faults, Verified};

use iolab_spec::trial::TrialSpec;

use std::collections::BTreeMap;
use std::fmt;

use crate::environment::{Environment, KEYS};
use iolab_spec::group::GroupSpec;
use iolab_spec::histogram::LatencyHistogram;
use iolab_spec::response::Response;
use iolab_spec::settings::{CellSpec, SETTINGS, Setting, Value};

pub use effective::parse as effective_before_5;
pub use tables::{FurtherTarget, Group, Rank};
pub use words::{
    ClockDomain, Ended, EndedBy, EventKind, Operation, RequestTime, RunStatus, ServedBy, TargetKind,
};

/// Schema version this build writes; a file with a greater one is refused.
pub const SCHEMA_VERSION: i64 = 5;

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
    /// What it is.
    pub target_kind: TargetKind,
    /// Usable bytes of the target.
    pub target_bytes: u64,
    /// Seed of the plan; trial seeds derive from it.
    pub seed: u64,
    /// Which clock it was timed by.
    pub clock_domain: ClockDomain,
    /// Cost of one time stamp, ns; NaN where it is not known.
    pub clock_cost_ns: f64,
    /// `tsc` or `clock_monotonic_raw`, and why.
    pub clock_source: String,
    /// CPU cost of one request of the null backend with latency recorded, ns: iolab's own floor; NaN where it is not known.
    pub floor_ns: f64,
}

impl Default for Run {
    /// What was measured with it is not known.
    fn default() -> Self {
        Self {
            status: RunStatus::default(),
            tool_version: String::new(),
            started_utc: String::new(),
            ended_utc: None,
            target: String::new(),
            target_kind: TargetKind::default(),
            target_bytes: 0,
            seed: 0,
            clock_domain: ClockDomain::default(),
            clock_cost_ns: f64::NAN,
            clock_source: String::new(),
            floor_ns: f64::NAN,
        }
    }
}

/// The experiment: one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentRecord {
    /// Its name.
    pub name: String,
    /// The question it asks.
    pub question: String,
    /// What it measures.
    pub response: Response,
    /// The group whose response it is; `None` for that of whole trials.
    pub response_group: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// 0-based, in the order of the definition.
    pub id: i64,
    /// The factor levels, in the order of [`ExperimentRecord::factors`], canonical text (`4KiB`, `rand`).
    pub levels: Vec<String>,
    /// What it asks for: every setting in force. Where a trial runs a program, only those of the file that it reads
    /// (`bs`, `region`, `cache`) have a meaning.
    pub spec: CellSpec,
    /// What ended the repetition; `None` while it is open.
    pub ended_by: Option<EndedBy>,
    /// What the pilot has chosen; `None` where there was none.
    pub pilot: Option<Pilot>,
}

/// What the pilot has chosen for a cell, for the blocks after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pilot {
    /// Visits per block.
    pub visits: u32,
    /// The time that ends a trial, ns, where it is shorter than that of the definition.
    pub time_ns: Option<u64>,
}

/// The verdict on one sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Where from.
    pub served_by: ServedBy,
    /// Share of the bytes that the device carried, 0 to 1, where it is known.
    pub device_fraction: Option<f64>,
    /// Why this verdict, in a few words.
    pub reason: String,
}

impl Verdict {
    /// The reason where a process or another machine answers for the bytes.
    pub const ELSEWHERE: &str = "a process or another machine answers for this file system, and what it does with the bytes is not known here";
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
    /// Which group of the cell it is of, from 1; 0 for the whole trial.
    pub group: u32,
    /// The first start of the group, from that of the trial, ns.
    pub start_ns: u64,
    /// The cell.
    pub cell: i64,
    /// Block number; block 0 is the warm-up.
    pub block: u32,
    /// Which visit of the block to the cell it is, from 0.
    pub visit: u32,
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
    /// Requests that took data away instead of writing any.
    pub trims: Direction,
    /// How many requests of each size were issued, where sizes were drawn from a mix.
    pub request_sizes: RequestSizes,
    /// Requests that could not be carried out without waiting, and were made again; `None` where none was tried so.
    pub waited: Option<u64>,
    /// The CPUs that threads were seen on; none where it was not looked.
    pub cpus_used: Cpus,
    /// `fsync` and `fdatasync` calls.
    pub syncs: u64,
    /// Service times of the syncs that followed writes. `None` without any.
    pub sync_latency: Option<LatencySummary>,
    /// Requests that failed.
    pub errors: u64,
    /// First failure in words.
    pub failure: Option<String>,
    /// How it ended.
    pub ended: Ended,
    /// First start to last end, ns.
    pub elapsed_ns: u64,
    /// Span with every worker active, ns.
    pub all_active_ns: u64,
    /// Final `fsync`, ns.
    pub end_sync_ns: u64,
    /// Time in which threads paused (think time, bursts), all of them together, ns.
    pub paused_ns: u64,
    /// Preparation, trial and evidence together: what it took from the budget, ns.
    pub wall_ns: u64,
    /// TSC against `CLOCK_MONOTONIC_RAW`, ppm; NaN where it is not known.
    pub clock_drift_ppm: f64,
    /// Seed of this trial.
    pub seed: u64,
    /// What the kernel counted over the timed span.
    pub counters: Counters,
    /// The page cache and the file around the timed span.
    pub region: Region,
    /// How the rate was kept up with; `None` in the closed loop.
    pub rate_report: Option<RateReport>,
    /// What reading back has shown; `None` where that was not done.
    pub verified: Option<Verified>,
    /// What was in force, where that can differ from what was asked for.
    pub effective: Effective,
    /// Where the bytes came from.
    pub verdict: Verdict,
}

impl Default for Sample {
    /// Nothing was done, and nothing is known.
    fn default() -> Self {
        Self {
            id: 0,
            group: 0,
            start_ns: 0,
            cell: 0,
            block: 0,
            visit: 0,
            position: 0,
            warmup: false,
            ok: false,
            started_utc: String::new(),
            reads: Direction::default(),
            writes: Direction::default(),
            trims: Direction::default(),
            request_sizes: RequestSizes::default(),
            waited: None,
            cpus_used: Cpus::default(),
            syncs: 0,
            sync_latency: None,
            errors: 0,
            failure: None,
            ended: Ended::default(),
            elapsed_ns: 0,
            all_active_ns: 0,
            end_sync_ns: 0,
            paused_ns: 0,
            wall_ns: 0,
            clock_drift_ppm: f64::NAN,
            seed: 0,
            counters: Counters::default(),
            region: Region::default(),
            rate_report: None,
            verified: None,
            effective: Effective::default(),
            verdict: Verdict::default(),
        }
    }
}

/// A part of a sample: what one group did on one rank, to one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PartId {
    /// The group; 0 is what the cell itself describes.
    pub group: u32,
    /// The rank; 0 is the one that plans.
    pub rank: u32,
    /// The target; 0 is the run's own.
    pub target: u32,
}

/// What a part of a sample did. A sample with one part has none: it says all itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// The sample's number in the file.
    pub sample: i64,
    /// Which part of it.
    pub id: PartId,
    /// Its first worker's start, from that of the sample, ns.
    pub start_ns: u64,
    /// Its first worker's start to its last worker's end, ns.
    pub elapsed_ns: u64,
    /// Reads completed.
    pub read_requests: u64,
    /// Writes completed.
    pub write_requests: u64,
    /// Syncs completed.
    pub sync_requests: u64,
    /// Trims completed.
    pub trim_requests: u64,
    /// Operations on files and directories.
    pub metadata_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes given back.
    pub trim_bytes: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// Which latencies of a part: what the requests did, and which of their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LatencyOf {
    /// What the requests did.
    pub operation: Operation,
    /// Which of their times.
    pub quantity: RequestTime,
}

impl LatencyOf {
    /// Service times.
    pub const fn service(operation: Operation) -> Self {
        Self {
            operation,
            quantity: RequestTime::Service,
        }
    }
}

/// As exports call it: `read`, `read-response`, `write-lateness`.
impl fmt::Display for LatencyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity {
            RequestTime::Service => f.pad(self.operation.name()),
            quantity => f.pad(&format!("{}-{quantity}", self.operation)),
        }
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// RFC 3339, UTC.
    pub at_utc: String,
    /// What it is.
    pub kind: EventKind,
    /// The cell it concerns.
    pub cell: Option<i64>,
    /// What happened, in words.
    pub message: String,
}

/// A whole run file in memory, latency histograms left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRecord {
    /// The run.
    pub run: Run,
    /// Environment of the host that plans.
    pub environment: Environment,
    /// Environments of further hosts.
    pub further_hosts: Vec<tables::Fact>,
    /// Further targets.
    pub further_targets: Vec<FurtherTarget>,
    /// The processes of a run across hosts; none where there is one.
    pub ranks: Vec<Rank>,
    /// The experiment.
    pub experiment: ExperimentRecord,
    /// All cells.
    pub cells: Vec<Cell>,
    /// All samples in the order of time.
    pub samples: Vec<Sample>,
    /// What each group did in those trials that have several, in the order of the samples and groups.
    pub group_samples: Vec<Sample>,
    /// Parts of those samples that have several.
    pub parts: Vec<Part>,
    /// Trials over time, in the order of the samples; none of programs, and none in files before schema version 4. Where
    /// there are more than a million intervals, neighbouring ones are folded.
    pub series: Vec<SampleSeries>,
    /// All events in the order of time.
    pub events: Vec<Event>,
}

impl Cell {
    /// Each of its groups as a cell of its own, with the name of the group.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Self)> {
        let own = |group: &GroupSpec| Self {
            spec: group.spec.clone(),
            ..self.clone()
        };
        let groups = self.spec.groups.iter();
        groups.map(move |group| (group.name.as_str(), own(group)))
    }

    /// What a trial of it is asked to do.
    pub fn trial(&self) -> &TrialSpec {
        &self.spec.trial
    }

    /// The program that a trial runs, with `{file}`, `{size}` and `{bs}` not filled in; `None` where requests are issued.
    pub fn program(&self) -> Option<String> {
        self.spec.program().map(|template| template.to_string())
    }

    /// How the intended starts of a rate are spaced; `None` in the closed loop, where there are none.
    pub fn arrivals(&self) -> Option<Arrivals> {
        self.spec.trial.rate.map(|_| self.spec.trial.arrivals)
    }

    /// Every setting with its value as far as it has an effect: what a shorthand (`workload`, `linkage`) stands for instead
    /// of it, and nothing of arrivals in the closed loop.
    pub fn in_force(&self) -> impl Iterator<Item = (&'static Setting, Value)> {
        SETTINGS.iter().filter_map(|setting| {
            let value = match setting.name {
                "workload" | "linkage" => return None,
                "command" => Value::word(self.program()),
                "arrivals" => Value::word(self.arrivals()),
                _ => setting.value(&self.spec),
            };
            Some((setting, value))
        })
    }

    /// The settings that exports show, named as they name them: what carries the cell out, then the others.
    pub fn exported(&self) -> Vec<(&'static str, serde_json::Value)> {
        let first = |(setting, _): &(&Setting, Value)| match setting.name {
            "command" => 0,
            "tool" => 1,
            _ => 2,
        };
        let mut shown: Vec<_> = self.in_force().filter(|(s, _)| s.exported).collect();
        shown.sort_by_key(first);
        let named = |(setting, value): (&Setting, Value)| (setting.column, value.into());
        shown.into_iter().map(named).collect()
    }
}

impl RunRecord {
    /// Tells runs apart: 16 hexadecimal digits from when, where and with which seed the run began. Every copy of a run file
    /// has the same.
    pub fn id(&self) -> String {
        let host = self.host().unwrap_or_default();
        let seed = self.run.seed.to_string();
        let parts = [
            self.run.started_utc.as_str(),
            &seed,
            &self.run.target,
            &self.experiment.name,
            &host,
        ];
        // The byte 0 ends each part.
        digest(parts.iter().flat_map(|part| part.bytes().chain([0])))
    }

    /// Whether the other record is of the same run and holds as much of it.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.id() == other.id() && self.samples.len() == other.samples.len()
    }

    /// Name of the host that planned the run; `None` in files from before it was kept.
    pub fn host(&self) -> Option<String> {
        self.environment.get(&KEYS.host_name)
    }

    /// The name of the group that a part of a sample is of; `None` where the cell has none.
    pub fn group_of(&self, sample: i64, part: PartId) -> Option<&str> {
        let place = self
            .samples
            .binary_search_by_key(&sample, |sample| sample.id);
        let sample = self.samples.get(place.ok()?)?;
        let cell = self.cells.get(usize::try_from(sample.cell).ok()?)?;
        let group = cell
            .spec
            .groups
            .get((part.group as usize).checked_sub(1)?)?;
        Some(&group.name)
    }

    /// What each group did in a trial; none where it had no groups.
    pub fn groups_of(&self, sample: i64) -> &[Sample] {
        let groups = &self.group_samples;
        let first = groups.partition_point(|own| own.id < sample);
        let end = groups.partition_point(|own| own.id <= sample);
        &groups[first..end]
    }

    /// The number of the group that the experiment asks about; `None` where it asks about whole trials.
    pub fn asked_group(&self) -> Option<u32> {
        let name = self.experiment.response_group.as_deref();
        self.cells.first()?.spec.number_of(name)
    }

    /// What was measured of what the experiment asks about: the samples of whole trials, or those of one group.
    pub fn asked_samples(&self) -> impl Iterator<Item = &Sample> {
        let group = self.asked_group();
        let samples = match group {
            None => &self.samples,
            Some(_) => &self.group_samples,
        };
        let own = move |sample: &&Sample| sample.group == group.unwrap_or(0);
        samples.iter().filter(own)
    }

    /// Each cell with the trials that summaries rest on: those that succeeded and are no warm-up, in the order of time.
    pub fn measured(&self) -> impl Iterator<Item = (&Cell, Vec<&Sample>)> {
        let mut trials: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|s| s.is_measured()) {
            trials.entry(sample.cell).or_default().push(sample);
        }
        let mut of = move |cell: &Cell| trials.remove(&cell.id).unwrap_or_default();
        self.cells.iter().map(move |cell| (cell, of(cell)))
    }
}

impl Sample {
    /// The value of a response in this trial; `None` where the trial has none.
    pub fn value(&self, response: Response) -> Option<f64> {
        match response {
            Response::Throughput => Some(self.throughput_mb_s()),
            Response::Iops => Some(self.iops()),
            Response::Elapsed => Some(self.elapsed_ns as f64),
            Response::Latency => self.quantile_ns(response, |l| l.p50_ns),
            Response::P90 => self.quantile_ns(response, |l| l.p90_ns),
            Response::P99 => self.quantile_ns(response, |l| l.p99_ns),
            Response::P999 => self.quantile_ns(response, |l| l.p999_ns),
            Response::Max => self.quantile_ns(response, |l| l.max_ns),
            Response::Cpu => self.cpu_ns_per_request(),
        }
    }

    /// A quantile of what was waited for, ns; `None` where there are too few requests for it.
    fn quantile_ns(&self, response: Response, of: fn(LatencySummary) -> u64) -> Option<f64> {
        let direction = self.main_direction();
        let enough = direction.requests >= response.requests_min();
        enough.then(|| Some(of(direction.waited()?) as f64))?
    }

    /// CPU time per request, ns; `None` without requests, and where no CPU time was counted at all, as in some trials of
    /// other tools.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        let (cpu, requests) = (self.cpu_ns(), self.requests());
        (cpu > 0 && requests > 0).then(|| cpu as f64 / requests as f64)
    }

    /// What is known of a sample of a group from that of its trial.
    pub fn complete_from(&mut self, trial: &Self) {
        self.cell = trial.cell;
        self.block = trial.block;
        self.visit = trial.visit;
        self.position = trial.position;
        self.warmup = trial.warmup;
        self.ok = trial.ok;
        self.started_utc.clone_from(&trial.started_utc);
        self.clock_drift_ppm = trial.clock_drift_ppm;
        self.verdict = trial.verdict.clone();
    }

    /// Whether summaries rest on it: it succeeded and is no warm-up.
    pub fn is_measured(&self) -> bool {
        self.ok && !self.warmup
    }

    /// Requests completed: reads, writes and trims.
    pub fn requests(&self) -> u64 {
        self.reads.requests + self.writes.requests + self.trims.requests
    }

    /// Bytes read, written and trimmed.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes + self.trims.bytes
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

    /// What most requests do; of those with as many, reads before writes and these before trims.
    pub fn main_direction(&self) -> &Direction {
        let other = match self.writes.requests >= self.trims.requests {
            true => &self.writes,
            false => &self.trims,
        };
        match self.reads.requests >= other.requests {
            true => &self.reads,
            false => other,
        }
    }
}

impl Direction {
    /// What whoever made the requests waited for them: their response time where they had an intended start, else
    /// their service time.
    pub fn waited(&self) -> Option<LatencySummary> {
        self.response.or(self.latency)
    }
}

/// FNV-1a with 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>), in hexadecimal: tells texts apart, and is no proof
/// against anybody who wants two to be alike.
pub fn digest(bytes: impl IntoIterator<Item = u8>) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

/// One latency histogram of a run file.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLatency {
    /// The sample.
    pub sample: i64,
    /// The part of it; that with all 0 is all of it, or its only one.
    pub part: PartId,
    /// What the requests did, and which of their times it is.
    pub of: LatencyOf,
    /// In ns.
    pub histogram: LatencyHistogram,
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_are_those_of_fnv_1a() {
        // Published test vectors.
        for (text, wanted) in [
            ("", "cbf29ce484222325"),
            ("a", "af63dc4c8601ec8c"),
            ("foobar", "85944171f73967e8"),
        ] {
            assert_eq!(digest(text.bytes()), wanted);
        }
    }
}
