//! Accounts that the kernel keeps for all processes of a host: of a device, of the disks below it, of an NFS
//! mount. Ranks whose targets share an account all read it, and it counts once.

use std::collections::{BTreeMap, BTreeSet};

use iolab_workload::counters::{Bottom, SharedAccount, SharedAccounts};

use crate::participants::members;
use serde::{Deserialize, Serialize};

/// Number of a device: major, minor.
pub type Number = (u64, u64);

/// Accounts of a rank's target on its host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    /// Device that it lies on.
    pub device: Option<Number>,
    /// Disks below that device; `None` if it is the bottom itself, or the bottom is unknown.
    pub disks: Option<Vec<Number>>,
    /// All devices below that device.
    pub below: Vec<Number>,
    /// File system of its NFS mount: mounts of the same one share an account.
    pub nfs: Option<Number>,
}

/// Share of a rank's reading of an account in the sum over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccountShare {
    /// No share: an earlier rank reads the same account.
    Nothing,
    /// The whole reading.
    All,
    /// Unknown: the rank has no such account, or another account counts a part of the same traffic.
    Unknown,
}

/// Share in each account of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// Share in pressure and steal, which the kernel counts for the whole host.
    pub host: AccountShare,
    /// Share in the device.
    pub device: AccountShare,
    /// Share in the disks below it.
    pub disks: AccountShare,
    /// Share in the NFS mount.
    pub nfs: AccountShare,
}

impl Shares {
    /// Shares of two ranks together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            host: self.host.max(other.host),
            device: self.device.max(other.device),
            disks: self.disks.max(other.disks),
            nfs: self.nfs.max(other.nfs),
        }
    }
}

/// Sum of two readings with their shares; `None` if it is unknown.
pub fn sum<T>(
    (a, a_adds): (Option<T>, AccountShare),
    (b, b_adds): (Option<T>, AccountShare),
    plus: impl Fn(T, T) -> T,
) -> Option<T> {
    match (a_adds, b_adds) {
        (AccountShare::Unknown, _) | (_, AccountShare::Unknown) => None,
        (AccountShare::All, AccountShare::All) => a.zip(b).map(|(a, b)| plus(a, b)),
        (AccountShare::All, AccountShare::Nothing) => a,
        (AccountShare::Nothing, _) => b,
    }
}

/// Sum of two readings of disks with their shares. A loop device of either rank is noted, even if only the
/// other reading counts.
pub fn sum_of_disks(
    a: (Option<Bottom>, AccountShare),
    b: (Option<Bottom>, AccountShare),
) -> Option<Bottom> {
    let in_file = [a.0, b.0].into_iter().flatten().any(|own| own.in_file);
    let passes_on = [a.0, b.0].into_iter().flatten().all(|own| own.passes_on);
    let plus = |a: Bottom, b: Bottom| Bottom {
        stat: a.stat.plus(b.stat),
        ..a
    };
    sum(a, b, plus).map(|sum| Bottom {
        in_file,
        passes_on,
        ..sum
    })
}

/// Numbered accounts of all ranks, in their order. Ranks with the same number read the same account. `None` for
/// a rank without such an account, or if another rank's account counts a part of the same traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    device: Vec<Option<u64>>,
    disks: Vec<Option<u64>>,
    nfs: Vec<Option<u64>>,
}

impl Numbered {
    /// Numbers for ranks on these hosts, in their order.
    pub fn of(ranks: &[(usize, &Accounts)]) -> Self {
        let devices: BTreeSet<(usize, Number)> = ranks
            .iter()
            .filter_map(|(host, own)| Some((*host, own.device?)))
            .collect();
        let below: BTreeSet<(usize, Number)> = ranks
            .iter()
            .flat_map(|(host, own)| own.below.iter().map(|device| (*host, *device)))
            .collect();
        // Sets of disks that contain each disk.
        let mut sets: BTreeMap<(usize, Number), BTreeSet<&[Number]>> = BTreeMap::new();
        for (host, own) in ranks {
            let disks = own.disks.as_deref().unwrap_or_default();
            for disk in disks {
                sets.entry((*host, *disk)).or_default().insert(disks);
            }
        }
        let device = |&(host, own): &(usize, &Accounts)| {
            let device = own.device?;
            // A device's traffic is counted again by each device below it, which another rank may use directly.
            let mut lower = own.below.iter().map(|lower| (host, *lower));
            let is_apart =
                !below.contains(&(host, device)) && !lower.any(|lower| devices.contains(&lower));
            is_apart.then_some((host, device))
        };
        let disks = ranks.iter().enumerate().map(|(rank, &(host, own))| {
            let disks = own.disks.as_deref()?;
            let is_one = |disk: &Number| sets.get(&(host, *disk)).is_some_and(|s| s.len() == 1);
            // Bytes that end in memory have an empty account, shared with no other rank.
            let alone = disks.is_empty().then_some(rank);
            disks.iter().all(is_one).then_some((host, disks, alone))
        });
        Self {
            device: numbers(ranks.iter().map(device)),
            disks: numbers(disks),
            nfs: numbers(ranks.iter().map(|(host, own)| Some((*host, own.nfs?)))),
        }
    }

    /// Shares of a rank in the sums over the ranks `among`; `hosts` has the host of each rank.
    pub fn shares(&self, hosts: &[usize], among: &[usize], rank: usize) -> Shares {
        let adds = |numbers: &[Option<u64>]| match numbers.get(rank) {
            None | Some(None) => AccountShare::Unknown,
            Some(_) if members(numbers, among, rank).first() == Some(&rank) => AccountShare::All,
            Some(_) => AccountShare::Nothing,
        };
        Shares {
            host: match members(hosts, among, rank).first() == Some(&rank) {
                true => AccountShare::All,
                false => AccountShare::Nothing,
            },
            device: adds(&self.device),
            disks: adds(&self.disks),
            nfs: adds(&self.nfs),
        }
    }

    /// Accounts of a rank's client that other clients among `roster` read too; `clients` has the client of each
    /// rank.
    pub fn shared(&self, clients: &[usize], roster: &[usize], rank: usize) -> SharedAccounts {
        let shared = |numbers: &[Option<u64>]| {
            numbers.get(rank).copied().flatten()?;
            let readers = members(numbers, roster, rank);
            let own = |reader: &usize| clients.get(*reader);
            let all: BTreeSet<_> = readers.iter().filter_map(own).collect();
            (all.len() > 1).then(|| SharedAccount {
                first: members(clients, roster, readers[0])[0] as u64,
                clients: all.len() as u64,
            })
        };
        SharedAccounts {
            device: shared(&self.device),
            disks: shared(&self.disks),
            nfs: shared(&self.nfs),
        }
    }
}

/// Numbers keys in the order of their first occurrence.
fn numbers<K: Ord>(keys: impl Iterator<Item = Option<K>>) -> Vec<Option<u64>> {
    let mut known: BTreeMap<K, u64> = BTreeMap::new();
    keys.map(|key| {
        let next = known.len() as u64;
        key.map(|key| *known.entry(key).or_insert(next))
    })
    .collect()
}
