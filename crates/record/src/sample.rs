//! The result of one trial and of each of its parts, the settings in force, and the latency that is shown.

use std::fmt;

use crate::{DriveLog, Ended, Operation, RequestTime, RunRecord, ServedVerdict};
use iolab_workload::counters::Counters;
use iolab_workload::histogram::LatencyHistogram;
use iolab_workload::histogram::over_time::LatencyOverTime;
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::{Effective, OperationSummary, RateReport, RequestSizes};
use iolab_workload::region_state::{Region, Verified};
use iolab_workload::response::{Response, TrialTotals, iops, mb_s};
use iolab_workload::series::Series;
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::TraceSummary;
use iolab_workload::system_settings::Cpus;
use iolab_workload::trial::TrialSpec;

/// The result of one trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Row number in the file, in the order of time.
    pub id: i64,
    /// Number of the group, from 1; 0 for the whole trial.
    pub group: u32,
    /// The client, by its first rank. A client is a host, or a rank with its own target. 0 for the whole trial too.
    pub client: u32,
    /// The first start in the group or client, from the start of the trial, ns.
    pub start_ns: u64,
    /// The cell.
    pub cell: i64,
    /// Block number; block 0 is the warm-up.
    pub block: u32,
    /// Position within the block.
    pub position: u32,
    /// Whether summaries exclude it: the first trial of the cell, or made before finer sizes were added.
    pub warmup: bool,
    /// Whether it succeeded.
    pub ok: bool,
    /// Start, RFC 3339, UTC.
    pub started_utc: String,
    /// Requests by operation.
    pub operations: PerOperation<OperationSummary>,
    /// Requests whose direction the report of another tool does not give.
    pub unsplit: Moved,
    /// Number of requests of each size, if sizes were drawn from a mix.
    pub request_sizes: RequestSizes,
    /// Time in which workers were ready to run and waited for a CPU, added up, ns; `None` if it was not counted.
    pub run_delay_ns: Option<u64>,
    /// CPUs on which threads were seen; empty if that was not recorded.
    pub cpus_used: Cpus,
    /// Number of failed requests.
    pub errors: u64,
    /// First failure in words.
    pub failure: Option<String>,
    /// Reason for the end of the trial.
    pub ended: Ended,
    /// First start to last end, ns.
    pub elapsed_ns: u64,
    /// Time in which all workers were active, ns.
    pub all_active_ns: u64,
    /// Mean number of requests in flight while all workers were active; `None` if not recorded.
    pub in_flight: Option<f64>,
    /// Time of the final `fsync`, ns.
    pub end_sync_ns: u64,
    /// Sum of the pauses of all threads (think time), ns.
    pub paused_ns: u64,
    /// Time used from the budget: idle time, preparation, trial and evidence, ns.
    pub wall_ns: u64,
    /// Drift of the time-stamp counter against `CLOCK_MONOTONIC_RAW`, ppm; `None` if unknown.
    pub clock_drift_ppm: Option<f64>,
    /// Seed of this trial.
    pub seed: u64,
    /// Kernel counters over the timed span.
    pub counters: Counters,
    /// Page cache and extents around the timed span.
    pub region: Region,
    /// How well the rate was kept; `None` in the closed loop.
    pub rate_report: Option<RateReport>,
    /// Result of reading back; `None` if that was not done.
    pub verified: Option<Verified>,
    /// Summary of tracing; `None` if the trial was not traced.
    pub traced: Option<Box<TraceSummary>>,
    /// Settings in force that can differ from the requested ones.
    pub effective: Effective,
    /// The origin of the bytes.
    pub verdict: ServedVerdict,
    /// When its ranks were active; `None` for a single process.
    pub together: Option<RankActivity>,
    /// Counts of the drives below its targets; empty if no log could be read.
    pub drives: Vec<DriveLog>,
}

/// Identifies a part of a sample: one group on one rank with one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PartId {
    /// Number of the group; 0 for the cell itself.
    pub group: u32,
    /// The rank; 0 for the coordinating one.
    pub rank: u32,
    /// Number of the target; 0 is the run's own.
    pub target: u32,
}

