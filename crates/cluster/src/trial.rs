//! One trial by all ranks: a common start, and all activity dated on the root's clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{Activity, Bounded, CumulativeBytes};
use crate::clock::{ClockJumped, OtherClock, TimeInterval};
use crate::collectives::{Gathered, Team};
use crate::link;
use crate::link::{Link, LossReason, LostRank};
use iolab_workload::Error;

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
    /// A rank that cannot take part, with its reason.
    Unready(UnreadyRank),
}

/// A rank that cannot take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadyRank {
    /// Number of the rank.
    pub rank: usize,
    /// Fault and remedy.
    pub error: Error,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Lost(lost) => lost.fmt(f),
            Halt::Unready(UnreadyRank { rank, error }) => write!(f, "rank {rank}: {error}"),
        }
    }
}

impl From<LostRank> for Halt {
    fn from(lost: LostRank) -> Self {
        Halt::Lost(lost)
    }
}

impl<L: Link> Team<L> {
    /// Waits until all ranks have come this far, and learns whether they go on. Every rank gets the same
    /// answer, even if another one is lost, unless its own path to the root is cut.
    ///
    /// # Errors
    /// The lost rank, or the first one that is not ready.
    pub fn agree(&mut self, habits: TrialTimeouts, ready: Result<(), Error>) -> Result<(), Halt> {
        let rank = self.link().rank();
        let trouble = ready.err().map(|error| UnreadyRank { rank, error });
        let own = GoAhead(trouble.map(Halt::Unready));
        let gathered = self.gather(own, habits.trial);
        let verdict = match gathered {
            Ok(Some(all)) => link::encode(&all),
            Err(lost) if self.is_root() => link::encode(&GoAhead(Some(lost.into()))),
            // The root learns of a lost rank too, and answers.
            Ok(None) | Err(_) => Vec::new(),
        };
        let timeout = self.timeout_in_all(habits.trial);
        let verdict = self.broadcast(&verdict, timeout)?;
        let verdict: GoAhead = link::decode(&verdict).ok_or(GARBLED)?;
        verdict.0.map_or(Ok(()), Err)
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
        let (own, cumulative) = part
            .map(|part| {
                let report = RankSummary {
                    activity: part.activity,
                    rest: part.rest,
                };
                (report, part.cumulative)
            })
            .unzip();
        let all = self.gather(own, habits.timeout)?.flatten();
        let span = all.as_ref().and_then(|all| all.activity.all_active());
        let window =
            span.map(|(from, to)| [TimeInterval::exactly(from), TimeInterval::exactly(to)]);
        let window = self.announce(window.as_ref().map_or(&[], |both| &both[..]), in_all)?;
        let own = match (&window[..], cumulative) {
            ([from, to], Some(cumulative)) => cumulative.between(*from, *to),
            _ => Bounded::default(),
        };
        let moved = self.gather(own, habits.timeout)?;
        Ok(all.zip(moved).map(|(all, moved)| MergedTrial {
            activity: all.activity,
            all_active_bytes: moved,
            rest: all.rest,
        }))
    }
}

/// Loss of the root by an unreadable message.
const GARBLED: LostRank = LostRank {
    rank: 0,
    why: LossReason::Garbled,
};

/// Whether all ranks go on: the obstacle of the first one that does not. A lost rank takes precedence over
/// ranks that can end by themselves.
#[derive(Debug, Serialize, Deserialize)]
struct GoAhead(Option<Halt>);

impl Gathered for GoAhead {
    fn join(self, other: Self) -> Self {
        let both = self.0.into_iter().chain(other.0);
        Self(both.min_by_key(|halt| match halt {
            Halt::Lost(lost) => (false, lost.rank),
            Halt::Unready(trouble) => (true, trouble.rank),
        }))
    }
}

/// Report of a rank after a trial.
#[derive(Serialize, Deserialize)]
struct RankSummary<T> {
    activity: Activity,
    rest: T,
}

impl<T: Gathered> Gathered for RankSummary<T> {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(Self {
            activity: self.activity.seen_through(clock)?,
            rest: self.rest.seen_through(clock)?,
        })
    }

    fn join(self, other: Self) -> Self {
        Self {
            activity: self.activity.join(other.activity),
            rest: self.rest.join(other.rest),
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
