//! Errors of a run by several ranks, which name rank and host.

use iolab_cluster::link::{Link, LossReason};
use iolab_cluster::root_order;
use iolab_cluster::trial::Halt;
use iolab_workload::Error;

use super::Member;

impl Member {
    /// The error for why the ranks stopped; it names rank and host.
    pub(super) fn error(&mut self, halt: Halt) -> Error {
        match halt {
            Halt::Unready(trouble) => {
                let error = root_order::error_of(&trouble.message);
                match self.team.link().size() > 1 {
                    true => error.within(self.place(trouble.rank)),
                    false => error,
                }
            }
            Halt::Lost(lost) => {
                self.lost = true;
                let message = lost.to_string();
                let rank = format!("rank {}", lost.rank);
                let message = message.replacen(&rank, &self.place(lost.rank), 1);
                Error::failed(message).hint(match lost.why {
                    LossReason::Stranger => SAME_PROGRAM,
                    _ => "look at that host and its file system; then start anew",
                })
            }
        }
    }

    /// A rank in words.
    pub(super) fn place(&mut self, rank: usize) -> String {
        match self.host_of(rank) {
            Some(host) => format!("rank {rank} on {host}"),
            None => format!("rank {rank}"),
        }
    }

    /// The name of a rank's host, where this rank knows it.
    pub(super) fn host_of(&mut self, rank: usize) -> Option<&str> {
        if rank == self.team.link().rank() {
            return Some(&self.host.name);
        }
        let known = self.hosts.get(rank).map(|host| &*host.name);
        let above = self.above.as_ref().filter(|above| above.is(rank));
        known
            .filter(|name| !name.is_empty())
            .or(above.map(|above| &*above.host))
    }
}

/// What to do where ranks differ.
pub(super) const SAME_PROGRAM: &str = "start the same program on all hosts";

pub(super) fn unreadable() -> Error {
    Error::failed("the order of rank 0 cannot be read").hint(SAME_PROGRAM)
}
