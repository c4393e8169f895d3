//! The hosts that ranks run on. Ranks under the same kernel share its page cache and its counters.

use std::collections::HashSet;

use iolab_cluster::clock::{ClockJumped, OtherClock};
use iolab_cluster::team::Gathered;
use iolab_cluster::wire::{Reader, Wire, Writer};
use iolab_record::tables::Rank;

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// Its name.
    pub(super) name: String,
    /// What its kernel is known by, whatever containers call it.
    kernel: String,
}

impl Host {
    /// The one that this process runs on.
    pub(super) fn here() -> Self {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy().into_owned();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let kernel = kernel.map_or_else(|_| name.clone(), |id| id.trim().to_owned());
        Self { name, kernel }
    }
}

/// Ranks, each with its host.
pub(super) struct Hosts(Vec<(u64, (String, String))>);

impl Hosts {
    /// Of one rank.
    pub(super) fn of(rank: u64, host: Host) -> Self {
        Self(vec![(rank, (host.name, host.kernel))])
    }

    /// In the order of ranks.
    pub(super) fn in_order(mut self) -> Vec<Host> {
        self.0.sort_unstable_by_key(|(rank, _)| *rank);
        let host = |(_, (name, kernel))| Host { name, kernel };
        self.0.into_iter().map(host).collect()
    }
}

impl Gathered for Hosts {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Wire::read(from).map(Self)
    }

    fn seen_through(self, _clock: &OtherClock) -> Result<Self, ClockJumped> {
        Ok(self)
    }

    fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// How many kernels there are.
pub(super) fn count(hosts: &[Host]) -> usize {
    let kernels: HashSet<&str> = hosts.iter().map(|host| &*host.kernel).collect();
    kernels.len()
}

/// The first rank of each host, as a message.
pub(super) fn write_speakers(hosts: &[Host]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let first = |(_, host): &(usize, &Host)| seen.insert(host.kernel.clone());
    let speakers: Vec<u64> = hosts
        .iter()
        .enumerate()
        .filter(first)
        .map(|(rank, _)| rank as u64)
        .collect();
    let mut to = Writer::default();
    speakers.write(&mut to);
    to.into_bytes()
}

/// Whether a rank is among the first ones of their hosts.
pub(super) fn speaks(message: &[u8], rank: u64) -> bool {
    let speakers: Option<Vec<u64>> = Wire::read(&mut Reader::new(message));
    speakers.is_some_and(|speakers| speakers.contains(&rank))
}

/// The ranks as a run file keeps them; none where there is one.
pub(super) fn rows(hosts: &[Host]) -> Vec<Rank> {
    if hosts.len() < 2 {
        return Vec::new();
    }
    let mut kernels: Vec<&str> = Vec::new();
    let mut rows = Vec::with_capacity(hosts.len());
    for (id, host) in hosts.iter().enumerate() {
        let known = kernels.iter().position(|kernel| *kernel == host.kernel);
        let number = known.unwrap_or_else(|| {
            kernels.push(&host.kernel);
            kernels.len() - 1
        });
        rows.push(Rank {
            id: id as u32,
            host: number as u32,
            name: host.name.clone(),
        });
    }
    rows
}
