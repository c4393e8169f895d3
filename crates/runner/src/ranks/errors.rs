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
                let storage = self.storage_of(lost.rank);
                let then = &self.after_loss;
                Error::failed(message).hint(match (lost.why, storage) {
                    (LossReason::Stranger, _) => SAME_PROGRAM.to_owned(),
                    (_, Some(storage)) => {
                        format!("look at that host, and at {storage} there{then}")
                    }
                    (_, None) => format!("look at that host and its file system{then}"),
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

    /// The name of a rank's host, if this rank knows it.
    pub(super) fn host_of(&mut self, rank: usize) -> Option<&str> {
        if rank == self.team.link().rank() {
            return Some(&self.host.name);
        }
        let known = self.hosts.get(rank).map(|host| &*host.name);
        known.filter(|name| !name.is_empty())
    }
}

/// The remedy for ranks that differ.
pub(super) const SAME_PROGRAM: &str = "start the same program on all hosts";

pub(super) fn unreadable() -> Error {
    Error::failed("the order of rank 0 cannot be read").hint(SAME_PROGRAM)
}

#[cfg(test)]
mod tests {
    use iolab_cluster::link::LostRank;
    use iolab_cluster::root_order::RemoteTarget;
    use iolab_host::clock::Clock;
    use iolab_synthetic::thread_network::threads;

    use super::*;
    use crate::ranks::hosts::Host;
    use crate::ranks::{ANSWER, Ranks};

    #[test]
    fn a_lost_rank_is_named_with_its_targets() {
        let link = threads(3, || 0).swap_remove(0);
        let ranks = Ranks::new(Box::new(link), Clock::calibrate(), |_| Default::default());
        let member = &mut *ranks.0.borrow_mut();
        // The host of the last rank is unknown.
        member.hosts = ["node0", "node1", ""]
            .map(|name| Host {
                name: name.to_owned(),
                ..Host::default()
            })
            .to_vec();
        let said = |member: &mut Member, rank| {
            let why = LossReason::Silent(ANSWER);
            let error = member.error(LostRank { rank, why }.into());
            format!("{}: {}", error.message(), error.remedy().expect("a remedy"))
        };
        let before = said(member, 1);
        let target = |path: &str, seen_in: Option<&str>| RemoteTarget {
            path: path.to_owned(),
            scratch: true,
            bytes: 1,
            private: Vec::new(),
            own: None,
            seen_in: seen_in.map(str::to_owned),
        };
        member.know_targets(&[
            target("/export/.iolab-scratch-1", None),
            target("/mnt0/.iolab-scratch-2", Some("/mnt/{host}/{rank}")),
        ]);
        let mut all = vec![before, said(member, 1), said(member, 2)];
        member.after_loss = ". Finish the run with: mpirun -n 3 iolab resume r.iolab".to_owned();
        all.push(said(member, 1));
        insta::assert_snapshot!(all.join("\n"), @r"
        rank 1 on node1 has not answered for 60.0 s: look at that host and its file system; then start anew
        rank 1 on node1 has not answered for 60.0 s: look at that host, and at /export, /mnt/node1/1 there; then start anew
        rank 2 has not answered for 60.0 s: look at that host and its file system; then start anew
        rank 1 on node1 has not answered for 60.0 s: look at that host, and at /export, /mnt/node1/1 there. Finish the run with: mpirun -n 3 iolab resume r.iolab
        ");
    }
}
