//! The result of one trial, of a worker or group of it, as the engine counted it; its sum, and its summary.

use std::str::FromStr;
use std::time::Duration;
use std::{fmt, mem};

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, SharedAccounts, either};
use crate::error::{Error, Result};
use crate::histogram::over_time::LatencyOverTime;
use crate::histogram::{LatencyHistogram, add_few, new_latency_histogram};
use crate::names::named;
use crate::operation::{Moved, PerOperation};
pub use crate::region_state::Region;
use crate::region_state::{FaultyData, Medium, Verified};
pub use crate::response::LatencySummary;
use crate::series::Series;
use crate::stages::TraceSummary;
use crate::system_settings::Cpus;

/// The requests of one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// Number of requests completed without error; for syncs, of `fsync` and `fdatasync` calls including the final one.
    pub requests: u64,
    /// Bytes transferred by them; 0 for syncs.
    pub bytes: u64,
    /// Number of times the kernel transferred less than requested and the request was continued.
    pub short_transfers: u64,
    /// Service time of every completed request, ns; empty if the trial does not record it. A sync that follows a write
    /// (policies `each` and `fdatasync`) is part of the write's time; the histogram of syncs holds only these syncs.
    #[serde(with = "crate::histogram::as_counts")]
    pub latency: LatencyHistogram,
    /// Times in relation to the rate; `None` in the closed loop.
    pub waits: Option<Waits>,
}

/// No requests, with a histogram ready for recording.
impl Default for Tally {
    fn default() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            short_transfers: 0,
            latency: new_latency_histogram(),
            waits: None,
        }
    }
}

impl Tally {
    /// Adds the requests of another tally, and gives their total time, ns.
    fn add(&mut self, part: &Self) -> f64 {
        self.requests += part.requests;
        self.bytes += part.bytes;
        self.short_transfers += part.short_transfers;
        match (&mut self.waits, &part.waits) {
            (Some(Waits { response, lateness }), Some(part)) => {
                add_few(response, &part.response);
                add_few(lateness, &part.lateness);
            }
            (waits @ None, part) => waits.clone_from(part),
            (Some(_), None) => {}
        }
        add_few(&mut self.latency, &part.latency)
    }
}

impl PerOperation<Tally> {
    /// Requests and bytes only.
    #[inline]
    pub fn moved(&self) -> PerOperation<Moved> {
        self.as_ref().map(|tally| Moved {
            requests: tally.requests,
            bytes: tally.bytes,
        })
    }
}

/// Times of requests that had an intended start, in addition to their service time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Waits {
    /// Response time: completion minus intended start, ns.
    #[serde(with = "crate::histogram::as_counts")]
    pub response: LatencyHistogram,
    /// Lateness: submission minus intended start, ns.
    #[serde(with = "crate::histogram::as_counts")]
    pub lateness: LatencyHistogram,
}

/// Share of the requests due that a worker makes up for after its time is up.
pub const MADE_UP: f64 = 0.03;

/// How well a trial kept its rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RateReport {
    /// Requested rate, requests per second.
    pub rate_wanted: f64,
    /// Achieved rate, requests submitted per second until the time limit or the last submission.
    pub rate_achieved: f64,
    /// Most requests that were due but not submitted because all slots were in use: the sum of each worker's maximum. With
    /// Poisson arrivals, estimated from the mean gap.
    pub backlog_max: u64,
    /// Number of requests due but not submitted at the time limit or the last submission.
    pub backlog_end: u64,
}

impl RateReport {
    /// Requests that were due and never issued, for a trial that made `made` requests. A backlog of at most [`MADE_UP`] of
    /// all is completed after the end, so none of it counts.
    pub fn abandoned(&self, made: u64) -> u64 {
        let due = made.saturating_add(self.backlog_end) as f64;
        match self.backlog_end as f64 > MADE_UP * due {
            true => self.backlog_end,
            false => 0,
        }
    }

    /// The sum of two workers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            rate_wanted: self.rate_wanted + other.rate_wanted,
            rate_achieved: self.rate_achieved + other.rate_achieved,
            backlog_max: self.backlog_max + other.backlog_max,
            backlog_end: self.backlog_end + other.backlog_end,
        }
    }
}

/// Cause of a trial's failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// A request of iolab; between ranks a [`FailedRank`], as the next two.
    #[serde(skip)]
    Request(FailedRequest),
    /// The program of the trial.
    #[serde(skip)]
    Program(FailedProgram),
    /// The target holds other data than was written.
    #[serde(skip)]
    Data(FaultyData),
    /// One of several processes.
    Rank(FailedRank),
}

