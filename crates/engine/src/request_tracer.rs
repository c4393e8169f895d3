//! Records of the kernel's work for the requests of a trial: the interface of the instrument that makes and reads them.

use std::ops::Range;

use iolab_host::clock::Clock;
use iolab_host::tracing::Tracer;
use iolab_storage::Target;
use iolab_workload::Result;
use iolab_workload::stages::TraceSummary;
use iolab_workload::trial::TrialSpec;

pub use crate::worker::request_log::{NotedRequest, NotedRequests, NotedSync};

/// The tracer of requests of a program; `None` in a program without one.
pub type Tracing = Option<&'static RequestTracer>;

/// Joins the record of a trial with the requests that the workers of each of its jobs noted.
pub type JoinTrace =
    fn(&[NotedJob<'_>], &[Vec<NotedRequests>], Tracer, &Clock) -> Result<TracedJobs>;

/// An instrument that records the kernel's work for the requests of trials.
pub struct RequestTracer {
    /// Refuses a trial on a target where requests cannot be traced, with the reason.
    pub check: fn(&TrialSpec, &Target) -> Result<()>,
    /// Prepares to record the requests of a trial with these jobs; `None` if no job is traced.
    pub prepare: fn(&[NotedJob<'_>], &Clock) -> Result<Option<Tracer>>,
    /// Joins the record with the requests that the workers of each job noted.
    pub join: JoinTrace,
}

/// A group of workers in a trial.
pub struct NotedJob<'a> {
    /// Its settings.
    pub spec: &'a TrialSpec,
    /// Its files, each with the range of its bytes; the worker of number N uses file N modulo their number. None for the null backend.
    pub files: Vec<(&'a Target, Range<u64>)>,
}

/// Results of tracing by job, `None` for a job that was not traced, and over all jobs.
#[derive(Default)]
pub struct TracedJobs {
    /// Result of each job; none if no job was traced.
    pub each: Vec<Option<TraceSummary>>,
    /// Result over all jobs.
    pub all: Option<TraceSummary>,
}
