//! Greeting of ranks: identifies each of them, and checks that all run the same program.
//!
//! The first message between two ranks goes from a rank to its child (a call), and the second one is the answer. Both are
//! a [`Hello`], to which another build may add fields.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collectives::{Gathered, List, Team, tag};
use crate::link::{Link, LossReason, LostRank};
use crate::trial::{GoAhead, Halt, UnreadyRank};

/// Least time allowed for a message, so that one that came long ago is found.
const LEAST: Duration = Duration::from_millis(20);

/// A rank, the name of its host, and the identity of that host's kernel.
pub type RankIdentity = (u64, (String, String));

/// First message of a rank: its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Number of the rank.
    pub rank: u32,
    /// Build of the program.
    pub build: String,
    /// Name of its host.
    pub host: String,
}

impl Hello {
    /// Whether this rank sent it.
    pub fn is(&self, rank: usize) -> bool {
        usize::try_from(self.rank) == Ok(rank)
    }
}

/// Waiting times of ranks in the greeting, each from the moment at which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeTimeouts {
    /// Waiting time for the first message of another rank: ranks may begin at different times.
    pub first: Duration,
    /// Additional time for each level of the tree that a message passes.
    pub level: Duration,
}

impl HandshakeTimeouts {
    fn over(self, levels: u32) -> Duration {
        self.first + self.level * levels
    }

    /// Time after which every running rank has its answer, in a tree of this height.
    pub fn in_all(self, height: u32) -> Duration {
        self.over(height + 2)
    }
}

/// Knowledge of a rank after the handshake.
#[derive(Debug)]
pub struct HandshakeResult {
    /// Known ranks below, and this one. The root knows all unless something stops them.
    pub known: Vec<RankIdentity>,
    /// Greeting of the parent rank.
    pub above: Option<Hello>,
    /// Reason why the ranks cannot go on.
    pub halt: Option<Halt>,
}

impl<L: Link> Team<L> {
    /// Finds out which ranks there are, and whether all are of the same build. The first operation of every
    /// rank. `differs` describes the fault of a rank of the first build below one of the second.
    pub fn greet(
        &mut self,
        own: &Hello,
        kernel: &str,
        limits: HandshakeTimeouts,
        differs: &dyn Fn(&str, &str) -> String,
    ) -> HandshakeResult {
        let began = self.link().now_ns();
        let mut greeting = Greeting {
            team: self,
            own,
            limits,
            differs,
            began,
        };
        greeting.call();
        let (above, way) = greeting.answer();
        let mut members = Vec::new();
        let mut roll = Roll::of(own, kernel);
        for child in greeting.team.children() {
            let (subtree, is_member) = greeting.hear(child);
            roll = roll.join(subtree);
            members.extend(is_member.then_some(child));
        }
        let verdict = way.and_then(|parent| greeting.agree(parent, &roll));
        let verdict = GoAhead(verdict.err());
        greeting.pass(&members, &verdict);
        HandshakeResult {
            known: roll.known.0,
            above,
            halt: verdict.0,
        }
    }
}

struct Greeting<'a, L> {
    team: &'a mut Team<L>,
    own: &'a Hello,
    limits: HandshakeTimeouts,
    differs: &'a dyn Fn(&str, &str) -> String,
    /// Start by the clock of this rank, ns.
    began: i64,
}

