//! Accounts of devices, disks and NFS mounts, shared by ranks or not: sums over real messages between threads.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::together;
use crate::virtual_network::{Delays, Skew};
use iolab_cluster::link::Link;
use iolab_cluster::shared_counters::{Accounts, Number, Numbered, Shares};
use iolab_cluster::trial::TrialContribution;
use iolab_workload::counters::{
    Bottom, Counters, DeviceStat, NfsIo, Pressure, SharedAccount, SharedAccounts,
};
use iolab_workload::outcome::{ClientOutcome, Outcome};
use iolab_workload::region_state::Medium;
use proptest::prelude::*;

/// Whole disks, by their bits in sums.
const A: Number = (8, 0);
const B: Number = (8, 1);
/// Partitions of `A`.
const A1: Number = (8, 2);
const A2: Number = (8, 3);

/// Value of a host's account: a separate bit for each, so that sums show their parts, and how often.
fn held(host: usize, (_, minor): Number) -> u64 {
    1 << (8 * host as u64 + 2 * minor)
}

fn stat(read_bytes: u64) -> DeviceStat {
    DeviceStat {
        read_bytes,
        ..DeviceStat::default()
    }
}

/// Accounts of a rank whose target lies on a device on these disks; without disks, the device is a disk.
fn on(device: Number, disks: &[Number]) -> Accounts {
    Accounts {
        device: Some(device),
        disks: (!disks.is_empty()).then(|| disks.to_vec()),
        below: disks.to_vec(),
        nfs: None,
    }
}

fn over_nfs(file_system: Number) -> Accounts {
    Accounts {
        nfs: Some(file_system),
        ..Accounts::default()
    }
}

/// Reading of a rank.
fn reading(host: usize, own: &Accounts) -> Counters {
    Counters {
        device: own.device.map(|device| stat(held(host, device))),
        bottom: own.disks.as_ref().map(|disks| Bottom {
            stat: stat(disks.iter().map(|disk| held(host, *disk)).sum()),
            in_file: false,
            passes_on: false,
        }),
        nfs: own.nfs.map(|mount| NfsIo {
            read_bytes: held(host, mount),
            write_bytes: 0,
        }),
        pressure: Pressure {
            steal_ns: Some(host as u64 + 1),
            ..Pressure::default()
        },
        ..Counters::default()
    }
}

fn contribution(counters: Counters, shares: Shares) -> TrialContribution {
    TrialContribution {
        outcome: Outcome {
            counters,
            ..Outcome::default()
        },
        shares,
        apart: true,
        region_bytes: 0,
        parts: Vec::new(),
        clients: Vec::new(),
    }
}

/// Result at the root of a trial by the ranks of a roster, each of which is a client by itself.
fn trial(ranks: &[(usize, Accounts)], roster: &[usize]) -> TrialContribution {
    let timeout = Duration::from_secs(10);
    let hosts: Vec<usize> = ranks.iter().map(|(host, _)| *host).collect();
    let clients: Vec<usize> = (0..ranks.len()).collect();
    let all: Vec<_> = ranks.iter().map(|(host, own)| (*host, own)).collect();
    let numbered = Numbered::of(&all);
    let deed = |rank: usize| {
        let (host, own) = &ranks[rank];
        let shares = numbered.shares(&hosts, roster, rank);
        let deed = contribution(reading(*host, own), shares);
        let shared = numbered.shared(&clients, roster, rank);
        let client = deed.client(rank, Medium::Storage, shared);
        TrialContribution {
            clients: vec![client],
            ..deed
        }
    };
    let delays = Delays {
        least_ns: 1_000,
        greatest_ns: 2_000,
        seed: 1,
    };
    // Two children each: sums are joined on the way.
    let results = together(
        &vec![Skew::default(); ranks.len()],
        delays,
        2,
        |mut team| {
            let rank = team.link().rank();
            team.gather(roster.contains(&rank).then(|| deed(rank)), timeout)
        },
    );
    let mut results = results.into_iter();
    let root = results.next().expect("a root").expect("no rank is lost");
    root.flatten().expect("what all did")
}

fn device(deed: &TrialContribution) -> Option<u64> {
    deed.outcome.counters.device.map(|own| own.read_bytes)
}

fn disks(deed: &TrialContribution) -> Option<u64> {
    deed.outcome.counters.bottom.map(|own| own.stat.read_bytes)
}

fn client(deed: &TrialContribution, rank: usize) -> &ClientOutcome {
    let mut all = deed.clients.iter();
    all.find(|client| client.rank as usize == rank)
        .expect("a client")
}

/// One kind of accounts of a rank.
type Kind = fn(&Accounts) -> Option<Vec<Number>>;

