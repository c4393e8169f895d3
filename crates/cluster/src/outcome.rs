//! Outcome of a trial on its way up the tree: counts are added, latencies merged bucket by bucket.
//!
//! Kernel counts for a whole host come from one rank of each host. Counts of a device come from one rank of
//! those that use it there, so that they are not counted several times.

use iolab_workload::counters::{Counters, DeviceStat, NfsIo, Pressure, ProcessIo, SharedAccounts};
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::OperationSummary;
use iolab_workload::outcome::{Outcome, either};
use iolab_workload::region_state::Medium;
use iolab_workload::region_state::{Extents, Region, Residency};
use serde::{Deserialize, Serialize};

use crate::clock::{ClockJumped, OtherClock, TimeInterval};
use crate::collectives::Gathered;
use crate::shared_counters;
use crate::shared_counters::{AccountShare, Shares};

/// Part of one rank in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPart {
    /// Number of the rank.
    pub rank: u64,
    /// Start of its first worker.
    pub started: TimeInterval,
    /// End of its last worker.
    pub ended: TimeInterval,
    /// Completed operations.
    pub done: PerOperation<Moved>,
    /// Number of failed requests.
    pub errors: u64,
}

/// Part of some ranks in a trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialContribution {
    /// Joint outcome. Active settings and clock drift are the first rank's.
    pub outcome: Outcome,
    /// Kernel accounts included in the outcome.
    pub shares: Shares,
    /// Whether each rank observes separate bytes; otherwise all observe the same region.
    pub apart: bool,
    /// Bytes that they observe.
    pub region_bytes: u64,
    /// Part of each rank.
    pub parts: Vec<RankPart>,
    /// Results and observations of each client whose first rank is included.
    pub clients: Vec<Client>,
}

impl TrialContribution {
    /// Client whose ranks are exactly these; the first of them is `rank`.
    pub fn client(&self, rank: usize, medium: Medium, shared: SharedAccounts) -> Client {
        let outcome = &self.outcome;
        Client {
            rank: rank as u64,
            medium,
            region_bytes: self.region_bytes,
            operations: PerOperation::of(&outcome.operations),
            errors: outcome.errors,
            counters: outcome.counters,
            shared,
            region: outcome.region,
        }
    }
}

impl Gathered for TrialContribution {
    fn seen_through(mut self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        for part in &mut self.parts {
            part.started = clock.interval_here(part.started)?;
            part.ended = clock.interval_here(part.ended)?;
        }
        Ok(self)
    }

    fn join(self, other: Self) -> Self {
        let counters = counters(
            (self.outcome.counters, self.shares),
            (other.outcome.counters, other.shares),
        );
        let region = region(self.outcome.region, other.outcome.region, self.apart);
        let cached = |outcome: &Outcome| outcome.verified?.cached_bytes;
        // Of the same region.
        let cached = both(cached(&self.outcome), cached(&other.outcome), u64::max);
        let mut outcome = self.outcome;
        outcome.add(&other.outcome);
        if let Some(verified) = &mut outcome.verified {
            verified.cached_bytes = cached;
        }
        outcome.counters = counters;
        outcome.region = region;
        // A share of the workers' time, and the number of workers is one rank's.
        outcome.run_delay_ns = None;
        let mut parts = self.parts;
        parts.extend(other.parts);
        let mut clients = self.clients;
        clients.extend(other.clients);
        Self {
            outcome,
            shares: self.shares.with(other.shares),
            apart: self.apart,
            region_bytes: match self.apart {
                true => self.region_bytes + other.region_bytes,
                false => self.region_bytes.max(other.region_bytes),
            },
            parts,
            clients,
        }
    }
}

/// Joins two values; unknown if one is unknown.
fn both<T>(a: Option<T>, b: Option<T>, plus: impl Fn(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| plus(a, b))
}

/// Counters of two ranks, each with its shares in the accounts.
fn counters((a, a_adds): (Counters, Shares), (b, b_adds): (Counters, Shares)) -> Counters {
    Counters {
        process_io: both(a.process_io, b.process_io, ProcessIo::plus),
        nfs: shared_counters::sum((a.nfs, a_adds.nfs), (b.nfs, b_adds.nfs), NfsIo::plus),
        usage: a.usage.plus(b.usage),
        device: shared_counters::sum(
            (a.device, a_adds.device),
            (b.device, b_adds.device),
            DeviceStat::plus,
        ),
        bottom: shared_counters::sum_of_disks((a.bottom, a_adds.disks), (b.bottom, b_adds.disks)),
        hardware: a.hardware.plus(b.hardware),
        pressure: Pressure {
            // Each process of a host also counts this for itself: a user can stop one of them.
            suspended_ns: either(a.pressure.suspended_ns, b.pressure.suspended_ns, u64::max),
            ..match (a_adds.host, b_adds.host) {
                (_, AccountShare::Nothing) => a.pressure,
                (AccountShare::Nothing, _) => b.pressure,
                _ => a.pressure.worst(b.pressure),
            }
        },
        buffer_piece_bytes: both(a.buffer_piece_bytes, b.buffer_piece_bytes, u64::min),
        drive_millidegrees: either(a.drive_millidegrees, b.drive_millidegrees, u64::max),
    }
}

/// Observations of two ranks: of separate bytes, or of the same region, where the higher page-cache reading
/// counts.
fn region(a: Region, b: Region, apart: bool) -> Region {
    Region {
        before: both(a.before, b.before, |a, b| residency(a, b, apart)),
        after: both(a.after, b.after, |a, b| residency(a, b, apart)),
        extents: both(a.extents, b.extents, |a, b| match apart {
            true => Extents {
                looked_bytes: a.looked_bytes + b.looked_bytes,
                hole_bytes: a.hole_bytes + b.hole_bytes,
                unwritten_bytes: both(a.unwritten_bytes, b.unwritten_bytes, |a, b| a + b),
            },
            false => a,
        }),
        owed_sync_ns: either(a.owed_sync_ns, b.owed_sync_ns, u64::max),
        evidence_ns: a.evidence_ns.max(b.evidence_ns),
    }
}

fn residency(a: Residency, b: Residency, apart: bool) -> Residency {
    match apart {
        true => Residency {
            looked_bytes: a.looked_bytes + b.looked_bytes,
            resident_bytes: a.resident_bytes + b.resident_bytes,
            dirty_bytes: both(a.dirty_bytes, b.dirty_bytes, |a, b| a + b),
            writeback_bytes: both(a.writeback_bytes, b.writeback_bytes, |a, b| a + b),
        },
        false if a.resident_bytes >= b.resident_bytes => a,
        false => b,
    }
}

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