impl Failure {
    /// Error number of the failed request, in whichever process; `None` if no request failed.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Request(failed) => Some(failed.errno),
            Self::Rank(failed) => failed.errno,
            Self::Program(_) | Self::Data(_) => None,
        }
    }
}

/// A failure in one of the processes of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRank {
    /// The process and its host, in words.
    pub place: String,
    /// The error message.
    pub message: String,
    /// Advice to the user.
    pub remedy: String,
    /// Error number of the request that failed; `None` if no request did.
    pub errno: Option<i32>,
}

/// A program that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedProgram {
    /// Name and arguments of the program.
    pub command: String,
    /// How it ended.
    pub end: ProgramEnd,
    /// The last output on its standard error; or why its report is unusable.
    pub last_words: String,
}

/// How a program that failed ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// Exit code other than 0.
    Code(i32),
    /// Number of the signal that ended it.
    Signal(i32),
    /// Killed at its time limit.
    Time(Duration),
    /// Killed because it wrote more than this many bytes to its standard output.
    Output(usize),
    /// Success without a usable report.
    Report,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRequest {
    /// Name of the system call, for example `pwrite`.
    pub syscall: &'static str,
    /// Byte offset of the request.
    pub offset: u64,
    /// Bytes requested.
    pub length: u64,
    /// Error number; 0 for an unexpected end of file.
    pub errno: i32,
}

named! {
    /// The end of a trial, ordered by gravity. If workers or processes end differently, the greatest value counts.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Ended: "end of a trial" {
        /// The requested bytes or requests, or the pass, are complete.
        #[default]
        Done = "done",
        /// The time limit.
        Time = "time",
        /// The stop flag; the outcome is partial.
        Interrupted = "interrupted",
        /// A request or the program failed; the outcome is partial.
        Failed = "failed",
    }
}

impl Ended {
    /// Whether it completed its work.
    pub fn is_whole(self) -> bool {
        match self {
            Self::Done | Self::Time => true,
            Self::Interrupted | Self::Failed => false,
        }
    }
}

named! {
    /// Flags with which a ring of `io_uring` was set up.
    pub enum RingFlag: "ring flag" {
        /// A kernel thread polls the submission queue.
        Sqpoll = "sqpoll",
        /// Only one thread submits.
        SingleIssuer = "single_issuer",
        /// Completions are processed when they are requested.
        DeferTaskrun = "defer_taskrun",
        /// Completions are processed when the thread enters the kernel.
        CoopTaskrun = "coop_taskrun",
        /// Completions are polled for.
        Iopoll = "iopoll",
        /// iolab polls for completions before it sleeps in the kernel, as long as that succeeds.
        Spin = "spin",
    }
}

/// Settings in effect, if they can differ from the requested ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effective {
    /// `io_uring`: the file was registered.
    pub fixed_file: bool,
    /// `io_uring`: the buffers were registered.
    pub fixed_buffers: bool,
    /// `io_uring`: flags in effect, and whether iolab spins.
    pub ring: Vec<RingFlag>,
    /// Whether completions or submissions were polled for; CPU time then does not measure work.
    pub polled: bool,
    /// Version and command line of another tool that carried out the trial.
    pub command: Option<String>,
    /// Why a requested setting is not in effect; empty when all are.
    pub note: String,
}

impl Effective {
    /// Adds to the note; an empty text adds nothing.
    pub fn add_note(&mut self, text: &str) {
        if !self.note.is_empty() && !text.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
    }
}

/// The result of one trial; by default of one without requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Requests by operation.
    pub operations: PerOperation<Tally>,
    /// Number of failed requests; 1 for a failed program.
    pub errors: u64,
    /// The first failure.
    pub failure: Option<Failure>,
    /// The end of the trial.
    pub ended: Ended,
    /// From the start of the first worker to the end of the last one, including the final `fsync`, ns; for a program, from the
    /// call that starts it until its end is noticed.
    pub elapsed_ns: u64,
    /// Time in which all workers were active, ns.
    pub all_active_ns: u64,
    /// Mean number of requests in flight while all workers were active, by Little's law (J. D. C. Little, Operations Research 9
    /// (1961) 383-387): the sum over workers of their request times divided by their span. `None` if times were not recorded.
    pub in_flight: Option<f64>,
    /// Part of `elapsed_ns` that the final `fsync` of policy `end` took, of the slowest worker, ns.
    pub end_sync_ns: u64,
    /// Sum of the pauses of all workers (think time, bursts), ns; part of `elapsed_ns`.
    pub paused_ns: u64,
    /// Drift of the time-stamp counter against `CLOCK_MONOTONIC_RAW` during this trial, parts per million.
    pub clock_drift_ppm: f64,
    /// Kernel counters over the timed span.
    pub counters: Counters,
    /// Page cache and extents around the timed span.
    pub region: Region,
    /// Settings in effect.
    #[serde(skip)]
    pub effective: Effective,
    /// How well the rate was kept; `None` in the closed loop.
    pub rate_report: Option<RateReport>,
    /// Requests and bytes over time.
    pub series: Series,
    /// Latencies over time: response times at a rate, else service times; empty for operations without requests. `None` if the trial
    /// does not keep them.
    pub latency_over_time: Option<PerOperation<LatencyOverTime>>,
    /// Result of reading back; `None` if it was not requested, or the trial failed before.
    pub verified: Option<Verified>,
    /// Number of requests of each size, if sizes were drawn from a mix.
    pub request_sizes: RequestSizes,
    /// CPUs on which workers were seen: at the start, at the end, and at the end of every interval of the series.
    pub cpus_used: Cpus,
    /// Sum of the times in which workers were ready to run and waited for a CPU, ns; `None` if the kernel does not count it, and for
    /// several ranks.
    pub run_delay_ns: Option<u64>,
    /// The result of each group, if the trial had several.
    #[serde(skip)]
    pub groups: Vec<GroupOutcome>,
    /// Result of tracing; `None` if the trial was not traced.
    #[serde(skip)]
    pub traced: Option<TraceSummary>,
}

