//! Greeting of ranks: identifies each of them, and checks that all run the same program.
//!
//! Each rank sends the identities of the ranks below it and its own to its parent, and the root answers with its decision.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collectives::{Team, tag};
use crate::link::{Link, LossReason, LostRank};
use crate::trial::{GoAhead, Halt, UnreadyRank};

/// Least time allowed for a message, so that one that came long ago is found.
const LEAST: Duration = Duration::from_millis(20);

/// Identity of a rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RankIdentity {
    /// Number of the rank.
    pub rank: usize,
    /// Build of the program.
    pub build: String,
    /// Name of its host.
    pub host: String,
    /// Identity of the kernel of its host.
    pub kernel: String,
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

/// Known ranks below a rank and this one, and the reason why they cannot go on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Roll {
    /// Known ranks. The root knows all unless something stops them.
    pub known: Vec<RankIdentity>,
    /// Reason why the ranks cannot go on.
    pub halt: Option<Halt>,
}

impl<L: Link> Team<L> {
    /// Finds out which ranks there are, and whether all are of the same build. The first operation of every
    /// rank. `differs` describes the fault of a rank of the first build below one of the second.
    pub fn greet(
        &mut self,
        own: RankIdentity,
        limits: HandshakeTimeouts,
        differs: &dyn Fn(&str, &str) -> String,
    ) -> Roll {
        let began = self.link().now_ns();
        // Remaining time for a message across this number of levels.
        let left = |team: &mut Self, levels| {
            let gone = team.link().now_ns().saturating_sub(began);
            let gone = Duration::from_nanos(gone.max(0).unsigned_abs());
            limits.over(levels).saturating_sub(gone).max(LEAST)
        };
        let mut roll = Roll {
            known: vec![own.clone()],
            halt: None,
        };
        let mut members = Vec::new();
        for child in self.children() {
            let levels = self.height_of(child);
            let left = left(self, levels);
            match self.hear::<Roll>(child, tag::UP, left) {
                Ok(below) => {
                    members.push(child);
                    roll.known.extend(below.known);
                    roll.halt = roll.halt.or(below.halt);
                }
                Err(lost) => roll.halt = roll.halt.or(Some(lost.into())),
            }
        }
        roll.halt = match self.parent() {
            None => roll.halt.or_else(|| {
                let other = roll.known.iter().find(|one| one.build != own.build)?;
                Some(Halt::Unready(UnreadyRank {
                    rank: other.rank,
                    message: differs(&other.build, &own.build),
                }))
            }),
            Some(parent) => {
                // A level less than all are allowed, for the way down.
                let left = left(self, self.height() + 1);
                let sent = self.send(parent, tag::UP, &roll, left);
                let verdict = sent.and_then(|()| self.hear::<GoAhead>(parent, tag::DOWN, left));
                verdict.map_or_else(|lost| Some(lost.into()), |verdict| verdict.0)
            }
        };
        let verdict = GoAhead(roll.halt.clone());
        for member in members {
            // The next operation of all ranks finds one that cannot be reached.
            let _ = self.send(member, tag::DOWN, &verdict, limits.level);
        }
        roll
    }

    /// A value that another rank sends; one of another build may send something else.
    fn hear<T: serde::de::DeserializeOwned>(
        &mut self,
        from: usize,
        tag: u8,
        timeout: Duration,
    ) -> Result<T, LostRank> {
        self.expect(from, tag, timeout)
            .map_err(|lost| match lost.why {
                LossReason::Silent(_) => lost,
                _ => LostRank {
                    rank: from,
                    why: LossReason::Stranger,
                },
            })
    }
}
