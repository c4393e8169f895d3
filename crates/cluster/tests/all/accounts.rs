//! Accounts of devices, disks and NFS mounts, shared by ranks or not: sums over real messages between threads.

use std::thread;
use std::time::Duration;

use iolab_cluster::link::Team;
use iolab_cluster::shared_counters::{Accounts, Number, Numbered};
use iolab_cluster::trial::{Client, TrialContribution};
use iolab_synthetic::thread_network::{ThreadLink, threads};
use iolab_workload::counters::{
    Bottom, Counters, DeviceStat, NfsIo, Pressure, SharedAccount, SharedAccounts,
};
use iolab_workload::outcome::Outcome;
use iolab_workload::region_state::Medium;

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

/// Result at the root of a trial by the ranks of a roster, each of which is a client by itself.
fn trial(ranks: &[(usize, Accounts)], roster: &[usize]) -> TrialContribution {
    let timeout = Duration::from_secs(10);
    let hosts: Vec<usize> = ranks.iter().map(|(host, _)| *host).collect();
    let clients: Vec<usize> = (0..ranks.len()).collect();
    let all: Vec<_> = ranks.iter().map(|(host, own)| (*host, own)).collect();
    let numbered = Numbered::of(&all);
    let deed = |rank: usize| {
        let (host, own) = &ranks[rank];
        let outcome = Outcome {
            counters: reading(*host, own),
            ..Outcome::default()
        };
        let deed = TrialContribution {
            outcome,
            shares: numbered.shares(&hosts, roster, rank),
            apart: true,
            region_bytes: 0,
            parts: Vec::new(),
            clients: Vec::new(),
        };
        let shared = numbered.shared(&clients, roster, rank);
        let client = deed.client(rank, Medium::Storage, shared);
        TrialContribution {
            clients: vec![client],
            ..deed
        }
    };
    let part = |link: ThreadLink, rank: usize| {
        let own = roster.contains(&rank).then(|| deed(rank));
        // Two children each: sums are joined on the way.
        Team::new(link, 2).gather(own, timeout)
    };
    let part = &part;
    thread::scope(|scope| {
        let links = threads(ranks.len(), || 0).into_iter().zip(0..);
        let ranks: Vec<_> = links
            .map(|(link, rank)| scope.spawn(move || part(link, rank)))
            .collect();
        let results = ranks.into_iter().map(|rank| rank.join().expect("no panic"));
        let results: Vec<_> = results.map(|own| own.expect("no rank is lost")).collect();
        let root = results.into_iter().next().flatten();
        root.flatten().expect("what all did")
    })
}

fn device(deed: &TrialContribution) -> Option<u64> {
    deed.outcome.counters.device.map(|own| own.read_bytes)
}

fn disks(deed: &TrialContribution) -> Option<u64> {
    deed.outcome.counters.bottom.map(|own| own.stat.read_bytes)
}

fn client(deed: &TrialContribution, rank: u64) -> &Client {
    let mut all = deed.clients.iter();
    all.find(|client| client.rank == rank).expect("a client")
}

fn every(ranks: &[(usize, Accounts)]) -> Vec<usize> {
    (0..ranks.len()).collect()
}

#[test]
fn a_device_counts_once_per_host() {
    let disk = |device| on(device, &[]);
    for (ranks, wanted) in [
        // Two disks of one host, one disk of it, and disks of the same number on two hosts.
        (vec![(0, disk(A)), (0, disk(B))], held(0, A) + held(0, B)),
        (vec![(0, disk(A)), (0, disk(A))], held(0, A)),
        (vec![(0, disk(A)), (1, disk(A))], held(0, A) + held(1, A)),
        (
            vec![
                (0, disk(A)),
                (1, disk(B)),
                (0, disk(B)),
                (1, disk(A)),
                (0, disk(A)),
                (2, disk(B)),
                (1, disk(B)),
            ],
            held(0, A) + held(0, B) + held(1, A) + held(1, B) + held(2, B),
        ),
    ] {
        let whole = trial(&ranks, &every(&ranks));
        assert_eq!(device(&whole), Some(wanted), "{ranks:?}");
        // Every client has the account of its own device.
        for (rank, (host, own)) in (0..).zip(&ranks) {
            let counted = client(&whole, rank).counters;
            assert_eq!(counted, reading(*host, own), "rank {rank}");
        }
        let hosts = ranks.iter().map(|(host, _)| *host as u64 + 1).max();
        assert_eq!(whole.outcome.counters.pressure.steal_ns, hosts);
    }
}

