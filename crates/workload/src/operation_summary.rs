//! Summary of the requests of a trial.

use serde::{Deserialize, Serialize};

pub use iolab_latency::LatencySummary;

use crate::histogram::LatencyHistogram;
use crate::operation::{Moved, PerOperation};
use crate::outcome::{Tally, Waits};

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
    pub latency: Option<LatencySummary>,
    /// Response time: completion minus intended start. `None` in the closed loop.
    pub response: Option<LatencySummary>,
    /// Submission minus intended start. `None` in the closed loop.
    pub lateness: Option<LatencySummary>,
}

impl OperationSummary {
    /// The summary of a tally.
    pub fn of(tally: &Tally) -> Self {
        let waits = |of: fn(&Waits) -> &LatencyHistogram| {
            let waits = tally.waits.as_ref()?;
            LatencySummary::of(of(waits))
        };
        Self {
            requests: tally.requests,
            bytes: tally.bytes,
            short_transfers: tally.short_transfers,
            latency: LatencySummary::of(&tally.latency),
            response: waits(|waits| &waits.response),
            lateness: waits(|waits| &waits.lateness),
        }
    }

    /// The times that the issuer waited for requests: response times if there is an intended start, otherwise service times.
    pub fn waited(&self) -> Option<LatencySummary> {
        self.response.or(self.latency)
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
