//! Ranks that take part in a trial, and the part of the region that each of them reads.

use iolab_workload::quantity::counted;
use iolab_workload::trial::Shift;
use iolab_workload::{Error, Result};

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
    if let Some(count) = on_hosts.filter(|count| *count as usize > in_order.len()) {
        return Err(Error::usage(format!(
            "hosts={count}, and the ranks are on {}",
            counted(in_order.len() as u64, "host")
        ))
        .hint("start ranks on more hosts, or choose fewer"));
    }
    let wanted = ranks.map_or(turns.len(), |count| count as usize);
    if wanted > turns.len() {
        return Err(Error::usage(format!(
            "ranks={wanted}, and there are {}{}",
            turns.len(),
            if on_hosts.is_some() {
                " on this number of hosts"
            } else {
                ""
            }
        ))
        .hint("start more, or choose fewer"));
    }
    if let Some(count) = on_hosts.filter(|count| (*count as usize) > wanted) {
        return Err(Error::usage(format!("ranks={wanted} on hosts={count}"))
            .hint("at least one rank is needed on each host"));
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
        Shift::Rank if ranks < 2 => Err(Error::usage("shift=rank with one rank").hint(
            "each rank reads what another one wrote: start at least two, or leave shift out",
        )),
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
    if most == ranks {
        return Err(Error::usage("shift=host with all ranks on one host").hint(
            "the page cache of a host serves all of its ranks: start ranks on a second host, or set shift=rank",
        ));
    }
    if 2 * most > ranks {
        return Err(Error::usage(format!(
            "shift=host with {most} of {ranks} ranks on one host"
        ))
        .hint("the other hosts have too few parts for them: start as many ranks on each host"));
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
        assert!(parts(&[0], Shift::Rank).is_err());
    }
}
