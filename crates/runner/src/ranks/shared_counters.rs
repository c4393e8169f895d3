//! Which ranks read the same accounts of the kernel: of one device, of the disks below it, of one NFS mount.

use iolab_cluster::collectives::List;
use iolab_cluster::link::Link;
use iolab_cluster::shared_counters::{Accounts, Numbered};
use iolab_cluster::wire::{Reader, Wire, Writer};
use iolab_storage::Target;
use iolab_workload::Result;

use super::{ANSWER, Member, unreadable};

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
        let all = self.team.gather(List(vec![(rank, own)]), ANSWER);
        let all = all.map_err(|lost| self.error(lost.into()))?;
        let message = all.map_or_else(Vec::new, |mut all| {
            all.0.sort_unstable_by_key(|(rank, _)| *rank);
            let mut to = Writer::default();
            numbered(&self.places, &all.0).write(&mut to);
            to.into_bytes()
        });
        let message = self.team.broadcast(&message, ANSWER);
        let message = message.map_err(|lost| self.error(lost.into()))?;
        let accounts = Wire::read(&mut Reader::new(&message));
        self.accounts = accounts.ok_or_else(unreadable)?;
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
