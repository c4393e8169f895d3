//! The greeting of the ranks.

use std::time::Duration;

use iolab_cluster::handshake::{HandshakeTimeouts, RankIdentity};
use iolab_cluster::link::{Link, LossReason};
use iolab_cluster::root_order;
use iolab_cluster::trial::Halt;
use iolab_cluster::wire;
use iolab_workload::{Error, Result};

use super::errors::{SAME_PROGRAM, unreadable};
use super::hosts;
use super::{ANSWER, Member};

/// How long ranks wait for each other.
const LIMITS: HandshakeTimeouts = HandshakeTimeouts {
    first: Duration::from_secs(40),
    level: Duration::from_secs(2),
};
/// Distance in time at which ranks speak one after the other if the root is lost; the first one ends all.
const TURN: Duration = Duration::from_millis(500);
/// Number of turns, of which the last one is for all remaining ranks.
const TURNS: u32 = 16;

impl Member {
    /// Compares builds, of which `own` is this rank's, and finds out which hosts there are.
    pub(super) fn greet(&mut self, own: &str) -> Result<()> {
        let greeted = self.meet(own);
        // Every rank knows of the failure then, and nothing was begun.
        self.ended = greeted.is_err();
        greeted
    }

    fn meet(&mut self, build: &str) -> Result<()> {
        let own = RankIdentity {
            rank: self.team.link().rank(),
            build: build.to_owned(),
            host: self.host.name.clone(),
            kernel: self.host.kernel.clone(),
        };
        let met = self.team.greet(own, LIMITS, &differs);
        self.hosts = hosts::in_order(met.known, self.team.link().size());
        if let Some(halt) = met.halt {
            return Err(self.unmet(halt));
        }
        let hosts = self.team.broadcast(&wire::encode(&self.hosts), ANSWER);
        let hosts = hosts.map_err(|lost| self.error(lost.into()))?;
        self.hosts = wire::decode(&hosts).ok_or_else(unreadable)?;
        self.places = hosts::places(&self.hosts);
        Ok(())
    }

    /// The error that keeps the ranks from going on after the greeting.
    fn unmet(&mut self, halt: Halt) -> Error {
        let lost = match &halt {
            Halt::Lost(lost) => Some(*lost),
            Halt::Unready(_) => None,
        };
        let error = self.error(halt);
        let Some(lost) = lost else { return error };
        self.roots_time = Some(match lost.rank {
            0 => Duration::ZERO,
            _ => LIMITS.in_all(self.team.height()),
        });
        let error = match lost.why {
            LossReason::Silent(_) if self.host_of(lost.rank).is_none() => {
                Error::failed(format!("{}, and its host is not known", error.message()))
                    .hint(UNKNOWN_HOST)
            }
            _ => error,
        };
        let rank = self.team.link().rank();
        match rank {
            0 => error,
            _ => error.within(self.place(rank)),
        }
    }

    /// How long this rank waits for the root, and then for the ranks before it, to report the failure.
    pub(super) fn timeout(&mut self) -> Duration {
        let usual = self.team.timeout_in_all(ANSWER);
        let before = self.team.link().rank().saturating_sub(1);
        let before = u32::try_from(before).unwrap_or(TURNS).min(TURNS);
        self.roots_time.unwrap_or(usual) + TURN * before
    }
}

/// The remedy for a rank that has said nothing.
const UNKNOWN_HOST: &str = "find the host by its rank: srun -l hostname, or mpirun -l hostname (Open MPI: mpirun --tag-output hostname), \
    with the same options; look at it; start the same program on all hosts";

/// The message about a rank with a different build.
fn differs(build: &str, roots: &str) -> String {
    let version = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    let (own, roots) = (version(build), version(roots));
    let message = match own == roots {
        true => format!("this rank and rank 0 are different builds of iolab {own}"),
        false => format!("this rank is iolab {own}, and rank 0 is iolab {roots}"),
    };
    root_order::error_text(&Error::usage(message).hint(SAME_PROGRAM))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use iolab_cluster::link::LostRank;
    use iolab_synthetic::thread_network::threads;

    use iolab_host::clock::Clock;

    use super::*;
    use crate::ranks::Ranks;

    #[test]
    fn only_a_root_that_answers_is_waited_for() {
        let silent = |rank| LostRank {
            rank,
            why: LossReason::Silent(LIMITS.first),
        };
        for own in [1, 2, 17] {
            let link = threads(40, || 0).swap_remove(own);
            let ranks = Ranks::new(Box::new(link), Clock::calibrate(), |_| Default::default());
            let mut member = ranks.0.borrow_mut();
            // The rank may have introduced itself, and hang before it passes the failure on.
            let _ = member.unmet(silent(0).into());
            let turns = member.timeout();
            assert!(turns <= TURN * TURNS, "rank {own}: {turns:?}");
            let _ = member.unmet(silent(3).into());
            let in_all = LIMITS.in_all(member.team.height());
            assert_eq!(member.timeout(), in_all + turns);
        }
    }

    #[test]
    fn a_differing_rank_is_named_without_a_wait() {
        let clock = Clock::calibrate();
        let own = clock.clone();
        let links = threads(3, move || own.ns_between(0, own.now()) as i64);
        let began = std::time::Instant::now();
        let results = thread::scope(|scope| {
            let greet = |link: iolab_synthetic::thread_network::ThreadLink| {
                let clock = clock.clone();
                scope.spawn(move || {
                    let version = if link.rank() == 2 {
                        "0.0.9 5"
                    } else {
                        "1.0.0 5"
                    };
                    let ranks = Ranks::new(Box::new(link), clock, |_| Default::default());
                    let greeted = ranks.0.borrow_mut().greet(version);
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
}
