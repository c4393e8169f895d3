//! Clients: ranks that share caches. They are the ranks of a host; where each rank has a target of its own, every one by itself.

use iolab_workload::counters::{Counters, SharedAccounts};
use iolab_workload::medium::Medium;
use iolab_workload::operation::PerOperation;
use iolab_workload::operation_summary::{LatencySummary, OperationSummary};
use iolab_workload::region_state::Region;

use crate::wire::{Reader, Wire, Writer, wired};

/// What the ranks of a client did in a trial, and what was seen there. Latencies are those of all of them, merged before their
/// quantiles are taken; on the way to the root these take less room than histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    /// The first of its ranks.
    pub rank: u64,
    /// What answers for the bytes of the target.
    pub medium: Medium,
    /// Bytes that its ranks look at.
    pub region_bytes: u64,
    /// What they did, by operation.
    pub operations: PerOperation<OperationSummary>,
    /// Requests that failed.
    pub errors: u64,
    /// What was counted.
    pub counters: Counters,
    /// Which of that is also that of other clients.
    pub shared: SharedAccounts,
    /// What was seen of the bytes that its ranks look at.
    pub region: Region,
}

/// The ranks among `roster` that have the same as `rank`, for example the same client, where `of_ranks` says it of all ranks.
pub fn members<T: PartialEq>(of_ranks: &[T], roster: &[usize], rank: usize) -> Vec<usize> {
    let same = |other: &&usize| of_ranks.get(**other) == of_ranks.get(rank);
    roster.iter().filter(same).copied().collect()
}

wired! {
    Client {
        rank, medium, region_bytes, operations, errors, counters, shared, region,
    }
    OperationSummary { requests, bytes, short_transfers, latency, response, lateness }
    LatencySummary { mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, p99999_ns, max_ns }
}

impl Wire for Medium {
    fn write(&self, to: &mut Writer) {
        to.text(self.name());
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.text()?.parse().ok()
    }
}