/// The result of a part. Samples with a single part have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// The sample's row number in the file.
    pub sample: i64,
    /// The place of the part in the sample.
    pub id: PartId,
    /// Start of its first worker, from the start of the sample, ns.
    pub start_ns: u64,
    /// From the start of its first worker to the end of the last, ns.
    pub elapsed_ns: u64,
    /// Completed requests and bytes.
    pub done: PerOperation<Moved>,
    /// Number of failed requests.
    pub errors: u64,
}

/// Period in which the processes (ranks) of a trial were active, by the clock of rank 0, with their transfers while all
/// were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankActivity {
    /// Bound on the error of the time from the first start to the last end, ns, due to the clocks.
    pub elapsed_error_ns: u64,
    /// From the first worker's start to the last worker's start, ns.
    pub start_skew_ns: u64,
    /// Bound on its error, ns.
    pub start_skew_error_ns: u64,
    /// Lower bound on the bytes transferred while all were active.
    pub all_active_least_bytes: u64,
    /// Upper bound on the bytes transferred while all were active.
    pub all_active_most_bytes: u64,
}

/// Selects latencies of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LatencyOf {
    /// The operation of the requests.
    pub operation: Operation,
    /// Kind of time: service, response or lateness.
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

/// Name in exports: `read`, `read-response`, `write-lateness`.
impl fmt::Display for LatencyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity {
            RequestTime::Service => f.pad(self.operation.name()),
            quantity => f.pad(&format!("{}-{quantity}", self.operation)),
        }
    }
}

/// Time series of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleSeries {
    /// The sample's row number in the file.
    pub sample: i64,
    /// Its intervals, at least one.
    pub series: Series,
}

/// One latency histogram of a run file.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLatency {
    /// The sample.
    pub sample: i64,
    /// The part; all 0 for the whole sample or its only part.
    pub part: PartId,
    /// The operation, and which time.
    pub of: LatencyOf,
    /// Times, ns.
    pub histogram: LatencyHistogram,
}

/// The latencies of one operation of a trial, or of one of its groups, over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleLatencyOverTime {
    /// The sample.
    pub sample: i64,
    /// The group; 0 if the cell has none.
    pub group: u32,
    /// The operation.
    pub operation: Operation,
    /// Kind of time: response times at a rate, otherwise service times.
    pub quantity: RequestTime,
    /// The times, ns.
    pub latency: LatencyOverTime,
}

impl Sample {
    /// The value of a response in this trial, a latency of the requests that are `timed`; `None` if the trial has none.
    pub fn value(&self, response: Response, timed: ShownLatency) -> Option<f64> {
        let shown = timed.requests(self);
        response.of_trial(&TrialTotals {
            bytes: self.bytes(),
            requests: self.requests(),
            elapsed_ns: self.elapsed_ns,
            cpu_ns: self.cpu_ns(),
            timed: shown.requests,
            waited: shown.waited(),
        })
    }

    /// Copies the properties of the trial to a group's sample.
    pub fn complete_from(&mut self, trial: &Self) {
        self.take_place_of(trial);
        self.verdict = trial.verdict.clone();
    }

    /// Copies the properties of the trial to a client's sample.
    pub fn take_place_of(&mut self, trial: &Self) {
        self.cell = trial.cell;
        self.block = trial.block;
        self.position = trial.position;
        self.warmup = trial.warmup;
        self.ok = trial.ok;
        self.started_utc.clone_from(&trial.started_utc);
        self.clock_drift_ppm = trial.clock_drift_ppm;
    }

    /// Whether summaries include it: it succeeded and is not a warm-up.
    pub fn is_measured(&self) -> bool {
        self.ok && !self.warmup
    }

    /// Number of completed requests; excludes syncs.
    pub fn requests(&self) -> u64 {
        let split = self.operations.sum_of_requests(|own| own.requests);
        split.saturating_add(self.unsplit.requests)
    }

    /// Bytes transferred by all requests.
    pub fn bytes(&self) -> u64 {
        let split = self.operations.sum(|own| own.bytes);
        split.saturating_add(self.unsplit.bytes)
    }

    /// Throughput in MB/s (10^6 bytes per second) over the full span.
    pub fn throughput_mb_s(&self) -> f64 {
        mb_s(self.bytes(), self.elapsed_ns)
    }

    /// Requests per second over the full span.
    pub fn iops(&self) -> f64 {
        iops(self.requests(), self.elapsed_ns)
    }