#[test]
fn first_participating_rank_reads_a_device_for_all() {
    let ranks = [A, B, B, A].map(|device| (0, on(device, &[])));
    assert_eq!(device(&trial(&ranks, &[0])), Some(held(0, A)));
    assert_eq!(device(&trial(&ranks, &[0, 3])), Some(held(0, A)));
    let both = held(0, A) + held(0, B);
    for roster in [&[0, 2][..], &[1, 2, 3], &[2, 3]] {
        assert_eq!(device(&trial(&ranks, roster)), Some(both), "{roster:?}");
    }
}

#[test]
fn partitions_are_devices_and_their_disk_counts_once() {
    let ranks = [(0, on(A1, &[A])), (0, on(A2, &[A])), (1, on(A1, &[A]))];
    let whole = trial(&ranks, &every(&ranks));
    assert_eq!(
        device(&whole),
        Some(held(0, A1) + held(0, A2) + held(1, A1))
    );
    assert_eq!(disks(&whole), Some(held(0, A) + held(1, A)));
    let shared = SharedAccounts {
        disks: Some(SharedAccount {
            first: 0,
            clients: 2,
        }),
        ..SharedAccounts::default()
    };
    assert_eq!(client(&whole, 0).shared, shared);
    assert_eq!(client(&whole, 1).shared, shared);
    assert_eq!(client(&whole, 2).shared, SharedAccounts::default());
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
        TrialContribution {
            outcome: Outcome {
                counters,
                ..Outcome::default()
            },
            shares: numbered.shares(&[0, 0], &[0, 1], rank),
            apart: true,
            region_bytes: 0,
            parts: Vec::new(),
            clients: Vec::new(),
        }
    };
    for (a, b) in [(false, true), (true, false)] {
        let whole = iolab_cluster::link::Gathered::join(deed(0, a), deed(1, b));
        let sum = whole.outcome.counters.bottom.expect("one disk");
        assert_eq!((sum.stat.read_bytes, sum.in_file), (held(0, A), true));
    }
}

#[test]
fn mounts_of_one_nfs_file_system_count_once() {
    let ranks = [A, A, B].map(|mount| (0, over_nfs(mount)));
    let whole = trial(&ranks, &[0, 1, 2]);
    let sum = whole.outcome.counters.nfs.map(|nfs| nfs.read_bytes);
    assert_eq!(sum, Some(held(0, A) + held(0, B)));
    let two = SharedAccount {
        first: 0,
        clients: 2,
    };
    assert_eq!(client(&whole, 1).shared.nfs, Some(two));
    assert_eq!(client(&whole, 2).shared.nfs, None);
}

#[test]
fn clients_sharing_a_device_know_the_first() {
    let ranks = [A, B, B, B].map(|device| (0, on(device, &[])));
    let whole = trial(&ranks, &every(&ranks));
    let of = |whole: &TrialContribution, rank| client(whole, rank).shared.device;
    let shared = |first, clients| Some(SharedAccount { first, clients });
    let all = [0, 1, 2, 3].map(|rank| of(&whole, rank));
    assert_eq!(all, [None, shared(1, 3), shared(1, 3), shared(1, 3)]);
    let some = trial(&ranks, &[0, 2, 3]);
    assert_eq!([2, 3].map(|rank| of(&some, rank)), [shared(2, 2); 2]);
    assert_eq!(of(&trial(&ranks, &[0, 3]), 3), None);
    // The ranks of a host are one client, to which shared accounts belong.
    let all: Vec<_> = ranks.iter().map(|(host, own)| (*host, own)).collect();
    let of_host = Numbered::of(&all).shared(&[0; 4], &[0, 1, 2, 3], 2);
    assert_eq!(of_host, SharedAccounts::default());
}
