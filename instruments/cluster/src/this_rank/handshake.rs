//! The greeting of the ranks.
//!
//! Errors of a run by several ranks, which name rank and host.
//!
//! The hosts that ranks run on. Ranks under the same kernel share its page cache and its counters.
//!
//! Targets that every rank has for itself: paths with `{rank}` or `{host}` in them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Member, ThisRank};
use crate::link::LossReason;
use crate::trial::Halt;
use iolab_record::tables::Rank;
use iolab_runner::ranks::{HOST, RANK, is_own};
use iolab_runner::timeouts::ANSWER;
use iolab_storage::procfs;
use iolab_workload::{Error, Result};

/// Distance in time at which ranks speak one after the other if the root is lost; the first one ends all.
const TURN: Duration = Duration::from_millis(500);

/// Number of turns, of which the last one is for all remaining ranks.
const TURNS: u32 = 16;

/// Number of a rank, its version of iolab, and its host.
type Greeting = (usize, String, Host);

impl ThisRank {
    /// Finds out which hosts there are, and whether all ranks are this version of the program. To be called first, by every rank.
    ///
    /// # Errors
    /// When a rank was built from another version, or does not answer.
    pub fn greet(&self, version: &str) -> Result<()> {
        let member = &mut *self.0.borrow_mut();
        let rank = member.team.link().rank();
        let own: Greeting = (rank, version.to_owned(), member.host.clone());
        let all: Vec<Greeting> = member.pool(own, |mut all: Vec<Greeting>| {
            all.sort_unstable_by_key(|(rank, ..)| *rank);
            all
        })?;
        member.hosts = all.iter().map(|(_, _, host)| host.clone()).collect();
        member.places = places(&member.hosts);
        let (_, roots, _) = &all[0];
        let Some((rank, other, _)) = all.iter().find(|(_, version, _)| version != roots) else {
            return Ok(());
        };
        // Every rank knows that, and nothing was begun.
        member.ended = true;
        let message = format!("this rank is iolab {other}, and rank 0 is iolab {roots}");
        let error = Error::usage(message).hint(SAME_PROGRAM);
        Err(error.within(member.place(*rank)))
    }

    /// How long this rank waits for the root, and then for the ranks before it, to report a failure and end the run.
    pub fn timeout(&self) -> Duration {
        let team = &mut self.0.borrow_mut().team;
        let before = team.link().rank().saturating_sub(1);
        let before = u32::try_from(before).unwrap_or(TURNS).min(TURNS);
        team.timeout_in_all(ANSWER) + TURN * before
    }
}

