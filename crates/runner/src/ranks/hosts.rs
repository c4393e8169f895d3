//! The hosts that ranks run on. Ranks under the same kernel share its page cache and its counters.

use std::collections::{HashMap, HashSet};

use iolab_cluster::handshake::RankIdentity;
use iolab_record::tables::Rank;
use serde::{Deserialize, Serialize};

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Host {
    /// Name of the host.
    pub(super) name: String,
    /// Identity of its kernel, which containers with other host names share.
    pub(super) kernel: String,
}

impl Host {
    /// The host of this process.
    pub(super) fn here() -> Self {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy().into_owned();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let kernel = kernel.map_or_else(|_| name.clone(), |id| id.trim().to_owned());
        Self { name, kernel }
    }
}

/// The hosts of this many ranks in their order; without a name if none is known.
pub(super) fn in_order(known: Vec<RankIdentity>, ranks: usize) -> Vec<Host> {
    let mut hosts = vec![Host::default(); ranks];
    for one in known {
        if let Some(host) = hosts.get_mut(one.rank) {
            *host = Host {
                name: one.host,
                kernel: one.kernel,
            };
        }
    }
    hosts
}

/// How many kernels there are.
pub(super) fn count(hosts: &[Host]) -> usize {
    let kernels: HashSet<&str> = hosts.iter().map(|host| &*host.kernel).collect();
    kernels.len()
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

/// The ranks as a run file keeps them; none if there is one.
pub(super) fn rows(hosts: &[Host]) -> Vec<Rank> {
    if hosts.len() < 2 {
        return Vec::new();
    }
    let numbered = hosts.iter().zip(places(hosts)).enumerate();
    let row = |(id, (host, place)): (usize, (&Host, usize))| Rank {
        id: id as u32,
        host: place as u32,
        name: host.name.clone(),
    };
    numbered.map(row).collect()
}
