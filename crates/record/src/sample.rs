//! What one trial yielded, and what each of its parts did.

use std::fmt;

use iolab_workload::counters::{Counters, SharedAccounts};
use iolab_workload::cpus::Cpus;
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::medium::Medium;
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::operation_summary::{LatencySummary, OperationSummary};
use iolab_workload::outcome::{Effective, RateReport};
use iolab_workload::region_state::Region;
use iolab_workload::request_sizes::RequestSizes;
use iolab_workload::response::Response;
use iolab_workload::series::Series;
use iolab_workload::stages::TraceSummary;
use iolab_workload::verify::Verified;

use crate::{Ended, Operation, RequestTime, ServedVerdict};

/// What one trial yielded.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Row number in the file, in the order of time.
    pub id: i64,
    /// Which group of the cell it is of, from 1; 0 for the whole trial.
    pub group: u32,
    /// Which client's it is, by the first of its ranks: the client is a host, or a rank with a target of its own. 0 for the whole
    /// trial too.
    pub client: u32,
    /// The first start of the group or client, from that of the trial, ns.
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
    /// What was done, by operation.
    pub operations: PerOperation<OperationSummary>,
    /// How many requests of each size were issued, where sizes were drawn from a mix.
    pub request_sizes: RequestSizes,
    /// Requests that could not be carried out without waiting, and were made again; `None` where none was tried so.
    pub waited: Option<u64>,
    /// The CPUs that threads were seen on; none where it was not looked.
    pub cpus_used: Cpus,
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
    /// Requests in flight on average while every worker was active; `None` where that was not recorded.
    pub in_flight: Option<f64>,
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
    /// What tracing showed; `None` where the trial was not traced.
    pub traced: Option<TraceSummary>,
    /// What was in force, where that can differ from what was asked for.
    pub effective: Effective,
    /// Where the bytes came from.
    pub verdict: ServedVerdict,
    /// When its ranks were active; `None` where one process carried it out.
    pub together: Option<RankActivity>,
}

impl Default for Sample {
    /// Nothing was done, and nothing is known.
    fn default() -> Self {
        Self {
            id: 0,
            group: 0,
            client: 0,
            start_ns: 0,
            cell: 0,
            block: 0,
            visit: 0,
            position: 0,
            warmup: false,
            ok: false,
            started_utc: String::new(),
            operations: PerOperation::default(),
            request_sizes: RequestSizes::default(),
            waited: None,
            cpus_used: Cpus::default(),
            errors: 0,
            failure: None,
            ended: Ended::default(),
            elapsed_ns: 0,
            all_active_ns: 0,
            in_flight: None,
            end_sync_ns: 0,
            paused_ns: 0,
            wall_ns: 0,
            clock_drift_ppm: f64::NAN,
            seed: 0,
            counters: Counters::default(),
            region: Region::default(),
            rate_report: None,
            verified: None,
            traced: None,
            effective: Effective::default(),
            verdict: ServedVerdict::default(),
            together: None,
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
    /// What it completed.
    pub done: PerOperation<Moved>,
    /// Requests that failed.
    pub errors: u64,
}

/// When the processes (ranks) of a trial were active, by the clock of rank 0, and what they moved while all of them were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankActivity {
    /// How far the time from the first start to the last end can be from the truth, ns: the bound that the clocks leave.
    pub elapsed_error_ns: u64,
    /// From the first worker's start to the last worker's start, ns.
    pub start_skew_ns: u64,
    /// How far that can be from the truth, ns.
    pub start_skew_error_ns: u64,
    /// Bytes moved while all were active, at least.
    pub all_active_least_bytes: u64,
    /// The same, at most.
    pub all_active_most_bytes: u64,
}

/// What the ranks of a client did in a trial, and what was seen there.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientPart {
    /// Its numbers; where its bytes came from is not judged yet.
    pub sample: Sample,
    /// What answers for its bytes.
    pub medium: Medium,
    /// Bytes that its ranks go over.
    pub region_bytes: u64,
    /// Which of its accounts other clients read, too.
    pub shared: SharedAccounts,
}

/// What the processes (ranks) of a trial did; nothing where there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankReport {
    /// Each of them.
    pub parts: Vec<Part>,
    /// Each client, in the order of their first ranks.
    pub clients: Vec<ClientPart>,
    /// All of them.
    pub together: Option<RankActivity>,
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
        let operation = self.main_operation();
        let enough = operation.requests >= response.requests_min();
        enough.then(|| Some(of(operation.waited()?) as f64))?
    }

    /// CPU time per request, ns; `None` without requests, and where no CPU time was counted at all, as in some trials of
    /// other tools.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        let (cpu, requests) = (self.cpu_ns(), self.requests());
        (cpu > 0 && requests > 0).then(|| cpu as f64 / requests as f64)
    }

    /// What is known of a sample of a group from that of its trial.
    pub fn complete_from(&mut self, trial: &Self) {
        self.take_place_of(trial);
        self.verdict = trial.verdict.clone();
    }

    /// What is known of a sample of a client from that of its trial.
    pub fn take_place_of(&mut self, trial: &Self) {
        self.cell = trial.cell;
        self.block = trial.block;
        self.visit = trial.visit;
        self.position = trial.position;
        self.warmup = trial.warmup;
        self.ok = trial.ok;
        self.started_utc.clone_from(&trial.started_utc);
        self.clock_drift_ppm = trial.clock_drift_ppm;
    }

    /// Whether summaries rest on it: it succeeded and is no warm-up.
    pub fn is_measured(&self) -> bool {
        self.ok && !self.warmup
    }

    /// Requests completed, without syncs.
    pub fn requests(&self) -> u64 {
        self.operations.moved().requests()
    }

    /// Bytes moved by all requests.
    pub fn bytes(&self) -> u64 {
        self.operations.moved().bytes()
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

    /// What most requests do; of operations with as many, the first.
    pub fn main_operation(&self) -> &OperationSummary {
        let requests = self.operations.iter();
        let (_, main) = requests
            .filter(|(operation, _)| operation.is_request())
            .reduce(|main, other| match other.1.requests > main.1.requests {
                true => other,
                false => main,
            })
            .expect("there are operations that are requests");
        main
    }
}