impl Member {
    /// The error for why the ranks stopped; it names rank and host.
    pub(super) fn error(&mut self, halt: impl Into<Halt>) -> Error {
        match halt.into() {
            Halt::Unready { rank, error } => error.within(self.place(rank)),
            Halt::Lost(lost) => {
                self.lost = true;
                let message = lost.to_string();
                let rank = format!("rank {}", lost.rank);
                let message = message.replacen(&rank, &self.place(lost.rank), 1);
                let storage = self.storage_of(lost.rank);
                let is_known = self.host_of(lost.rank).is_some();
                let then = &self.after_loss;
                Error::failed(message).hint(match (lost.why, storage) {
                    (LossReason::Garbled, _) => SAME_PROGRAM.to_owned(),
                    (_, Some(storage)) => {
                        format!("look at that host, and at {storage} there{then}")
                    }
                    (_, None) if is_known => {
                        format!("look at that host and its file system{then}")
                    }
                    (_, None) => UNKNOWN_HOST.to_owned(),
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

/// The remedy for a rank that has said nothing.
const UNKNOWN_HOST: &str = "find the host by its rank: srun -l hostname, or mpirun -l hostname (Open MPI: mpirun --tag-output hostname), \
    with the same options; look at it; start the same program on all hosts";

/// The remedy for ranks that differ.
const SAME_PROGRAM: &str = "start the same program on all hosts";

pub(super) fn unreadable() -> Error {
    Error::failed("the order of rank 0 cannot be read").hint(SAME_PROGRAM)
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Name of the host.
    pub(crate) name: String,
    /// Identity of its kernel, which containers with other host names share.
    pub(super) kernel: String,
}

impl Host {
    /// The host of this process.
    pub(crate) fn here() -> Self {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy().into_owned();
        let kernel = procfs::boot_id().unwrap_or_else(|| name.clone());
        Self { name, kernel }
    }
}

/// The number of the host of each rank, in the order of their first ranks.
pub(super) fn places(hosts: &[Host]) -> Vec<usize> {
    let mut kernels: HashMap<&str, usize> = HashMap::new();
    let place = |host| {
        let next = kernels.len();
        *kernels.entry(host).or_insert(next)
    };
    hosts.iter().map(|host| &*host.kernel).map(place).collect()
}

/// The ranks as a run file keeps them.
pub(super) fn rows(hosts: &[Host]) -> Vec<Rank> {
    let numbered = hosts.iter().zip(places(hosts)).enumerate();
    let row = |(id, (host, place)): (usize, (&Host, usize))| Rank {
        id: id as u32,
        host: place as u32,
        name: host.name.clone(),
    };
    numbered.map(row).collect()
}

/// The path that a rank on a host uses.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a placeholder in a path that is not UTF-8.
pub(crate) fn place(path: &Path, rank: usize, host: &str) -> Result<PathBuf> {
    if !is_own(path) {
        return Ok(path.to_owned());
    }
    let text = path.to_str().ok_or_else(|| {
        Error::usage(format!("{} is not UTF-8", path.display()))
            .hint("ranks exchange paths with {rank} or {host} as text: give another name")
    })?;
    let text = text.replace(RANK, &rank.to_string()).replace(HOST, host);
    Ok(PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::{Host, *};
    use crate::link::{Link, LostRank};
    use crate::this_rank::root_targets::RemoteTarget;
    use crate::thread_network::threads;
    use iolab_host::clock::Clock;
    use iolab_runner::ranks::{Ranks, alone};

    #[test]
    fn a_differing_rank_is_named_without_a_wait() {
        let clock = Clock::calibrate();
        let own = clock.clone();
        let links = threads(3, move || own.ns_between(0, own.now()) as i64);
        let began = std::time::Instant::now();
        let results = thread::scope(|scope| {
            let greet = |link: crate::thread_network::ThreadLink| {
                let clock = clock.clone();
                scope.spawn(move || {
                    let version = if link.rank() == 2 { "0.0.9" } else { "1.0.0" };
                    let ranks = ThisRank::new(Box::new(link), clock);
                    let greeted = ranks.greet(version);
                    ranks.end().expect("nothing is left to be done");
                    assert!(!ranks.has_lost());
                    greeted
                })
            };
            let ranks: Vec<_> = links.into_iter().map(greet).collect();
            let results = ranks.into_iter().map(|rank| rank.join().expect("no panic"));
            results.collect::<Vec<Result<()>>>()
        });
        for result in results {
            let error = result.expect_err("another version");
            let (rank, why) = error.message().split_once(": ").expect("a place");
            assert!(rank.starts_with("rank 2"), "{error}");
            insta::allow_duplicates! { insta::assert_snapshot!(why, @"this rank is iolab 0.0.9, and rank 0 is iolab 1.0.0") };
        }
        // Otherwise the root would have waited for an answer to its last order.
        assert!(began.elapsed() < ANSWER);
    }

    #[test]
    fn a_lost_rank_is_named_with_its_targets() {
        let link = threads(3, || 0).swap_remove(0);
        let ranks = ThisRank::new(Box::new(link), Clock::calibrate());
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
            let error = member.error(LostRank { rank, why });
            format!("{}: {}", error.message(), error.remedy().expect("a remedy"))
        };
        let before = said(member, 1);
        let target = |path: &str, seen_in: Option<&str>| RemoteTarget {
            path: path.to_owned(),
            scratch: true,
            bytes: 1,
            seen_in: seen_in.map(str::to_owned),
            ..RemoteTarget::default()
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
        rank 2 has not answered for 60.0 s: find the host by its rank: srun -l hostname, or mpirun -l hostname (Open MPI: mpirun --tag-output hostname), with the same options; look at it; start the same program on all hosts
        rank 1 on node1 has not answered for 60.0 s: look at that host, and at /export, /mnt/node1/1 there. Finish the run with: mpirun -n 3 iolab resume r.iolab
        ");
    }

    #[test]
    fn each_rank_has_its_path() {
        let of = |path: &str| place(Path::new(path), 7, "node03").expect("UTF-8");
        assert_eq!(of("/mnt/{host}/r{rank}/x"), Path::new("/mnt/node03/r7/x"));
        assert_eq!(of("/mnt/{other}"), Path::new("/mnt/{other}"));
        assert!(is_own(Path::new("d{rank}")) && !is_own(Path::new("/mnt/rank")));
        assert!(alone(Path::new("/nowhere/{rank}")).is_err());
        assert!(alone(Path::new("/nowhere")).is_ok());
        let one = place(Path::new("/mnt/{host}/{rank}"), 0, &Host::here().name).expect("UTF-8");
        assert!(one.ends_with("0") && !is_own(&one), "{}", one.display());
    }
}
