//! What is told of the requests of a trial in a few numbers.

use crate::histogram::LatencyHistogram;
use crate::outcome::{Tally, Waits};

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

impl LatencySummary {
    /// Of a histogram; `None` where nothing was recorded.
    pub fn of(histogram: &LatencyHistogram) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        })
    }
}

impl Direction {
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
