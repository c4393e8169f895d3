//! Greeting of ranks: identifies each of them, and checks that all run the same program.
//!
//! The first message between two ranks goes from a rank to its child (a call), and the second one is the
//! answer. Their format never changes, so that every later version can read them and name a rank of another
//! build:
//!
//! - hello: the 8 bytes `iolab hi`; one byte 1; the rank, 4 bytes, the low one first; then build and host, each as
//!   one byte with its length and that many bytes of UTF-8. Further data is for later versions, and ignored.
//! - call: one byte 0, and the hello of the parent rank. Answer: the hello of the child rank.
//!
//! Versions before this format take a call for the version of rank 0. They answer with their host, after the
//! ranks below them, so their first message identifies them. A rank below such a version sends it nothing: that
//! version ends at once, and with it all ranks, if it cannot read a message.

use std::time::Duration;

use crate::clock::{ClockJumped, OtherClock};
use crate::collectives::{Gathered, List, Team, tag};
use crate::link::{Link, LossReason, LostRank};
use crate::trial::{GoAhead, Halt, UnreadyRank};
use crate::wire::{Reader, Writer};

/// First bytes of a hello.
const MAGIC: &[u8] = b"iolab hi\x01";
/// First byte of a call, as in versions before this format.
const CALL: u8 = 0;
/// Least time allowed for a message, so that one that came long ago is found.
const LEAST: Duration = Duration::from_millis(20);

/// A rank, the name of its host, and the identity of that host's kernel.
pub type RankIdentity = (u64, (String, String));

/// First message of a rank: its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Number of the rank.
    pub rank: u32,
    /// Build of the program.
    pub build: String,
    /// Name of its host.
    pub host: String,
}

impl Hello {
    /// The hello as a message. Texts are truncated to 255 bytes.
    pub fn message(&self) -> Vec<u8> {
        let mut message = MAGIC.to_vec();
        message.extend(self.rank.to_le_bytes());
        for text in [&self.build, &self.host] {
            let length = text.floor_char_boundary(u8::MAX.into());
            message.push(length as u8);
            message.extend_from_slice(&text.as_bytes()[..length]);
        }
        message
    }

    /// Hello in a message; `None` if it has none.
    pub fn read(message: &[u8]) -> Option<Self> {
        let rest = message.strip_prefix(MAGIC)?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (build, rest) = text(rest)?;
        let (host, _) = text(rest)?;
        Some(Self {
            rank: u32::from_le_bytes(*rank),
            build,
            host,
        })
    }

    /// Whether this rank sent it.
    pub fn is(&self, rank: usize) -> bool {
        usize::try_from(self.rank) == Ok(rank)
    }

    fn call(&self) -> Vec<u8> {
        let mut message = vec![CALL];
        message.extend(self.message());
        message
    }

