//! What a transport offers to a rank.

use std::fmt;
use std::time::Duration;

use crate::wire::{Reader, Writer};

/// A rank's way to the other ranks, and its clock.
///
/// Messages between two ranks arrive in the order in which they were sent.
pub trait Link {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// A reading of this rank's clock, ns. It never goes back; only differences have a meaning.
    fn now_ns(&self) -> i64;

    /// Sends a message. It need not have arrived when this returns; but a long one may have to wait for the rank to receive.
    ///
    /// # Errors
    /// When the rank took nothing for so much time.
    fn send(&mut self, to: usize, message: &[u8], timeout: Duration) -> Result<(), LostRank>;

    /// The next message of a rank, waited for without taking the CPU from trials of other processes.
    ///
    /// # Errors
    /// When none came in so much time.
    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank>;

    /// Ends all ranks at once with this exit code, where the transport can: to be called where one cannot be reached any
    /// more.
    fn abort(&self, _code: i32) {}
}

impl<L: Link + ?Sized> Link for Box<L> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn now_ns(&self) -> i64 {
        (**self).now_ns()
    }

    fn send(&mut self, to: usize, message: &[u8], timeout: Duration) -> Result<(), LostRank> {
        (**self).send(to, message, timeout)
    }

    fn receive(&mut self, from: usize, timeout: Duration) -> Result<Vec<u8>, LostRank> {
        (**self).receive(from, timeout)
    }

    fn abort(&self, code: i32) {
        (**self).abort(code);
    }
}

/// A rank that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostRank {
    /// Its number.
    pub rank: usize,
    /// What is wrong with it.
    pub why: LossReason,
}

/// What is wrong with a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// It sent nothing for so long.
    Silent(Duration),
    /// It sent what cannot be read: its memory is damaged, or the network.
    Garbled,
    /// Its clock jumped: no clock whose rate is steady gives the stamps that it sent.
    ClockJumped,
    /// Its first message is not a greeting: it was built from a version that has none.
    Stranger,
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
            LossReason::Stranger => {
                write!(f, "rank {rank} was built from another version of iolab")
            }
        }
    }
}

impl LostRank {
    /// Writes it into a message.
    pub(crate) fn write(&self, to: &mut Writer) {
        to.number(self.rank as u64);
        match self.why {
            LossReason::Silent(time) => {
                to.number(0);
                to.number(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
            LossReason::Garbled => to.number(1),
            LossReason::ClockJumped => to.number(2),
            LossReason::Stranger => to.number(3),
        }
    }

    /// Reads it from a message; `None` where the message holds none.
    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let rank = usize::try_from(from.number()?).ok()?;
        let why = match from.number()? {
            0 => LossReason::Silent(Duration::from_nanos(from.number()?)),
            1 => LossReason::Garbled,
            2 => LossReason::ClockJumped,
            3 => LossReason::Stranger,
            _ => return None,
        };
        Some(Self { rank, why })
    }
}
