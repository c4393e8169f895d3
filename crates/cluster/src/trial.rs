//! One trial by all ranks: a common start, and what they did, dated on the root's clock.

use std::fmt;
use std::time::Duration;

use crate::activity::{Activity, Bounded, CumulativeBytes};
use crate::clock::{ClockJumped, OtherClock, TimeInterval};
use crate::collectives::{Gathered, Team};
use crate::link::{Link, LossReason, LostRank};
use crate::wire::{Reader, Writer};

/// How clocks are compared, and how long ranks wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTimeouts {
    /// Exchanges per session and pair of ranks.
    pub rounds: u32,
    /// How long a rank waits for an answer.
    pub timeout: Duration,
    /// How long a rank waits for one that measures: the time of the trial, and what preparing it takes.
    pub trial: Duration,
}

/// Least time from the root's word to the common start, ns: ranks read their counters meanwhile.
const LEAD_MIN_NS: i64 = 2_000_000;

/// What one rank did, by its own clock.
#[derive(Debug, Clone)]
pub struct Contribution<T> {
    /// When its workers were active.
    pub activity: Activity,
    /// What they moved over time.
    pub cumulative: CumulativeBytes,
    /// Bytes moved.
    pub bytes: u64,
    /// What else is joined on the way to the root.
    pub rest: T,
}

/// What all ranks did, by the root's clock.
#[derive(Debug, Clone)]
pub struct MergedTrial<T> {
    /// When they were active.
    pub activity: Activity,
    /// Bytes moved.
    pub bytes: u64,
    /// Throughput while all were active, MB/s, with the bounds that the clocks leave; `None` where they never were.
    pub all_active: Option<Bounded>,
    /// Bytes moved meanwhile, at least and at most.
    pub all_active_bytes: (u64, u64),
    /// What else was joined.
    pub rest: T,
}

impl<T> MergedTrial<T> {
    /// Throughput from the first start to the last end, MB/s, with the bounds that the clocks leave.
    pub fn throughput(&self) -> Bounded {
        self.activity.throughput(self.bytes)
    }
}

/// Why the ranks do not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// A rank is lost.
    Lost(LostRank),
    /// A rank cannot take part, and says why.
    Unready(UnreadyRank),
}

/// What keeps a rank from taking part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadyRank {
    /// The rank.
    pub rank: usize,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Halt::Lost(lost) => lost.fmt(f),
            Halt::Unready(UnreadyRank { rank, message }) => write!(f, "rank {rank}: {message}"),
        }
    }
}

impl From<LostRank> for Halt {
    fn from(lost: LostRank) -> Self {
        Halt::Lost(lost)
    }
}

impl<L: Link> Team<L> {
    /// Waits until all ranks have come so far, and learns whether they go on: every rank gets the same answer, also where
    /// another one is lost, unless its own way to the root is cut.
    ///
    /// # Errors
    /// The rank that is lost, or the first one that is not ready.
    pub fn agree(&mut self, habits: TrialTimeouts, ready: Result<(), String>) -> Result<(), Halt> {
        let rank = self.link().rank();
        let trouble = ready.err().map(|message| UnreadyRank { rank, message });
        let own = GoAhead(trouble.map(Halt::Unready));
        let gathered = self.gather(own, habits.trial);
        let mut verdict = Writer::default();
        match gathered {
            Ok(Some(all)) => all.write(&mut verdict),
            Err(lost) if self.is_root() => GoAhead(Some(lost.into())).write(&mut verdict),
            // The root learns of a lost rank too, and answers.
            Ok(None) | Err(_) => {}
        }
        let timeout = self.timeout_in_all(habits.trial);
        let verdict = self.broadcast(&verdict.into_bytes(), timeout)?;
        let verdict = GoAhead::read(&mut Reader::new(&verdict)).ok_or(GARBLED)?;
        verdict.0.map_or(Ok(()), Err)
    }

