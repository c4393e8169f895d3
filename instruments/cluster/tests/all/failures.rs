//! A rank that falls silent, or whose clock jumps: every other rank ends within the stated time.

use std::time::Duration;

use iolab_cluster::clock::{Activity, ClockJumped, OtherClock};
use iolab_cluster::link::{Gathered, Link, List, LossReason, LostRank, Team};
use iolab_cluster::trial::{Halt, TrialTimeouts};
use iolab_workload::Error;
use serde::{Deserialize, Serialize};

use crate::support::together;
use crate::virtual_network::{Delays, Skew};

const TIMEOUT: Duration = Duration::from_secs(2);
const HABITS: TrialTimeouts = TrialTimeouts {
    rounds: 2,
    timeout: TIMEOUT,
    trial: TIMEOUT,
};

fn delays() -> Delays {
    Delays {
        least_ns: 1_000,
        greatest_ns: 20_000,
        seed: 5,
    }
}

/// All ranks send something to the root and get an answer.
fn meet<L: Link>(team: &mut Team<L>) -> Result<(), LostRank> {
    team.gather(List(vec![0_u64]), TIMEOUT)?;
    let in_all = team.timeout_in_all(TIMEOUT);
    team.broadcast(&[], in_all).map(|_| ())
}

#[test]
fn every_rank_gives_up_on_a_silent_one() {
    for silent in [1, 5, 17, 29] {
        let results = together(&[Skew::default(); 30], delays(), 3, |mut team| {
            if team.link().rank() == silent {
                team.link().fall_silent();
                return Ok(());
            }
            let result = meet(&mut team);
            let in_time = team.timeout_in_all(TIMEOUT) * 2;
            let took = team.link().true_ns();
            assert!(took <= in_time.as_nanos() as i64, "{took} ns");
            // The process of the rank ends.
            team.link().fall_silent();
            result
        });
        let goes_on = |rank: &usize| results[*rank].is_ok();
        assert!((0..30).filter(goes_on).eq([silent]), "{results:?}");
        let lost = results[0].expect_err("a rank is lost");
        assert_eq!(lost.rank, silent);
        assert!(matches!(lost.why, LossReason::Silent(_)), "{lost}");
    }
}

#[test]
fn ranks_connected_to_the_root_learn_the_loss() {
    let clocks = [Skew::default(); 12];
    let silent = 2;
    // Children of rank 2 in this tree.
    let cut = [5, 6];
    let results = together(&clocks, delays(), 2, |team| {
        let mut team = team;
        if team.link().rank() == silent {
            team.link().fall_silent();
            return Ok(());
        }
        let result = team.agree(HABITS, Ok(()));
        team.link().fall_silent();
        result
    });
    for (rank, result) in results
        .into_iter()
        .enumerate()
        .filter(|(rank, _)| *rank != silent)
    {
        let Err(Halt::Lost(lost)) = result else {
            panic!("rank {rank} goes on");
        };
        let is_cut = cut.contains(&rank) || rank >= 11;
        assert!(lost.rank == silent || is_cut, "rank {rank}: {lost}");
    }
}

#[test]
fn the_root_names_the_rank_whose_clock_jumped() {
    let results = together(&[Skew::default(); 9], delays(), 2, |mut team| {
        let is_jumper = team.link().rank() == 7;
        team.synchronise(4, TIMEOUT)?;
        if is_jumper {
            team.link().jump(3_000_000_000);
        }
        team.link().work(1_000_000_000);
        meet(&mut team)?;
        team.synchronise(4, TIMEOUT)?;
        let now = team.link().now_ns();
        let activity = Activity::of([(now, now + 1)].into_iter()).expect("a worker");
        team.gather(Dated(activity), TIMEOUT).map(|_| ())
    });
    let jumped = Err(LostRank {
        rank: 7,
        why: LossReason::ClockJumped,
    });
    // The ranks between it and the root know of the loss too.
    assert_eq!(
        (results[0], results[1], results[3]),
        (jumped, jumped, jumped)
    );
    assert_eq!((results[2], results[7]), (Ok(()), Ok(())));
}

/// A value with a date.
#[derive(Serialize, Deserialize)]
struct Dated(Activity);

impl Gathered for Dated {
    fn seen_through(self, clock: &OtherClock) -> Result<Self, ClockJumped> {
        self.0.seen_through(clock).map(Self)
    }

    fn join(self, other: Self) -> Self {
        Self(self.0.join(other.0))
    }
}

#[test]
fn every_rank_learns_which_one_cannot_start() {
    let results = together(&[Skew::default(); 20], delays(), 3, |mut team| {
        let ready = match team.link().rank() {
            11 => Err(Error::failed("no space left").hint("free some")),
            14 => Err(Error::usage("no such directory")),
            _ => Ok(()),
        };
        team.start(HABITS, ready)
    });
    let trouble = Halt::Unready {
        rank: 11,
        error: Error::failed("no space left").hint("free some"),
    };
    for result in results {
        assert_eq!(result, Err(trouble.clone()));
    }
}

/// A late message to the first rank of a host is not mistaken for another one, nor for a later one.
#[test]
fn late_messages_of_a_rank_are_skipped() {
    let clocks = [Skew::default(); 4];
    let results = together(&clocks, delays(), 3, |mut team| {
        let rank = team.link().rank();
        if rank == 1 {
            team.link().work(1_500_000_000);
        }
        let join = |team: &mut Team<_>, own: u64| {
            let list = || List(vec![own + rank as u64]);
            let joined = team.join_at_first(&[0, 1, 2], list, TIMEOUT / 2);
            joined.map(|joined| joined.map(|all| all.0))
        };
        let mut said = Vec::new();
        if rank < 3 {
            said.push(join(&mut team, 10));
        }
        let met = team.gather(List(vec![rank as u64]), TIMEOUT)?;
        assert_eq!(met.map(|all| all.0.len()), (rank == 0).then_some(4));
        if rank < 3 {
            said.push(join(&mut team, 20));
        }
        Ok::<_, LostRank>(said)
    });
    let root = results[0].as_ref().expect("nothing is lost");
    let silent = LostRank {
        rank: 1,
        why: LossReason::Silent(TIMEOUT / 2),
    };
    assert_eq!(root[..], [Err(silent), Ok(Some(vec![20, 21, 22]))]);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

#[test]
fn what_cannot_be_read_names_its_sender() {
    let results = together(&[Skew::default(); 2], delays(), 2, |mut team| {
        if team.is_root() {
            return meet(&mut team);
        }
        team.link().send(0, &[99, 1, 2], TIMEOUT)
    });
    let garbled = LostRank {
        rank: 1,
        why: LossReason::Garbled,
    };
    assert_eq!(results[0], Err(garbled));
    assert_eq!(
        garbled.to_string(),
        "rank 1 sent a message that cannot be read"
    );
    let why = LossReason::Silent(Duration::from_millis(2_500));
    let lost = LostRank { rank: 3, why };
    assert_eq!(lost.to_string(), "rank 3 has not answered for 2.5 s");
}