/// The result of one group of a trial.
#[derive(Debug, Clone)]
pub struct GroupOutcome {
    /// Its number among the groups of the cell, from 1.
    pub group: u32,
    /// Start of its first worker, from the start of the trial, ns.
    pub start_ns: u64,
    /// The result of its workers, with the counters that the kernel keeps per thread, and without a series.
    pub outcome: Outcome,
}

/// The result of one client of a trial by several processes (ranks). Latencies of all its ranks are merged before quantiles are
/// taken; quantiles take less room than histograms on the way to the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientOutcome {
    /// First rank of the client.
    pub rank: u32,
    /// Start of its first worker, from the start of the trial, ns; known at the root.
    pub start_ns: u64,
    /// From the start of its first worker to the end of the last, ns; known at the root.
    pub elapsed_ns: u64,
    /// Medium that holds the bytes of the target.
    pub medium: Medium,
    /// Bytes of the target that its ranks observe.
    pub region_bytes: u64,
    /// Results by operation.
    pub operations: PerOperation<OperationSummary>,
    /// Number of failed requests.
    pub errors: u64,
    /// Counters of the client.
    pub counters: Counters,
    /// Accounts that other clients read too.
    pub shared: SharedAccounts,
    /// State of the bytes that its ranks observe.
    pub region: Region,
}

impl Default for Outcome {
    fn default() -> Self {
        Self::of(PerOperation::default())
    }
}

impl Outcome {
    /// The outcome of a trial with these requests, in which nothing else was counted. Each field is named, since the default has
    /// histograms that a worker would fill with zeros before each trial.
    pub fn of(operations: PerOperation<Tally>) -> Self {
        Self {
            operations,
            errors: 0,
            failure: None,
            ended: Ended::Done,
            elapsed_ns: 0,
            all_active_ns: 0,
            in_flight: None,
            end_sync_ns: 0,
            paused_ns: 0,
            clock_drift_ppm: 0.0,
            counters: Counters::default(),
            region: Region::default(),
            effective: Effective::default(),
            rate_report: None,
            series: Series::default(),
            latency_over_time: None,
            verified: None,
            request_sizes: RequestSizes::default(),
            cpus_used: Cpus::default(),
            run_delay_ns: None,
            groups: Vec::new(),
            traced: None,
        }
    }

    /// Adds what another worker, group or rank of the trial did, and gives the total time of its requests, ns. What is measured for
    /// several of them at once is not added: the times of the trial, the counters of the kernel, the state of the region.
    pub fn add(&mut self, part: &Self) -> PerOperation<f64> {
        self.errors += part.errors;
        self.failure = self.failure.take().or_else(|| part.failure.clone());
        self.ended = self.ended.max(part.ended);
        self.in_flight = self.in_flight.zip(part.in_flight).map(|(a, b)| a + b);
        self.end_sync_ns = self.end_sync_ns.max(part.end_sync_ns);
        self.paused_ns += part.paused_ns;
        self.rate_report = either(RateReport::plus)(self.rate_report, part.rate_report);
        self.series = mem::take(&mut self.series).plus(part.series.clone());
        let over_time = self.latency_over_time.take();
        let plus = |a: PerOperation<LatencyOverTime>, b| a.zip(b, LatencyOverTime::plus);
        self.latency_over_time = either(plus)(over_time, part.latency_over_time.clone());
        self.verified = either(Verified::plus)(self.verified, part.verified);
        self.request_sizes = mem::take(&mut self.request_sizes).plus(part.request_sizes.clone());
        self.cpus_used = self.cpus_used.plus(&part.cpus_used);
        self.run_delay_ns = either(|a, b| a + b)(self.run_delay_ns, part.run_delay_ns);
        let (sums, parts) = (self.operations.as_mut(), part.operations.as_ref());
        sums.zip(parts, Tally::add)
    }

