//! What is told of the requests of a trial in a few numbers.

pub use iolab_latency::LatencySummary;

use crate::histogram::LatencyHistogram;
use crate::operation::{Moved, PerOperation};
use crate::outcome::{Tally, Waits};

/// Requests of one operation in a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationSummary {
    /// Requests completed; of syncs every `fsync` and `fdatasync` call, the final one included.
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

impl OperationSummary {
    /// What was counted.
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

    /// What whoever made the requests waited for them: their response time where they had an intended start, else
    /// their service time.
    pub fn waited(&self) -> Option<LatencySummary> {
        self.response.or(self.latency)
    }
}

impl PerOperation<OperationSummary> {
    /// What was counted.
    pub fn of(tallies: &PerOperation<Tally>) -> Self {
        tallies.as_ref().map(OperationSummary::of)
    }

    /// Requests and bytes alone.
    pub fn moved(&self) -> PerOperation<Moved> {
        self.as_ref().map(|summary| Moved {
            requests: summary.requests,
            bytes: summary.bytes,
        })
    }
}
