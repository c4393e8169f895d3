//! Interface of a transport.
//!
//! Values as messages between ranks, which all run the same build: JSON.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

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
