//! Messages between ranks: the interface of a transport, and messages down and up the tree. Values are JSON.
//!
//! All ranks call the same operations in the same order, as with MPI's collectives. Those busy-wait on the CPU;
//! these do not, and can give up on a rank.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::{ClockJumped, Exchange, OtherClock, TimeInterval};

/// A rank's connection to the other ranks, and its clock.
///
/// Messages between two ranks arrive in the order of sending.
pub trait Link {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Reading of this rank's clock, ns. It never goes back; only differences have a meaning.
    fn now_ns(&self) -> i64;

    /// Sends a message. It need not have arrived on return, but a long one may have to wait for the receiver.
    ///
    /// # Errors
    /// The receiver accepted nothing within `timeout`.
    fn send(&mut self, to: usize, message: &[u8], timeout: Duration) -> Result<(), LostRank>;

    /// Next message of a rank, awaited without taking the CPU from trials of other processes.
    ///
    /// # Errors
    /// None came within `timeout`.
    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank>;

    /// Ends all ranks at once with this exit code, if the transport can. To be called when a rank cannot be
    /// reached any more.
    fn abort(&self, _code: i32) {}
}

/// A rank that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRank {
    /// Number of the rank.
    pub rank: usize,
    /// Reason for the loss.
    pub why: LossReason,
}

/// Reason for the loss of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LossReason {
    /// The rank sent nothing for this long.
    Silent(Duration),
    /// The rank sent an unreadable message: its build is another one, or its memory is damaged.
    Garbled,
    /// The rank's clock jumped: no clock with a steady rate gives its stamps.
    ClockJumped,
}

impl fmt::Display for LostRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank;
        match self.why {
            LossReason::Silent(time) => {
                write!(
                    f,
                    "rank {rank} has not answered for {:.1} s",
                    time.as_secs_f64()
                )
            }
            LossReason::Garbled => write!(f, "rank {rank} sent a message that cannot be read"),
            LossReason::ClockJumped => write!(f, "the clock of rank {rank} jumped"),
        }
    }
}

/// The value as a message; empty for a value that only one process can have.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// The value of a message; `None` for a truncated or foreign one.
pub fn decode<T: DeserializeOwned>(message: &[u8]) -> Option<T> {
    serde_json::from_slice(message).ok()
}

/// Kind of a message, its first byte.
mod tag {
    pub(super) const DOWN: u8 = 0;
    pub(super) const UP: u8 = 1;
    pub(super) const LOST: u8 = 2;
    pub(super) const ASK: u8 = 3;
    pub(super) const STAMP: u8 = 4;
    pub(super) const MEMBER: u8 = 5;
}

/// A value to which every rank contributes, joined on the way to the root.
pub trait Gathered: Serialize + DeserializeOwned {
    /// The value with its moments on the clock of the parent rank, which compared this rank's clock with its
    /// own; by default unchanged, for a value without moments.
    ///
    /// # Errors
    /// The clock jumped.
    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    /// Values of both ranks, merged.
    #[must_use]
    fn join(self, other: Self) -> Self;
}

/// A value to which only some ranks contribute.
impl<T: Gathered> Gathered for Option<T> {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        self.map(|value| value.seen_through(clock)).transpose()
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (one, other) => one.or(other),
        }
    }
}

/// Two values at once.
impl<A: Gathered, B: Gathered> Gathered for (A, B) {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok((self.0.seen_through(clock)?, self.1.seen_through(clock)?))
    }

    fn join(self, other: Self) -> Self {
        (self.0.join(other.0), self.1.join(other.1))
    }
}

/// A list to which each rank adds items without moments.
#[derive(Debug, Serialize, Deserialize)]
pub struct List<T>(pub Vec<T>);

impl<T: Serialize + DeserializeOwned> Gathered for List<T> {
    fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// One rank among the others.
#[derive(Debug)]
pub struct Team<L: ?Sized> {
    link: Box<L>,
    tree: Tree,
    /// Clocks of the ranks directly below, in their order.
    below: Vec<OtherClock>,
    /// Number of messages for [`Team::join_at_first`] still in transit from each rank that this one no longer
    /// waits for.
    late: BTreeMap<usize, u32>,
}

impl<L: Link + ?Sized> Team<L> {
    /// This rank among the ranks of its transport, in a tree with `fanout` children each.
    pub fn new(link: Box<L>, fanout: usize) -> Self {
        let tree = Tree::new(link.size(), fanout);
        let below = vec![OtherClock::default(); tree.children(link.rank()).len()];
        Self {
            link,
            tree,
            below,
            late: BTreeMap::new(),
        }
    }

    /// Transport of this rank.
    pub fn link(&mut self) -> &mut L {
        &mut self.link
    }