    fn read_call(message: &[u8]) -> Option<Self> {
        Self::read(message.strip_prefix(&[CALL])?)
    }
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked((*length).into())?;
    Some((str::from_utf8(text).ok()?.to_owned(), rest))
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
        let call = self.own.call();
        let left = self.left(0);
        for child in self.team.children() {
            // A rank that cannot be reached does not answer either.
            let _ = self.team.link().send(child, &call, left);
        }
    }

    /// Answers the call of the parent rank. Returns the caller, and its number if this rank can go on with it.
    fn answer(&mut self) -> (Option<Hello>, Result<Option<usize>, Halt>) {
        let Some(parent) = self.team.parent() else {
            return (None, Ok(None));
        };
        let left = self.left(0);
        let call = match self.team.link().receive(parent, left) {
            Ok(call) => call,
            Err(lost) => return (None, Err(lost.into())),
        };
        // A version before this format passes on the call of its own parent.
        let caller = Hello::read_call(&call).filter(|caller| caller.is(parent));
        let Some(caller) = caller else {
            return (None, Err(stranger(parent).into()));
        };
        let hello = self.own.message();
        let way = match self.team.link().send(parent, &hello, left) {
            Err(lost) => Err(lost.into()),
            Ok(()) if caller.build == self.own.build => Ok(Some(parent)),
            Ok(()) => Err(Halt::Unready(UnreadyRank {
                rank: self.team.link().rank(),
                message: (self.differs)(&self.own.build, &caller.build),
            })),
        };
        (Some(caller), way)
    }

    /// Report of a child rank on itself and the ranks below it, and whether it waits for the decision of the
    /// root.
    fn hear(&mut self, child: usize) -> (Roll, bool) {
        let left = self.left(0);
        let message = match self.team.link().receive(child, left) {
            Ok(message) => message,
            Err(lost) => return (Roll::without(lost), false),
        };
        let hello = Hello::read(&message).filter(|hello| hello.is(child));
        let Some(hello) = hello else {
            let mut roll = Roll::without(stranger(child));
            roll.known = before_greeting(&message).unwrap_or(roll.known);
            return (roll, false);
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
        let roll = roll.and_then(|content| {
            Roll::read(&mut Reader::new(&content)).ok_or(LostRank {
                rank: child,
                why: LossReason::Garbled,
            })
        });
        let roll = roll.unwrap_or_else(|lost| alone.join(Roll::without(lost)));
        (roll, true)
    }

    /// Reports to the root, and gets its decision.
    fn agree(&mut self, parent: Option<usize>, roll: &Roll) -> Result<(), Halt> {
        let Some(parent) = parent else {
            return roll.verdict.0.clone().map_or(Ok(()), Err);
        };
        let mut up = Writer::default();
        roll.write(&mut up);
        let left = self.left(self.team.height() + 2);
        self.team.send(parent, tag::UP, &up.into_bytes(), left)?;
        let left = self.left(self.team.height() + 2);
        let verdict = self.team.expect(parent, tag::DOWN, left)?;
        let garbled = LostRank {
            rank: parent,
            why: LossReason::Garbled,
        };
        let verdict = GoAhead::read(&mut Reader::new(&verdict)).ok_or(garbled)?;
        verdict.0.map_or(Ok(()), Err)
    }

    /// Passes the decision of the root on.
    fn pass(&mut self, members: &[usize], verdict: &GoAhead) {
        let mut down = Writer::default();
        verdict.write(&mut down);
        let down = down.into_bytes();
        for member in members {
            // The next operation of all ranks finds one that cannot be reached.
            let _ = self.team.send(*member, tag::DOWN, &down, self.limits.level);
        }
    }
}

fn stranger(rank: usize) -> LostRank {
    LostRank {
        rank,
        why: LossReason::Stranger,
    }
}

/// Hosts of a rank and the ranks below it, if this is the first message of a version before the greeting.
fn before_greeting(message: &[u8]) -> Option<List<RankIdentity>> {
    let mut from = Reader::new(message);
    let is_up = from.number()? == tag::UP;
    is_up.then(|| Gathered::read(&mut from)).flatten()
}

/// Report to the root: known ranks, and the reason why they cannot go on.
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
    fn write(&self, to: &mut Writer) {
        self.known.write(to);
        self.verdict.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            known: Gathered::read(from)?,
            verdict: Gathered::read(from)?,
        })
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(self, other: Self) -> Self {
        Self {
            known: self.known.join(other.known),
            verdict: self.verdict.join(other.verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_format_never_changes() {
        let hello = Hello {
            rank: 0x0102,
            build: "0.1.0 5".to_owned(),
            host: "n07".to_owned(),
        };
        let bytes = b"iolab hi\x01\x02\x01\0\0\x070.1.0 5\x03n07";
        assert_eq!(hello.message(), bytes);
        assert_eq!(hello.call(), [&b"\0"[..], bytes].concat());
        // Additional data of a later version.
        let longer = [&bytes[..], b"and more"].concat();
        assert_eq!(Hello::read(&longer), Some(hello));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(rank: u32, build in ".{0,200}", host in ".{0,300}") {
            let hello = Hello { rank, build, host };
            let message = hello.message();
            let read = Hello::read(&message).expect("a hello");
            prop_assert_eq!(read.rank, rank);
            prop_assert!(hello.build.starts_with(&read.build) && hello.host.starts_with(&read.host));
            prop_assert!(read.host.len() > 250 || read.host == hello.host);
            prop_assert_eq!(Hello::read(&message[..message.len() - 1]), None);
        }

        #[test]
        fn noise_is_survived(bytes: Vec<u8>) {
            let begun = [MAGIC, &bytes[..]].concat();
            let _ = (Hello::read(&begun), Hello::read_call(&bytes), before_greeting(&bytes));
        }
    }
}
