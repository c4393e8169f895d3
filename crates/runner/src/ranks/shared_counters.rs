//! Which ranks read the same accounts of the kernel: of one device, of the disks below it, of one NFS mount.

use iolab_cluster::link::Link;
use iolab_cluster::shared_counters::{Accounts, Numbered};
use iolab_storage::Target;
use iolab_workload::Result;

use super::Member;

/// The accounts that a target has on its host.
pub(super) fn of(target: &Target) -> Accounts {
    let stack = target.stack();
    let number = |(major, minor): (u32, u32)| (major.into(), minor.into());
    Accounts {
        device: stack.device.map(number),
        disks: stack
            .bottom
            .as_ref()
            .map(|disks| disks.iter().copied().map(number).collect()),
        below: stack.below.iter().copied().map(number).collect(),
        nfs: stack.nfs.as_ref().map(|mount| number(mount.file_system)),
    }
}

impl Member {
    /// Finds out which of the accounts of its targets other ranks read, too.
    pub(super) fn know_accounts(&mut self, own: Vec<Accounts>) -> Result<()> {
        let rank = self.team.link().rank() as u64;
        let places = self.places.clone();
        self.accounts = self.pool((rank, own), |mut all| {
            all.sort_unstable_by_key(|(rank, _)| *rank);
            numbered(&places, &all)
        })?;
        Ok(())
    }
}

/// The accounts of each target, where `places` says on which host each rank is.
fn numbered(places: &[usize], ranks: &[(u64, Vec<Accounts>)]) -> Vec<Numbered> {
    let targets = ranks.first().map_or(0, |(_, own)| own.len());
    let none = Accounts::default();
    let of = |target: usize| {
        let ranks = places.iter().zip(ranks);
        let all: Vec<(usize, &Accounts)> = ranks
            .map(|(place, (_, own))| (*place, own.get(target).unwrap_or(&none)))
            .collect();
        Numbered::of(&all)
    };
    (0..targets).map(of).collect()
}
