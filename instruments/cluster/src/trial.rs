//! One trial by all ranks: a common start, and its outcome on the way to the root, where counts are added and latencies
//! merged bucket by bucket.
//!
//! Kernel counts for a whole host come from one rank of each host. Counts of a device come from one rank of
//! those that use it there, so that they are not counted several times.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{Activity, Bounded, ClockJumped, CumulativeBytes, OtherClock, TimeInterval};
use crate::link::{self, Gathered, Link, LossReason, LostRank, Team};
use crate::shared_counters::{self, AccountShare, Shares};
use iolab_workload::Error;
use iolab_workload::counters::{
    Counters, DeviceStat, NfsIo, Pressure, ProcessIo, SharedAccounts, either,
};
use iolab_workload::operation::{Moved, PerOperation};
use iolab_workload::outcome::{ClientOutcome, Outcome};
use iolab_workload::region_state::{Medium, Region, Residency};

/// Parameters of clock comparison, and waiting times between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTimeouts {
    /// Exchanges per session and pair of ranks.
    pub rounds: u32,
    /// Time that a rank waits for an answer.
    pub timeout: Duration,
    /// Time that a rank waits for one that measures: the time of the trial, and of its preparation.
    pub trial: Duration,
}

/// Least time from the root's message to the common start, ns: ranks read their counters meanwhile.
const LEAD_MIN_NS: i64 = 2_000_000;

/// Part of one rank in a trial, by its own clock.
#[derive(Debug, Clone)]
pub struct Contribution<T> {
    /// Activity of its workers.
    pub activity: Activity,
    /// Bytes moved over time.
    pub cumulative: CumulativeBytes,
    /// Further data, joined on the way to the root.
    pub rest: T,
}

/// Parts of all ranks together, by the root's clock.
#[derive(Debug, Clone)]
pub struct MergedTrial<T> {
    /// Activity of all ranks.
    pub activity: Activity,
    /// Bytes moved while all were active, with the bounds set by the clocks.
    pub all_active_bytes: Bounded,
    /// Further data, joined.
    pub rest: T,
}

/// Reason why the ranks do not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Halt {
    /// Loss of a rank.
    Lost(LostRank),
    /// A rank that cannot take part.
    Unready {
        /// Number of the rank.
        rank: usize,
        /// Fault and remedy.
        error: Error,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Lost(lost) => lost.fmt(f),
            Halt::Unready { rank, error } => write!(f, "rank {rank}: {error}"),
        }
    }
}

impl From<LostRank> for Halt {
    fn from(lost: LostRank) -> Self {
        Halt::Lost(lost)
    }
}

impl<L: Link + ?Sized> Team<L> {
    /// Waits until all ranks have come this far, and learns whether they go on. Every rank gets the same
    /// answer, even if another one is lost, unless its own path to the root is cut.
    ///
    /// # Errors
    /// The lost rank, or the first one that is not ready.
    pub fn agree(&mut self, habits: TrialTimeouts, ready: Result<(), Error>) -> Result<(), Halt> {
        let rank = self.link().rank();
        let trouble = ready.err().map(|error| Halt::Unready { rank, error });
        let gathered = self.gather(trouble, habits.trial);
        let verdict = match gathered {
            Ok(Some(all)) => link::encode(&all),
            Err(lost) if self.is_root() => link::encode(&Some(Halt::Lost(lost))),
            // The root learns of a lost rank too, and answers.
            Ok(None) | Err(_) => Vec::new(),
        };
        let timeout = self.timeout_in_all(habits.trial);
        let verdict = self.broadcast(&verdict, timeout)?;
        let verdict: Option<Halt> = link::decode(&verdict).ok_or(GARBLED)?;
        verdict.map_or(Ok(()), Err)
    }

    /// Agrees on the start of a trial once every rank has prepared itself, or reports an obstacle. Returns the
    /// moment on this rank's own clock, ns.
    ///
    /// # Errors
    /// As [`Team::agree`].
    pub fn start(&mut self, habits: TrialTimeouts, ready: Result<(), Error>) -> Result<i64, Halt> {
        self.agree(habits, ready)?;
        let in_all = self.timeout_in_all(habits.timeout);
        let before = self.link().now_ns();
        self.synchronise(habits.rounds, habits.timeout)?;
        let now = self.link().now_ns();
        // Passing a moment on takes a level no longer than comparing clocks did.
        let levels = i64::from(self.height());
        let lead = (now - before).saturating_mul(levels).max(LEAD_MIN_NS);
        let start = self.announce(&[TimeInterval::exactly(now.saturating_add(lead))], in_all)?;
        start
            .first()
            .map(|start| start.middle())
            .ok_or(GARBLED.into())
    }

