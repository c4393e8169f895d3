//! The result for a level, and why it may be open.

use iolab_workload::service_level::ServiceLevel;

use super::Answer;

/// A lasting change of the limited quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Time under load before it, ns.
    pub after_ns: u64,
    /// Bytes transferred before it.
    pub after_bytes: u64,
    /// The median over the trials before.
    pub from: f64,
    /// The median over the trials after.
    pub to: f64,
}

/// The result for a level.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The level.
    pub level: ServiceLevel,
    /// The limited quantity, in ns, requests/s or MB/s; `None` without requests.
    pub estimate: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end; also `None` with too few requests for one.
    pub high: Option<f64>,
    /// Number of requests.
    pub requests: u64,
    /// Number of trials.
    pub trials: usize,
    /// Whether the level holds, before doubts.
    pub answer: Answer,
    /// Why that is unknown; `None` where it is known.
    pub open: Option<Open>,
    /// The last lasting change over the trials.
    pub change: Option<Change>,
}

/// Why the answer to a level is unknown, before doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// No request of the limited kind was measured.
    NoRequest,
    /// Fewer trials than an interval takes.
    FewTrials {
        /// Number of trials.
        trials: usize,
        /// Least number for an interval.
        needed: usize,
    },
    /// Too few requests for an interval.
    FewRequests {
        /// Number of requests.
        requests: u64,
        /// Number of trials that they are from.
        trials: usize,
    },
    /// All are below the level, but too few to bound the longest time.
    FewForMaximum {
        /// Number of requests.
        requests: u64,
    },
    /// Too few requests for an upper end of the interval.
    FewForUpperEnd {
        /// Number of requests.
        requests: u64,
    },
    /// The whole interval lies within [`MARGIN`](super::MARGIN) of the level.
    WithinMargin,
    /// The level lies in the interval, or within [`MARGIN`](super::MARGIN) of it.
    InInterval,
}