    /// Whether this is rank 0.
    pub fn is_root(&self) -> bool {
        self.link.rank() == 0
    }

    /// Levels of the tree below the root.
    pub fn height(&self) -> u32 {
        self.tree.height(0)
    }

    /// Longest time until every rank knows of a lost one, if each waits `timeout` for another.
    pub fn timeout_in_all(&self, timeout: Duration) -> Duration {
        timeout.saturating_mul(self.height() + 1)
    }

    /// Sends the root's message to every rank; the argument of other ranks is ignored.
    ///
    /// # Errors
    /// Nothing came from the parent rank.
    pub fn broadcast(&mut self, message: &[u8], timeout: Duration) -> Result<Vec<u8>, LostRank> {
        let content = match self.parent() {
            None => message.to_vec(),
            Some(parent) => self.expect_content(parent, tag::DOWN, timeout)?,
        };
        for child in self.children() {
            self.send_content(child, tag::DOWN, &content, timeout)?;
        }
        Ok(content)
    }

    /// Brings the joined values of all ranks to the root; the others get `None`. Each waits `timeout` for a
    /// child, and longer for one with children of its own.
    ///
    /// # Errors
    /// The lost rank; every rank on its way to the root learns of it.
    pub fn gather<T: Gathered>(
        &mut self,
        own: T,
        timeout: Duration,
    ) -> Result<Option<T>, LostRank> {
        let joined = self.joined(own, timeout);
        let Some(parent) = self.parent() else {
            return joined.map(Some);
        };
        // The parent rank may have to wait for others first.
        let in_all = self.timeout_in_all(timeout);
        match &joined {
            Ok(value) => self.send(parent, tag::UP, value, in_all)?,
            Err(lost) => self.send(parent, tag::LOST, lost, in_all)?,
        }
        joined.map(|_| None)
    }

    /// Joined values of this rank and all below it.
    fn joined<T: Gathered>(&mut self, own: T, timeout: Duration) -> Result<T, LostRank> {
        let mut sum = own;
        for (child, number) in self.children().zip(0..) {
            let levels = self.tree.height(child) + 1;
            let value: T = self.expect(child, tag::UP, timeout.saturating_mul(levels))?;
            let value = value.seen_through(&self.below[number]);
            sum = sum.join(value.map_err(|ClockJumped| lost(child, LossReason::ClockJumped))?);
        }
        Ok(sum)
    }

    /// Joins the values of these ranks at the first of them; the others get `None`. Ranks that do this together
    /// share a clock. If one is silent there is nothing to join; its parent rank names it when all ranks meet
    /// next. Its late message is skipped.
    ///
    /// # Errors
    /// The rank that did not answer.
    pub fn join_at_first<T: Gathered>(
        &mut self,
        members: &[usize],
        own: impl FnOnce() -> T,
        timeout: Duration,
    ) -> Result<Option<T>, LostRank> {
        let others = match members.split_first() {
            Some((first, others)) if *first == self.link.rank() => others,
            Some((first, _)) => {
                let sent = self.send(*first, tag::MEMBER, &own(), timeout);
                return sent.map(|()| None);
            }
            None => return Ok(None),
        };
        let mut sum = own();
        for (rank, place) in others.iter().zip(0..) {
            match self.expect_content(*rank, tag::MEMBER, timeout) {
                Ok(content) => sum = sum.join(read(*rank, &content)?),
                Err(lost) => {
                    for rank in &others[place..] {
                        *self.late.entry(*rank).or_default() += 1;
                    }
                    return Err(lost);
                }
            }
        }
        Ok(Some(sum))
    }

    /// Compares every clock with the parent rank's, by `rounds` exchanges each, at least 1. A rank busy-waits
    /// for the answers, which takes some microseconds each.
    ///
    /// # Errors
    /// The lost rank.
    pub fn synchronise(&mut self, rounds: u32, timeout: Duration) -> Result<(), LostRank> {
        if let Some(parent) = self.parent() {
            let in_all = self.timeout_in_all(timeout);
            for _ in 0..rounds {
                self.expect_content(parent, tag::ASK, in_all)?;
                let now = self.link.now_ns();
                self.send(parent, tag::STAMP, &now, in_all)?;
            }
        }
        for (child, number) in self.children().zip(0..) {
            let mut session = Vec::with_capacity(rounds as usize);
            for _ in 0..rounds {
                let asked = self.link.now_ns();
                self.send_content(child, tag::ASK, &[], timeout)?;
                let content = self.expect_content(child, tag::STAMP, timeout)?;
                let answered = self.link.now_ns();
                session.push(Exchange {
                    asked,
                    stamp: read(child, &content)?,
                    answered,
                });
            }
            self.below[number].learn(session);
        }
        Ok(())
    }

