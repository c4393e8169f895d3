//! What one trial did: counted by the engine as it happened, never copied from what was asked.

use std::time::Duration;

use crate::counters::Counters;
use crate::cpus::Cpus;
use crate::histogram::{LatencyHistogram, new_latency_histogram};
use crate::named::named;
use crate::operation::{Moved, PerOperation};
pub use crate::region_state::Region;
use crate::request_sizes::RequestSizes;
use crate::series::Series;
use crate::stages::Traced;
use crate::verify::{FaultyData, Verified};

/// Requests of one operation.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Requests completed without error. Of syncs every `fsync` and `fdatasync` call, the final one included.
    pub requests: u64,
    /// Bytes transferred by them; 0 of syncs.
    pub bytes: u64,
    /// Times the kernel transferred less than asked and the request was continued.
    pub short_transfers: u64,
    /// Service time of every completed request, ns; empty when the trial did not record it. Where a sync follows a
    /// write (policies `each` and `fdatasync`), the write's includes it; of syncs only of those.
    pub latency: LatencyHistogram,
    /// What a rate shows of these requests; `None` in the closed loop.
    pub waits: Option<Waits>,
}

/// No request yet, with a histogram that is ready to record.
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

impl PerOperation<Tally> {
    /// Requests and bytes alone.
    #[inline]
    pub fn moved(&self) -> PerOperation<Moved> {
        self.as_ref().map(|tally| Moved {
            requests: tally.requests,
            bytes: tally.bytes,
        })
    }
}

/// What is recorded of requests that had an intended start, besides their service time.
#[derive(Debug, Clone)]
pub struct Waits {
    /// Response time: completion minus intended start, ns.
    pub response: LatencyHistogram,
    /// Lateness: submission minus intended start, ns.
    pub lateness: LatencyHistogram,
}

/// How a trial kept up with its rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateReport {
    /// Requests per second asked for.
    pub rate_wanted: f64,
    /// Requests per second submitted, until the time was up or the last one was submitted.
    pub rate_achieved: f64,
    /// Requests that were due and could not be submitted, because every slot was taken: the sum of the greatest
    /// number of each worker. With Poisson arrivals as expected from the mean gap.
    pub backlog_max: u64,
    /// The same when the time was up or the last request was submitted.
    pub backlog_end: u64,
}

impl RateReport {
    /// Of two workers together.
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

/// Why a trial failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A request of iolab's own.
    Request(FailedRequest),
    /// The program that the trial ran.
    Program(FailedProgram),
    /// The target does not hold what was written.
    Data(FaultyData),
    /// One of several processes.
    Rank(FailedRank),
}

/// What failed in one of the processes of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRank {
    /// The process and its host.
    pub place: String,
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// A program that did not end as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedProgram {
    /// Its name and arguments, as they were started.
    pub command: String,
    /// How it ended.
    pub end: ProgramEnd,
    /// The last that it wrote to its standard error; of one whose report is of no use, why that is so.
    pub last_words: String,
}

/// How a program ended that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit code, which is not 0.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed when its time was over.
    Time(Duration),
    /// It was killed when it had written more than this many bytes to its standard output.
    Output(usize),
    /// It ended well, but what it reports is of no use.
    Report,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRequest {
    /// The system call, for example `pwrite`.
    pub syscall: &'static str,
    /// Byte offset of the request.
    pub offset: u64,
    /// Bytes the request asked for.
    pub length: u64,
    /// The error number; 0 stands for an unexpected end of file.
    pub errno: i32,
}

/// Why a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The bytes, requests or the pass asked for are done.
    Done,
    /// The time bound was reached.
    Time,
    /// The stop flag was raised; the outcome is partial.
    Interrupted,
    /// A request or the program failed; the outcome is partial.
    Failed,
}

named! {
    /// How a ring of `io_uring` was set up.
    pub enum RingFlag: "ring flag" {
        /// A kernel thread polls the submission queue.
        Sqpoll = "sqpoll",
        /// One thread submits.
        SingleIssuer = "single_issuer",
        /// Completions are processed when they are asked for.
        DeferTaskrun = "defer_taskrun",
        /// Completions are processed when the thread enters the kernel.
        CoopTaskrun = "coop_taskrun",
        /// Completions are polled for.
        Iopoll = "iopoll",
        /// iolab looks for completions before it sleeps in the kernel, as long as that finds some.
        Spin = "spin",
    }
}