const DEVICES: Kind = |own| Some(vec![own.device?]);
const DISKS: Kind = |own| own.disks.clone();
const MOUNTS: Kind = |own| Some(vec![own.nfs?]);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two disks, two partitions of a disk, or two NFS file systems, on three hosts.
    #[test]
    fn accounts_count_once_and_readers_are_known(
        places in prop::collection::vec((0..3usize, 0..2usize, any::<bool>()), 1..9), kind in 0..3usize,
    ) {
        let own = [
            [on(A, &[]), on(B, &[])],
            [on(A1, &[A]), on(A2, &[A])],
            [over_nfs(A), over_nfs(B)],
        ];
        let ranks: Vec<(usize, Accounts)> =
            places.iter().map(|(host, which, _)| (*host, own[kind][*which].clone())).collect();
        let roster: Vec<usize> = (0..ranks.len()).filter(|rank| places[*rank].2).collect();
        prop_assume!(!roster.is_empty());
        let whole = trial(&ranks, &roster);
        let sum = |kind: Kind| {
            let of_rank = |rank: &usize| {
                let (host, own) = &ranks[*rank];
                kind(own).into_iter().flatten().map(|number| (*host, number))
            };
            let once: BTreeSet<(usize, Number)> = roster.iter().flat_map(of_rank).collect();
            let sum = once.iter().map(|(host, number)| held(*host, *number)).sum();
            (!once.is_empty()).then_some(sum)
        };
        let counters = whole.outcome.counters;
        let mounts = counters.nfs.map(|nfs| nfs.read_bytes);
        prop_assert_eq!([device(&whole), disks(&whole), mounts], [DEVICES, DISKS, MOUNTS].map(sum));
        let worst = roster.iter().map(|rank| ranks[*rank].0 as u64 + 1).max();
        prop_assert_eq!(counters.pressure.steal_ns, worst);
        for rank in &roster {
            let (host, own) = &ranks[*rank];
            let shared = |kind: Kind| {
                let reads = |(place, other): &(usize, Accounts)| place == host && kind(other) == kind(own);
                let readers: Vec<usize> = roster.iter().copied().filter(|rank| reads(&ranks[*rank])).collect();
                (kind(own).is_some() && readers.len() > 1).then(|| SharedAccount {
                    first: readers[0] as u64,
                    clients: readers.len() as u64,
                })
            };
            let found = client(&whole, *rank);
            prop_assert_eq!(found.counters, reading(*host, own));
            let [device, disks, nfs] = [DEVICES, DISKS, MOUNTS].map(shared);
            prop_assert_eq!(found.shared, SharedAccounts { device, disks, nfs });
        }
    }
}

#[test]
fn overlapping_but_different_accounts_have_no_sum() {
    // A volume on both disks, and one on the first of them.
    let volumes = [(0, on((9, 2), &[A, B])), (0, on((9, 3), &[A]))];
    let whole = trial(&volumes, &[0, 1]);
    assert_eq!(disks(&whole), None);
    let both = held(0, (9, 2)) + held(0, (9, 3));
    assert_eq!(device(&whole), Some(both));
    // Each by itself is known: as a client, as the only participant, and on another host.
    let own = client(&whole, 1).counters.bottom;
    assert_eq!(own.map(|own| own.stat.read_bytes), Some(held(0, A)));
    assert_eq!(disks(&trial(&volumes, &[0])), Some(held(0, A) + held(0, B)));
    let [wide, narrow] = volumes;
    let apart = [wide, (1, narrow.1)];
    let sum = held(0, A) + held(0, B) + held(1, A);
    assert_eq!(disks(&trial(&apart, &[0, 1])), Some(sum));
    // A partition and its whole disk, whose account has the partition's traffic.
    let nested = [(0, on(A, &[])), (0, on(A1, &[A]))];
    assert_eq!(device(&trial(&nested, &[0, 1])), None);
    // A loop device over a file, and the partition with that file.
    let over_a_file = Accounts {
        below: vec![A1, A],
        ..on((7, 4), &[A])
    };
    let stacked = [(0, over_a_file), (0, on(A1, &[A]))];
    let whole = trial(&stacked, &[0, 1]);
    assert_eq!((device(&whole), disks(&whole)), (None, Some(held(0, A))));
    let [upper, lower] = stacked;
    let apart = [upper, (1, lower.1)];
    let sum = held(0, (7, 4)) + held(1, A1);
    assert_eq!(device(&trial(&apart, &[0, 1])), Some(sum));
    // A target on no device, and one on a disk.
    let nowhere = [(0, on(A, &[])), (0, Accounts::default())];
    assert_eq!(device(&trial(&nowhere, &[0, 1])), None);
}

#[test]
fn loop_device_shows_in_the_sum() {
    let ranks = [(0, on(A1, &[A])), (0, on((7, 3), &[A]))];
    let all: Vec<_> = ranks.iter().map(|(host, own)| (*host, own)).collect();
    let numbered = Numbered::of(&all);
    let deed = |rank: usize, in_file| {
        let mut counters = reading(0, &ranks[rank].1);
        counters.bottom = counters.bottom.map(|own| Bottom { in_file, ..own });
        contribution(counters, numbered.shares(&[0, 0], &[0, 1], rank))
    };
    for (a, b) in [(false, true), (true, false)] {
        let whole = iolab_cluster::link::Gathered::join(deed(0, a), deed(1, b));
        let sum = whole.outcome.counters.bottom.expect("one disk");
        assert_eq!((sum.stat.read_bytes, sum.in_file), (held(0, A), true));
    }
}

#[test]
fn ranks_of_a_client_share_with_nobody() {
    let own = on(A, &[]);
    let of_host = Numbered::of(&[(0, &own); 4]).shared(&[0; 4], &[0, 1, 2, 3], 2);
    assert_eq!(of_host, SharedAccounts::default());
}