    /// Passes moments of the root's clock to every rank, each on its own clock; the other ranks' argument is
    /// ignored.
    ///
    /// # Errors
    /// Nothing came from the parent rank, or a clock jumped.
    pub fn announce(
        &mut self,
        moments: &[TimeInterval],
        timeout: Duration,
    ) -> Result<Vec<TimeInterval>, LostRank> {
        let own = match self.parent() {
            None => moments.to_vec(),
            Some(parent) => self.expect(parent, tag::DOWN, timeout)?,
        };
        for (child, number) in self.children().zip(0..) {
            let clock = &self.below[number];
            let moments = own.iter().map(|moment| clock.interval_there(*moment));
            let moments: Result<Vec<_>, ClockJumped> = moments.collect();
            let moments = moments.map_err(|ClockJumped| lost(child, LossReason::ClockJumped))?;
            self.send(child, tag::DOWN, &moments, timeout)?;
        }
        Ok(own)
    }

    fn parent(&self) -> Option<usize> {
        self.tree.parent(self.link.rank())
    }

    fn children(&self) -> Range<usize> {
        self.tree.children(self.link.rank())
    }

    /// Sends a value to a rank.
    fn send(
        &mut self,
        to: usize,
        tag: u8,
        value: &impl Serialize,
        timeout: Duration,
    ) -> Result<(), LostRank> {
        self.send_content(to, tag, &encode(value), timeout)
    }

    fn send_content(
        &mut self,
        to: usize,
        tag: u8,
        content: &[u8],
        timeout: Duration,
    ) -> Result<(), LostRank> {
        self.link.send(to, &[&[tag], content].concat(), timeout)
    }

    /// Next message of a rank, without those that come too late.
    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        loop {
            let message = self.link.receive(from, timeout)?;
            let is_member = message.first() == Some(&tag::MEMBER);
            let late = self.late.get_mut(&from).filter(|late| **late > 0);
            match late.filter(|_| is_member) {
                Some(late) => *late -= 1,
                None => return Ok(message),
            }
        }
    }

    /// The value of a rank's next message, which must be of this kind.
    fn expect<T: DeserializeOwned>(
        &mut self,
        from: usize,
        tag: u8,
        timeout: Duration,
    ) -> Result<T, LostRank> {
        let content = self.expect_content(from, tag, timeout)?;
        read(from, &content)
    }

    fn expect_content(
        &mut self,
        from: usize,
        tag: u8,
        timeout: Duration,
    ) -> Result<Vec<u8>, LostRank> {
        let message = self.receive(from, timeout)?;
        match message.split_first() {
            Some((found, content)) if *found == tag => Ok(content.to_vec()),
            Some((&tag::LOST, content)) => Err(read(from, content)?),
            _ => Err(lost(from, LossReason::Garbled)),
        }
    }
}

/// The value that a rank sent.
fn read<T: DeserializeOwned>(rank: usize, content: &[u8]) -> Result<T, LostRank> {
    decode(content).ok_or(lost(rank, LossReason::Garbled))
}

fn lost(rank: usize, why: LossReason) -> LostRank {
    LostRank { rank, why }
}

/// Children per rank. Clocks are compared level by level: more children make fewer levels, whose bounds add up.
pub const FANOUT: usize = 16;

/// Ranks as a complete tree with rank 0 at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    size: usize,
    fanout: usize,
}

impl Tree {
    /// Tree of `size` ranks, at least 1, with `fanout` children each, at least 1.
    pub fn new(size: usize, fanout: usize) -> Self {
        Self {
            size: size.max(1),
            fanout: fanout.max(1),
        }
    }

    /// Parent rank; `None` for the root.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        Some(rank.checked_sub(1)? / self.fanout)
    }

    /// Child ranks.
    pub fn children(&self, rank: usize) -> Range<usize> {
        let first = rank.saturating_mul(self.fanout).saturating_add(1);
        let end = first.saturating_add(self.fanout);
        first.min(self.size)..end.min(self.size)
    }

    /// Levels below a rank.
    pub fn height(&self, rank: usize) -> u32 {
        // The first child has the most below it.
        let first = self.children(rank).next();
        first.map_or(0, |child| 1 + self.height(child))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_rank_is_its_parents_child(size in 1usize..3_000, fanout in 1usize..40) {
            let tree = Tree::new(size, fanout);
            prop_assert_eq!(tree.parent(0), None);
            let mut children = 0;
            for rank in 0..size {
                children += tree.children(rank).len();
                for child in tree.children(rank) {
                    prop_assert_eq!(tree.parent(child), Some(rank));
                    prop_assert!(tree.height(child) < tree.height(rank));
                }
            }
            prop_assert_eq!(children, size - 1);
        }
    }
}