    /// CPU time, user plus system, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.counters.usage.user_ns + self.counters.usage.system_ns
    }
}

impl ShownLatency {
    /// The requests of a trial whose latency is shown; without any if it has none of the operation.
    pub fn requests(self, sample: &Sample) -> &OperationSummary {
        &sample.operations[self.operation(sample)]
    }

    /// The operation of the shown requests.
    pub fn operation(self, sample: &Sample) -> Operation {
        match self {
            Self::Of(operation) => operation,
            Self::Own => {
                let all = Operation::ALL.iter().copied();
                let used = |operation: &Operation| {
                    operation.is_request() && sample.operations[*operation].requests > 0
                };
                all.clone().find(used).unwrap_or_default()
            }
        }
    }
}

impl Sample {
    /// Settings in force that can differ from the requested ones: `fixed_file,fixed_buffers,...; note`. For another tool's
    /// trial its command line comes before the note.
    pub fn effective_text(&self) -> String {
        let effective = &self.effective;
        let flags = [
            (effective.fixed_file, "fixed_file"),
            (effective.fixed_buffers, "fixed_buffers"),
        ];
        let flags = flags.into_iter().filter(|(on, _)| *on);
        let flags = flags.map(|(_, name)| name.to_owned());
        let ring = effective.ring.iter().map(ToString::to_string);
        let flags = flags.chain(ring).collect::<Vec<_>>().join(",");
        let parts = Some(flags).filter(|flags| !flags.is_empty());
        let parts: Vec<String> = parts.into_iter().chain(self.command_and_note()).collect();
        parts.join("; ")
    }

    /// The command line and the note, as far as there are any.
    fn command_and_note(&self) -> Option<String> {
        let command = self.effective.command.as_deref().unwrap_or_default();
        let text = format!("{command} {}", self.effective.note);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The version and the command line of another tool's trial, with what there is to say of it.
    pub fn command(&self) -> Option<String> {
        self.effective.command.as_ref()?;
        self.command_and_note()
    }
}

/// The requests whose latency the trials of a run show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShownLatency {
    /// The latency of each trial's own requests: no trial mixes several operations.
    #[default]
    Own,
    /// The latency of requests with this operation, which some trials may lack: some mix several operations.
    Of(Operation),
}

impl ShownLatency {
    /// The shown latency of the cells of a run: of their whole trials (0), or of a group with this number. If the settings
    /// of any cell mix several operations, all cells show the first of these, so that no two are compared by different
    /// ones. Counts, which chance decides, do not matter.
    pub fn of<'a>(cells: impl Iterator<Item = &'a CellSpec>, group: u32) -> Self {
        let trials = cells.filter_map(|spec| {
            let own = match group {
                // All groups together have no latency.
                0 => (!spec.has_groups()).then_some(spec),
                group => spec.groups.get(group as usize - 1).map(|group| &group.spec),
            };
            Some(&own.filter(|own| !own.runs_program())?.trial)
        });
        let several = trials.filter_map(|trial| {
            let all = Operation::ALL.iter().copied();
            let mut asked = all.filter(|operation| trial.requests(*operation));
            let first = asked.next()?;
            asked.next().map(|_| first)
        });
        several.min().map_or(Self::Own, Self::Of)
    }

    /// Whether the settings of a trial ask for requests of this operation.
    pub fn is_asked(self, trial: &TrialSpec) -> bool {
        match self {
            Self::Own => true,
            Self::Of(operation) => trial.requests(operation),
        }
    }

    /// The name of the shown quantity, such as `latency`, with the operation if there is a choice: `latency of reads`.
    pub fn subject(self, what: &str) -> String {
        match self {
            Self::Own => what.to_owned(),
            Self::Of(operation) => format!("{what} of {operation}s"),
        }
    }
}

impl RunRecord {
    /// The requests whose latency the whole trials show (0), or a group of this number.
    pub fn timed(&self, group: u32) -> ShownLatency {
        ShownLatency::of(self.cells.iter().map(|cell| &cell.spec), group)
    }

    /// The requests whose latency is shown for the group that the experiment asks about, or for whole trials.
    pub fn asked_timed(&self) -> ShownLatency {
        self.timed(self.asked_group().unwrap_or(0))
    }
}