impl<L: Link> Greeting<'_, L> {
    /// Remaining time for a message that passes `levels` levels.
    fn left(&mut self, levels: u32) -> Duration {
        let gone = self.team.link().now_ns().saturating_sub(self.began);
        let gone = Duration::from_nanos(gone.max(0).unsigned_abs());
        self.limits.over(levels).saturating_sub(gone).max(LEAST)
    }

    fn call(&mut self) {
        let left = self.left(0);
        for child in self.team.children() {
            // A rank that cannot be reached does not answer either.
            let _ = self.team.send(child, tag::DOWN, self.own, left);
        }
    }

    /// Answers the call of the parent rank. Returns the caller, and its number if this rank can go on with it.
    fn answer(&mut self) -> (Option<Hello>, Result<Option<usize>, Halt>) {
        let Some(parent) = self.team.parent() else {
            return (None, Ok(None));
        };
        let left = self.left(0);
        let caller = match self.hello(parent, tag::DOWN, left) {
            Ok(caller) => caller,
            Err(lost) => return (None, Err(lost.into())),
        };
        let way = match self.team.send(parent, tag::UP, self.own, left) {
            Err(lost) => Err(lost.into()),
            Ok(()) if caller.build == self.own.build => Ok(Some(parent)),
            Ok(()) => Err(Halt::Unready(UnreadyRank {
                rank: self.team.link().rank(),
                message: (self.differs)(&self.own.build, &caller.build),
            })),
        };
        (Some(caller), way)
    }

    /// First message of a rank.
    fn hello(&mut self, from: usize, tag: u8, timeout: Duration) -> Result<Hello, LostRank> {
        let stranger = LostRank {
            rank: from,
            why: LossReason::Stranger,
        };
        match self.team.expect(from, tag, timeout) {
            Ok(hello) if Hello::is(&hello, from) => Ok(hello),
            Err(lost) if matches!(lost.why, LossReason::Silent(_)) => Err(lost),
            Ok(_) | Err(_) => Err(stranger),
        }
    }

    /// Report of a child rank on itself and the ranks below it, and whether it waits for the decision of the
    /// root.
    fn hear(&mut self, child: usize) -> (Roll, bool) {
        let left = self.left(0);
        let hello = match self.hello(child, tag::UP, left) {
            Ok(hello) => hello,
            Err(lost) => return (Roll::without(lost), false),
        };
        let mut alone = Roll::of(&hello, "");
        if hello.build != self.own.build {
            alone.verdict.0 = Some(Halt::Unready(UnreadyRank {
                rank: child,
                message: (self.differs)(&hello.build, &self.own.build),
            }));
            return (alone, false);
        }
        let levels = self.team.height_of(child) + 1;
        let left = self.left(levels);
        let roll = self.team.expect(child, tag::UP, left);
        let roll = roll.unwrap_or_else(|lost| alone.join(Roll::without(lost)));
        (roll, true)
    }

    /// Reports to the root, and gets its decision.
    fn agree(&mut self, parent: Option<usize>, roll: &Roll) -> Result<(), Halt> {
        let Some(parent) = parent else {
            return roll.verdict.0.clone().map_or(Ok(()), Err);
        };
        let left = self.left(self.team.height() + 2);
        self.team.send(parent, tag::UP, roll, left)?;
        let left = self.left(self.team.height() + 2);
        let verdict: GoAhead = self.team.expect(parent, tag::DOWN, left)?;
        verdict.0.map_or(Ok(()), Err)
    }

    /// Passes the decision of the root on.
    fn pass(&mut self, members: &[usize], verdict: &GoAhead) {
        for member in members {
            // The next operation of all ranks finds one that cannot be reached.
            let _ = self
                .team
                .send(*member, tag::DOWN, verdict, self.limits.level);
        }
    }
}

/// Report to the root: known ranks, and the reason why they cannot go on.
#[derive(Serialize, Deserialize)]
struct Roll {
    known: List<RankIdentity>,
    verdict: GoAhead,
}

impl Roll {
    fn of(hello: &Hello, kernel: &str) -> Self {
        let host = (hello.host.clone(), kernel.to_owned());
        Self {
            known: List(vec![(hello.rank.into(), host)]),
            verdict: GoAhead(None),
        }
    }

    fn without(lost: LostRank) -> Self {
        Self {
            known: List(Vec::new()),
            verdict: GoAhead(Some(lost.into())),
        }
    }
}

impl Gathered for Roll {
    fn join(self, other: Self) -> Self {
        Self {
            known: self.known.join(other.known),
            verdict: self.verdict.join(other.verdict),
        }
    }
}
