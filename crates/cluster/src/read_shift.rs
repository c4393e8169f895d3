//! Part of the region that a rank reads: its own, or one written by another rank or host with separate caches.

use iolab_workload::trial::Shift;
use iolab_workload::{Error, Result};

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
