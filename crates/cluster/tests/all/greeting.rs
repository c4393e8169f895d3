//! A rank of another build, or a silent one: the root names it, and every rank ends within the stated time.

use std::time::Duration;

use iolab_cluster::collectives::Team;
use iolab_cluster::collectives::Tree;
use iolab_cluster::link::{Link, LossReason, LostRank};
use iolab_cluster::root_order::{HandshakeTimeouts, RankIdentity, Roll};
use iolab_cluster::trial::{Halt, UnreadyRank};
use iolab_synthetic::virtual_network::{Skew, VirtualLink};

use crate::support::{Delays, together};

const SIZE: usize = 40;
const FANOUT: usize = 3;
const LIMITS: HandshakeTimeouts = HandshakeTimeouts {
    first: Duration::from_secs(40),
    level: Duration::from_secs(2),
};
/// Time for what comes soon.
const AMPLE: Duration = Duration::from_secs(60);

/// A rank that differs from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Guest {
    /// Built from another version.
    Another,
    /// Sends a message of no version.
    Garbage,
    /// Sends nothing at all.
    Silent,
}

fn identity(rank: usize, build: &str) -> RankIdentity {
    RankIdentity {
        rank,
        build: build.to_owned(),
        host: host(rank),
        kernel: "kernel".to_owned(),
    }
}

fn host(rank: usize) -> String {
    format!("node{rank:02}")
}

fn greet(team: &mut Team<VirtualLink>, build: &str) -> Roll {
    let own = identity(team.link().rank(), build);
    let differs = |own: &str, above: &str| format!("{own} is not {above}");
    team.greet(own, LIMITS, &differs)
}

fn be(guest: Guest, team: &mut Team<VirtualLink>) -> Option<Roll> {
    let rank = team.link().rank();
    match guest {
        Guest::Another => return Some(greet(team, "2.0.0")),
        Guest::Garbage => {
            for other in (0..SIZE).filter(|other| *other != rank) {
                team.link().send(other, &[99, 1, 2], AMPLE).expect("sent");
            }
        }
        Guest::Silent => {}
    }
    None
}

/// Final knowledge of each rank, and the time taken, if this rank is that guest.
fn meet(guest: Guest, at: usize) -> Vec<(Option<Roll>, Duration)> {
    let delays = Delays {
        least_ns: 1_000,
        greatest_ns: 20_000,
        seed: 5,
    };
    let results = together(&[Skew::default(); SIZE], delays, FANOUT, |mut team| {
        let met = match team.link().rank() == at {
            true => be(guest, &mut team),
            false => Some(greet(&mut team, "1.0.0")),
        };
        let took = team.link().true_ns().unsigned_abs();
        // The process of the rank ends.
        team.link().fall_silent();
        Ok::<_, LostRank>((met, Duration::from_nanos(took)))
    });
    results
        .into_iter()
        .map(|result| result.expect("ok"))
        .collect()
}

/// The root's reason to stop, and the host of the rank at this position as far as the root knows it.
fn roots_word(results: &[(Option<Roll>, Duration)], at: usize) -> (Halt, Option<String>) {
    let root = results[0].0.as_ref().expect("a rank of this build");
    let known = root.known.iter().find(|one| one.rank == at);
    let halt = root.halt.clone().expect("one rank is a guest");
    (halt, known.map(|one| one.host.clone()))
}

fn all_end_in_time(results: &[(Option<Roll>, Duration)], at: usize) {
    let in_time = LIMITS.in_all(Tree::new(SIZE, FANOUT).height(0));
    for (rank, (met, took)) in results.iter().enumerate() {
        if rank != at {
            let met = met.as_ref().expect("a rank of this build");
            assert!(met.halt.is_some(), "rank {rank} goes on");
            assert!(*took <= in_time, "rank {rank} took {took:?}");
        }
    }
}

#[test]
fn ranks_of_one_build_meet() {
    let results = meet(Guest::Silent, SIZE);
    for (rank, (met, took)) in results.iter().enumerate() {
        let met = met.as_ref().expect("a rank of this build");
        assert_eq!(met.halt, None, "rank {rank}");
        assert!(*took < Duration::from_secs(1));
    }
    let mut known = results[0].0.as_ref().expect("met").known.clone();
    known.sort_unstable();
    let all = (0..SIZE).map(|rank| identity(rank, "1.0.0"));
    assert_eq!(known, all.collect::<Vec<RankIdentity>>());
}

#[test]
fn rank_of_another_build_is_named() {
    for at in [1, 5, 12, 17, 39] {
        let results = meet(Guest::Another, at);
        all_end_in_time(&results, at);
        let (halt, known) = roots_word(&results, at);
        let trouble = UnreadyRank {
            rank: at,
            message: "2.0.0 is not 1.0.0".to_owned(),
        };
        assert_eq!(halt, Halt::Unready(trouble));
        assert_eq!(known, Some(host(at)));
        for (met, took) in &results {
            let met = met.as_ref().expect("all greet");
            assert!(matches!(met.halt, Some(Halt::Unready(_))));
            // No rank waits for another one.
            assert!(*took < Duration::from_secs(1), "{took:?}");
        }
    }
}

#[test]
fn a_rank_that_sends_garbage_is_named() {
    for at in [2, 17, 39] {
        let results = meet(Guest::Garbage, at);
        all_end_in_time(&results, at);
        let stranger = LostRank {
            rank: at,
            why: LossReason::Stranger,
        };
        assert_eq!(roots_word(&results, at).0, stranger.into());
    }
}

#[test]
fn a_silent_rank_is_named() {
    for at in [1, 5, 17, 39] {
        let results = meet(Guest::Silent, at);
        all_end_in_time(&results, at);
        let (halt, known) = roots_word(&results, at);
        assert!(
            matches!(halt, Halt::Lost(LostRank { rank, why: LossReason::Silent(_) }) if rank == at),
            "{halt:?}"
        );
        assert_eq!(known, None);
    }
}