/// What was in effect, where that can differ from what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effective {
    /// `io_uring`: the file was registered.
    pub fixed_file: bool,
    /// `io_uring`: the buffers were registered.
    pub fixed_buffers: bool,
    /// `io_uring`: set-up flags in force, and whether iolab spins.
    pub ring: Vec<RingFlag>,
    /// Whether completions or submissions were polled for: CPU time is no sign of work then.
    pub polled: bool,
    /// Of a trial that another tool carried out: its version and its command line.
    pub command: Option<String>,
    /// Why something asked for is not in force; empty when all is.
    pub note: String,
}

/// What one trial did.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was done, by operation.
    pub operations: PerOperation<Tally>,
    /// Requests that failed; 1 for a program that did.
    pub errors: u64,
    /// The first failure.
    pub failure: Option<Failure>,
    /// Why it ended.
    pub ended: Ended,
    /// From the first worker's start to the last worker's end (final `fsync` included), ns; of a program from the
    /// call that starts it until its end is seen.
    pub elapsed_ns: u64,
    /// The span in which every worker was active, ns.
    pub all_active_ns: u64,
    /// Requests in flight on average while every worker was active, by Little's law (J. D. C. Little, Operations Research 9 (1961)
    /// 383-387): the times of each worker's requests over its span, added up. `None` where times were not recorded.
    pub in_flight: Option<f64>,
    /// The part of `elapsed_ns` that the final `fsync` of policy `end` took (longest worker), ns.
    pub end_sync_ns: u64,
    /// Time in which workers paused (think time, bursts), all of them together, ns; part of `elapsed_ns`.
    pub paused_ns: u64,
    /// Time-stamp counter against `CLOCK_MONOTONIC_RAW` over this trial, parts per million.
    pub clock_drift_ppm: f64,
    /// Kernel counters over the timed span.
    pub counters: Counters,
    /// The page cache and the file around the timed span.
    pub region: Region,
    /// Settings in force.
    pub effective: Effective,
    /// How the rate was kept up with; `None` in the closed loop.
    pub rate_report: Option<RateReport>,
    /// Requests and bytes over time.
    pub series: Series,
    /// What reading back has shown; `None` where it was not requested, or the trial did not come that far.
    pub verified: Option<Verified>,
    /// How many requests of each size were issued, where sizes were drawn from a mix.
    pub request_sizes: RequestSizes,
    /// The CPUs that workers were seen on: at the start, at the end, and at the end of every interval of the series.
    pub cpus_used: Cpus,
    /// Requests that could not be carried out without waiting, and were made again; `None` where none was tried so.
    pub waited: Option<u64>,
    /// What each group did, where the trial had several.
    pub groups: Vec<GroupOutcome>,
    /// What tracing showed; `None` where the trial was not traced.
    pub traced: Option<Traced>,
}

/// What one group of a trial did.
#[derive(Debug, Clone)]
pub struct GroupOutcome {
    /// Its number among the groups of the cell, from 1.
    pub group: u32,
    /// Its first worker's start, from that of the trial, ns.
    pub start_ns: u64,
    /// What its workers did. The counters are those that the kernel keeps per thread; it has no series.
    pub outcome: Outcome,
}

/// Nothing done, in no time, to its end.
impl Default for Outcome {
    fn default() -> Self {
        Self {
            operations: PerOperation::default(),
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
            verified: None,
            request_sizes: RequestSizes::default(),
            cpus_used: Cpus::default(),
            waited: None,
            groups: Vec::new(),
            traced: None,
        }
    }
}

impl Outcome {
    /// Requests completed, without syncs.
    pub fn requests(&self) -> u64 {
        self.operations.moved().requests()
    }

    /// Bytes moved by all requests.
    pub fn bytes(&self) -> u64 {
        self.operations.moved().bytes()
    }
}
