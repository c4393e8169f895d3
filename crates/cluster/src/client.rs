//! Clients: ranks that share caches. All ranks of a host are one client; where each rank has its own target,
//! every rank is one.

use iolab_workload::counters::{Counters, SharedAccounts};
use iolab_workload::medium::Medium;
use iolab_workload::operation::PerOperation;
use iolab_workload::operation_summary::OperationSummary;
use iolab_workload::region_state::Region;

use serde::{Deserialize, Serialize};

/// Results and observations of a client's ranks in a trial. Latencies of all its ranks are merged before
/// quantiles are taken; quantiles take less room than histograms on the way to the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// First rank of the client.
    pub rank: u64,
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

/// Ranks among `roster` with the same value as `rank`, such as the same client; `of_ranks` has the values of
/// all ranks.
pub fn members<T: PartialEq>(of_ranks: &[T], roster: &[usize], rank: usize) -> Vec<usize> {
    let same = |other: &&usize| of_ranks.get(**other) == of_ranks.get(rank);
    roster.iter().filter(same).copied().collect()
}
