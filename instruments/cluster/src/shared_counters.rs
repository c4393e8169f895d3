//! Accounts that the kernel keeps for all processes of a host: of a device, of the disks below it, of an NFS
//! mount. Ranks whose targets share an account all read it, and it counts once.
//!
//! Ranks that take part in a trial, and the part of the region that each of them reads.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use iolab_workload::counters::{Bottom, SharedAccount, SharedAccounts};
use iolab_workload::trial::Shift;
use iolab_workload::units::counted;
use iolab_workload::{Result, usage_errors};

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

/// Participating ranks in ascending order, rank 0 among them. `hosts` has the host of each rank. Hosts are
/// taken in the order of their first ranks, and ranks in turn from each, so that they are spread as evenly as
/// possible.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): more ranks than there are.
pub fn taking_part(
    hosts: &[usize],
    ranks: Option<u32>,
    on_hosts: Option<u32>,
) -> Result<Vec<usize>> {
    let mut in_order: Vec<usize> = Vec::new();
    // Turn of each rank on its host.
    let mut turns: Vec<(usize, usize)> = Vec::with_capacity(hosts.len());
    let mut seen: Vec<usize> = Vec::new();
    for (rank, host) in hosts.iter().enumerate() {
        let place = in_order.iter().position(|known| known == host);
        let place = place.unwrap_or_else(|| {
            in_order.push(*host);
            seen.push(0);
            in_order.len() - 1
        });
        if on_hosts.is_none_or(|count| place < count as usize) {
            turns.push((seen[place], rank));
        }
        seen[place] += 1;
    }
    let wanted = ranks.map_or(turns.len(), |count| count as usize);
    let count = on_hosts.map_or(0, |count| count as usize);
    let on_number = if on_hosts.is_some() {
        " on this number of hosts"
    } else {
        ""
    };
    usage_errors! {
        count > in_order.len() => format!("hosts={count}, and the ranks are on {}", counted(in_order.len() as u64, "host")),
            "start ranks on more hosts, or choose fewer";
        wanted > turns.len() => format!("ranks={wanted}, and there are {}{on_number}", turns.len()),
            "start more, or choose fewer";
        count > wanted => format!("ranks={wanted} on hosts={count}"), "at least one rank is needed on each host";
    }
    turns.sort_unstable();
    let mut roster: Vec<usize> = turns
        .into_iter()
        .take(wanted)
        .map(|(_, rank)| rank)
        .collect();
    roster.sort_unstable();
    Ok(roster)
}

/// Part of each rank, where rank `r` wrote part `r`; every part is assigned once. `hosts` has the host of each
/// rank.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): an impossible shift.
pub fn parts(hosts: &[usize], shift: Shift) -> Result<Vec<usize>> {
    let ranks = hosts.len();
    match shift {
        Shift::None => Ok((0..ranks).collect()),
        Shift::Rank => Ok((0..ranks).map(|rank| (rank + 1) % ranks).collect()),
        Shift::Host => over_hosts(hosts),
    }
}

/// Ranks in the order of their hosts take the part that is one full host further on.
fn over_hosts(hosts: &[usize]) -> Result<Vec<usize>> {
    let ranks = hosts.len();
    let mut order: Vec<usize> = (0..ranks).collect();
    order.sort_by_key(|rank| hosts[*rank]);
    let on_one_host = order.chunk_by(|a, b| hosts[*a] == hosts[*b]);
    let most = on_one_host.map(<[usize]>::len).max().unwrap_or(0);
    usage_errors! {
        most == ranks => "shift=host with all ranks on one host",
            "the page cache of a host serves all of its ranks: start ranks on a second host, or set shift=rank";
        2 * most > ranks => format!("shift=host with {most} of {ranks} ranks on one host"),
            "the other hosts have too few parts for them: start as many ranks on each host";
    }
    let mut parts = vec![0; ranks];
    for (place, rank) in order.iter().enumerate() {
        parts[*rank] = order[(place + most) % ranks];
    }
    Ok(parts)
}

/// Ranks among `roster` with the same value as `rank`, such as the same client; `of_ranks` has the values of
/// all ranks.
pub fn members<T: PartialEq>(of_ranks: &[T], roster: &[usize], rank: usize) -> Vec<usize> {
    let same = |other: &&usize| of_ranks.get(**other) == of_ranks.get(rank);
    roster.iter().filter(same).copied().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_are_taken_from_all_hosts_in_turn() {
        let hosts = [0, 0, 0, 7, 7, 3];
        let of = |ranks, on| taking_part(&hosts, ranks, on).expect("there are as many");
        assert_eq!(of(None, None), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(Some(1), None), [0]);
        assert_eq!(of(Some(3), None), [0, 3, 5]);
        assert_eq!(of(Some(4), None), [0, 1, 3, 5]);
        assert_eq!(of(None, Some(2)), [0, 1, 2, 3, 4]);
        assert_eq!(of(Some(4), Some(2)), [0, 1, 3, 4]);
        let told = [
            (Some(7), None),
            (None, Some(4)),
            (Some(6), Some(2)),
            (Some(1), Some(2)),
        ]
        .map(|(ranks, on)| {
            let error = taking_part(&hosts, ranks, on).expect_err("more than there are");
            error.message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
    ranks=7, and there are 6
    hosts=4, and the ranks are on 3 hosts
    ranks=6, and there are 5 on this number of hosts
    ranks=1 on hosts=2
    ");
    }

    proptest! {
        #[test]
        fn ranks_are_spread_evenly_over_hosts(
            hosts in prop::collection::vec(0usize..5, 1..40), share in 0.0f64..=1.0,
        ) {
            let wanted = ((hosts.len() as f64 * share) as u32).max(1);
            let roster = taking_part(&hosts, Some(wanted), None).expect("there are as many");
            prop_assert_eq!(roster.len(), wanted as usize);
            prop_assert_eq!(roster[0], 0);
            let count = |host, of: &[usize]| of.iter().filter(|rank| hosts[**rank] == host).count();
            let all: Vec<usize> = (0..hosts.len()).collect();
            for a in 0..5 {
                for b in 0..5 {
                    let has_room = count(b, &roster) < count(b, &all);
                    prop_assert!(!has_room || count(a, &roster) <= count(b, &roster) + 1);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_part_is_read_once_by_another_host(hosts in prop::collection::vec(0usize..5, 2..40)) {
            let all: Vec<usize> = (0..hosts.len()).collect();
            for shift in [Shift::None, Shift::Rank, Shift::Host] {
                let of_host = |host| hosts.iter().filter(|h| **h == host).count();
                let most = (0..5).map(of_host).max().unwrap_or(0);
                let Ok(parts) = parts(&hosts, shift) else {
                    prop_assert!(shift == Shift::Host && 2 * most > hosts.len());
                    continue;
                };
                let mut sorted = parts.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &all);
                for (rank, part) in parts.iter().enumerate() {
                    match shift {
                        Shift::None => prop_assert_eq!(rank, *part),
                        Shift::Rank => prop_assert_ne!(rank, *part),
                        Shift::Host => prop_assert_ne!(hosts[rank], hosts[*part]),
                    }
                }
            }
        }
    }

    #[test]
    fn one_host_cannot_escape_its_own_cache() {
        let error = parts(&[0, 0, 0], Shift::Host).expect_err("one host");
        insta::assert_snapshot!(error.message(), @"shift=host with all ranks on one host");
        let error = parts(&[0, 0, 1], Shift::Host).expect_err("two of three");
        insta::assert_snapshot!(error.message(), @"shift=host with 2 of 3 ranks on one host");
    }
}