    /// Number of completed requests; excludes syncs.
    pub fn requests(&self) -> u64 {
        self.operations.sum_of_requests(|own| own.requests)
    }

    /// Bytes transferred by all requests.
    pub fn bytes(&self) -> u64 {
        self.operations.sum(|own| own.bytes)
    }
}

/// Summary of the requests of one operation in a sample.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationSummary {
    /// Number of completed requests; for syncs, of `fsync` and `fdatasync` calls including the final one.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Number of transfers that the kernel cut short and iolab continued.
    pub short_transfers: u64,
    /// Service time: completion minus submission. `None` without requests.
    pub latency: Option<Box<LatencySummary>>,
    /// Response time: completion minus intended start. `None` in the closed loop.
    pub response: Option<Box<LatencySummary>>,
    /// Submission minus intended start. `None` in the closed loop.
    pub lateness: Option<Box<LatencySummary>>,
}

impl OperationSummary {
    /// The summary of a tally.
    pub fn of(tally: &Tally) -> Self {
        let summary = |times| LatencySummary::of(times).map(Box::new);
        let waits = tally.waits.as_ref();
        Self {
            requests: tally.requests,
            bytes: tally.bytes,
            short_transfers: tally.short_transfers,
            latency: summary(&tally.latency),
            response: waits.and_then(|waits| summary(&waits.response)),
            lateness: waits.and_then(|waits| summary(&waits.lateness)),
        }
    }

    /// The times that the issuer waited for requests: response times if there is an intended start, otherwise service times.
    pub fn waited(&self) -> Option<&LatencySummary> {
        self.response.as_deref().or(self.latency.as_deref())
    }
}

impl PerOperation<OperationSummary> {
    /// The summaries of all tallies.
    pub fn of(tallies: &PerOperation<Tally>) -> Self {
        tallies.as_ref().map(OperationSummary::of)
    }

    /// Requests and bytes only.
    pub fn moved(&self) -> PerOperation<Moved> {
        self.as_ref().map(|summary| Moved {
            requests: summary.requests,
            bytes: summary.bytes,
        })
    }
}

/// Number of requests of one direction and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Whether these are reads.
    pub reads: bool,
    /// Size of each, bytes.
    pub bytes: u64,
    /// Number of requests issued.
    pub requests: u64,
}

/// The sizes of requests, if they were drawn; empty if all have the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestSizes(Vec<SizeCount>);

impl RequestSizes {
    /// Leaves out sizes without requests, and adds up counts of the same.
    pub fn new(counts: impl IntoIterator<Item = SizeCount>) -> Self {
        let issued = counts.into_iter().filter(|count| count.requests > 0);
        let mut counts: Vec<SizeCount> = issued.collect();
        counts.sort_by_key(|count| (!count.reads, count.bytes));
        counts.dedup_by(|count, before| {
            let is_same = (count.reads, count.bytes) == (before.reads, before.bytes);
            if is_same {
                before.requests = before.requests.saturating_add(count.requests);
            }
            is_same
        });
        Self(counts)
    }

    /// Reads, then writes, each by size.
    pub fn counts(&self) -> &[SizeCount] {
        &self.0
    }

    /// The sum of two workers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.0.into_iter().chain(other.0))
    }
}

/// `read 4096 601,read 65536 299,write 4096 100`: direction, bytes, requests.
impl fmt::Display for RequestSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |count: &SizeCount| {
            let direction = if count.reads { "read" } else { "write" };
            format!("{direction} {} {}", count.bytes, count.requests)
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        f.write_str(&all.join(","))
    }
}

impl FromStr for RequestSizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let one = |text: &str| {
            let mut words = text.split(' ');
            let reads = match words.next()? {
                "read" => true,
                "write" => false,
                _ => return None,
            };
            let mut number = || words.next()?.parse().ok();
            let (bytes, requests) = (number()?, number()?);
            words.next().is_none().then_some(SizeCount {
                reads,
                bytes,
                requests,
            })
        };
        let parts = text.split(',').filter(|part| !part.is_empty());
        let counts: Option<Vec<SizeCount>> = parts.map(one).collect();
        counts.map(Self::new).ok_or_else(|| {
            Error::usage(format!("'{text}' are not counts of requests by size"))
                .hint("write for example: read 4096 601,write 65536 299")
        })
    }
}