    /// Agrees on the start of a trial for which every rank has prepared itself, or says what keeps it from that; gives the
    /// moment on this rank's own clock, ns.
    ///
    /// # Errors
    /// As [`Team::agree`].
    pub fn start(&mut self, habits: TrialTimeouts, ready: Result<(), String>) -> Result<i64, Halt> {
        self.agree(habits, ready)?;
        let in_all = self.timeout_in_all(habits.timeout);
        let before = self.link().now_ns();
        self.synchronise(habits.rounds, habits.timeout)?;
        let now = self.link().now_ns();
        // A level takes no longer to hand a moment on than it took to compare clocks.
        let levels = i64::from(self.height());
        let lead = (now - before).saturating_mul(levels).max(LEAD_MIN_NS);
        let start = self.announce(&[TimeInterval::exactly(now.saturating_add(lead))], in_all)?;
        start
            .first()
            .map(|start| start.middle())
            .ok_or(GARBLED.into())
    }

    /// Brings what every rank did to the root, which gets the whole; a rank that took no part has `None`. `None` at the root
    /// too where no rank took part.
    ///
    /// Clocks are compared once more, so that what lies between is bounded from both sides.
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
                    bytes: part.bytes,
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
        let moved = self.gather(Moved::new(own), habits.timeout)?;
        Ok(all.zip(moved).map(|(all, moved)| MergedTrial {
            activity: all.activity,
            bytes: all.bytes,
            all_active: span.map(|(from, to)| moved.per(to - from)),
            all_active_bytes: (moved.least, moved.greatest),
            rest: all.rest,
        }))
    }
}

/// The root sent what cannot be read.
const GARBLED: LostRank = LostRank {
    rank: 0,
    why: LossReason::Garbled,
};

/// Whether all ranks go on: what keeps the first one of those that do not. A rank that is lost comes before all that can end by
/// themselves.
#[derive(Debug)]
pub(crate) struct GoAhead(pub(crate) Option<Halt>);

impl Gathered for GoAhead {
    fn write(&self, to: &mut Writer) {
        match &self.0 {
            None => to.number(0),
            Some(Halt::Unready(UnreadyRank { rank, message })) => {
                to.number(1);
                to.number(*rank as u64);
                to.text(message);
            }
            Some(Halt::Lost(lost)) => {
                to.number(2);
                lost.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self(match from.number()? {
            0 => None,
            1 => Some(Halt::Unready(UnreadyRank {
                rank: usize::try_from(from.number()?).ok()?,
                message: from.text()?.to_owned(),
            })),
            2 => Some(Halt::Lost(LostRank::read(from)?)),
            _ => return None,
        }))
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(self, other: Self) -> Self {
        let both = self.0.into_iter().chain(other.0);
        Self(both.min_by_key(|halt| match halt {
            Halt::Lost(lost) => (false, lost.rank),
            Halt::Unready(trouble) => (true, trouble.rank),
        }))
    }
}

/// What goes up after a trial.
struct RankSummary<T> {
    activity: Activity,
    bytes: u64,
    rest: T,
}

impl<T: Gathered> Gathered for RankSummary<T> {
    fn write(&self, to: &mut Writer) {
        self.activity.write(to);
        to.number(self.bytes);
        self.rest.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            activity: Activity::read(from)?,
            bytes: from.number()?,
            rest: T::read(from)?,
        })
    }

    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(Self {
            activity: self.activity.seen_through(clock)?,
            bytes: self.bytes,
            rest: self.rest.seen_through(clock)?,
        })
    }

    fn join(self, other: Self) -> Self {
        Self {
            activity: self.activity.join(other.activity),
            bytes: self.bytes.saturating_add(other.bytes),
            rest: self.rest.join(other.rest),
        }
    }
}

/// Bytes moved within a span, whole ones.
#[derive(Debug, Clone, Copy)]
struct Moved {
    least: u64,
    greatest: u64,
}

impl Moved {
    fn new(bytes: Bounded) -> Self {
        Self {
            least: bytes.least.floor() as u64,
            greatest: bytes.greatest.ceil() as u64,
        }
    }

    /// Throughput over so many ns, MB/s.
    fn per(self, ns: i64) -> Bounded {
        let rate = |bytes: u64| bytes as f64 * 1e3 / ns as f64;
        Bounded {
            least: rate(self.least),
            greatest: rate(self.greatest),
        }
    }
}

impl Gathered for Moved {
    fn write(&self, to: &mut Writer) {
        to.number(self.least);
        to.number(self.greatest);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            least: from.number()?,
            greatest: from.number()?,
        })
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            greatest: self.greatest.saturating_add(other.greatest),
        }
    }
}