    /// Brings every rank's part to the root, which gets the whole; `own` is `None` for a rank that took no
    /// part. The root gets `None` too if no rank took part.
    ///
    /// Clocks are compared once more, so that the time in between is bounded from both sides.
    ///
    /// # Errors
    /// As [`Team::agree`].
    pub fn conclude<T: Gathered>(
        &mut self,
        habits: TrialTimeouts,
        part: Option<Contribution<T>>,
    ) -> Result<Option<MergedTrial<T>>, Halt> {
        let in_all = self.timeout_in_all(habits.timeout);
        self.agree(habits, Ok(()))?;
        self.synchronise(habits.rounds, habits.timeout)?;
        let own = part.map(|part| ((part.activity, part.rest), part.cumulative));
        let (own, cumulative) = own.unzip();
        let all = self.gather(own, habits.timeout)?.flatten();
        let span = all.as_ref().and_then(|(activity, _)| activity.all_active());
        let window =
            span.map(|(from, to)| [TimeInterval::exactly(from), TimeInterval::exactly(to)]);
        let window = self.announce(window.as_ref().map_or(&[], |both| &both[..]), in_all)?;
        let own = match (&window[..], cumulative) {
            ([from, to], Some(cumulative)) => cumulative.between(*from, *to),
            _ => Bounded::default(),
        };
        let moved = self.gather(own, habits.timeout)?;
        let whole = all.zip(moved);
        Ok(whole.map(|((activity, rest), moved)| MergedTrial {
            activity,
            all_active_bytes: moved,
            rest,
        }))
    }
}

/// Loss of the root by an unreadable message.
const GARBLED: LostRank = LostRank {
    rank: 0,
    why: LossReason::Garbled,
};

/// The obstacle of the first rank that does not go on. A lost rank takes precedence over ranks that can end by
/// themselves.
impl Gathered for Halt {
    fn join(self, other: Self) -> Self {
        let place = |halt: &Self| match halt {
            Halt::Lost(lost) => (false, lost.rank),
            Halt::Unready { rank, .. } => (true, *rank),
        };
        match place(&other) < place(&self) {
            true => other,
            false => self,
        }
    }
}

impl Gathered for Activity {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(Self {
            first_start: clock.interval_here(self.first_start)?,
            last_start: clock.interval_here(self.last_start)?,
            first_end: clock.interval_here(self.first_end)?,
            last_end: clock.interval_here(self.last_end)?,
        })
    }

    fn join(self, other: Self) -> Self {
        Self {
            first_start: self.first_start.min(other.first_start),
            last_start: self.last_start.max(other.last_start),
            first_end: self.first_end.min(other.first_end),
            last_end: self.last_end.max(other.last_end),
        }
    }
}

impl Gathered for Bounded {
    fn join(self, other: Self) -> Self {
        Self {
            least: self.least + other.least,
            greatest: self.greatest + other.greatest,
        }
    }
}

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
    pub clients: Vec<ClientOutcome>,
}

impl TrialContribution {
    /// Client whose ranks are exactly these; the first of them is `rank`.
    pub fn client(&self, rank: usize, medium: Medium, shared: SharedAccounts) -> ClientOutcome {
        let outcome = &self.outcome;
        ClientOutcome {
            rank: rank as u32,
            start_ns: 0,
            elapsed_ns: 0,
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
            suspended_ns: either(u64::max)(a.pressure.suspended_ns, b.pressure.suspended_ns),
            ..match (a_adds.host, b_adds.host) {
                (_, AccountShare::Nothing) => a.pressure,
                (AccountShare::Nothing, _) => b.pressure,
                _ => a.pressure.worst(b.pressure),
            }
        },
        buffer_piece_bytes: both(a.buffer_piece_bytes, b.buffer_piece_bytes, u64::min),
        drive_millidegrees: either(u64::max)(a.drive_millidegrees, b.drive_millidegrees),
    }
}

/// Observations of two ranks: of separate bytes, or of the same region, where the higher page-cache reading
/// counts.
fn region(a: Region, b: Region, apart: bool) -> Region {
    Region {
        before: both(a.before, b.before, |a, b| residency(a, b, apart)),
        after: both(a.after, b.after, |a, b| residency(a, b, apart)),
        extents: both(a.extents, b.extents, |a, b| match apart {
            true => a.plus(b),
            false => a,
        }),
        owed_sync_ns: either(u64::max)(a.owed_sync_ns, b.owed_sync_ns),
        evidence_ns: a.evidence_ns.max(b.evidence_ns),
    }
}

fn residency(a: Residency, b: Residency, apart: bool) -> Residency {
    match apart {
        true => a.plus(b),
        false if a.resident_bytes >= b.resident_bytes => a,
        false => b,
    }
}
