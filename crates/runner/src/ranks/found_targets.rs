//! Findings of ranks about their opened targets. They are notes for the user, and the ranks that read the same accounts of
//! the kernel: of a device, of the disks below it, of an NFS mount.

use std::collections::BTreeMap;

use iolab_cluster::link::Link;
use iolab_cluster::shared_counters::{Accounts, Numbered};
use iolab_storage::Target;
use iolab_workload::Result;
use iolab_workload::quantity::counted;

use super::Member;

/// Notes of other ranks that are shown one by one.
const TOLD_MAX: usize = 8;

/// Findings of a rank about its targets.
#[derive(Debug, Default)]
pub(super) struct Found {
    accounts: Vec<Accounts>,
    notes: Vec<String>,
}

impl Found {
    /// Adds the next target.
    pub(super) fn add(&mut self, target: &Target) {
        self.accounts.push(accounts(target));
        self.notes.extend_from_slice(target.notes());
    }
}

/// The accounts that a target has on its host.
fn accounts(target: &Target) -> Accounts {
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

/// Findings of a rank, with its number.
type FoundByRank = (u64, (Vec<Accounts>, Vec<String>));

impl Member {
    /// Finds out which other ranks read the accounts of its targets too; at the root, returns the notes of the others as
    /// well.
    pub(super) fn know_found(&mut self, own: Found) -> Result<Vec<String>> {
        let rank = self.team.link().rank() as u64;
        let places = self.places.clone();
        let mut notes = Vec::new();
        self.accounts = self.pool(
            (rank, (own.accounts, own.notes)),
            |mut all: Vec<FoundByRank>| {
                all.sort_unstable_by_key(|(rank, _)| *rank);
                notes = all.iter().map(|(_, (_, notes))| notes.clone()).collect();
                numbered(&places, &all)
            },
        )?;
        Ok(told(&notes, |rank| self.place(rank)))
    }
}

/// The notes of all ranks but the first, without its own notes; `place` names a rank.
fn told(notes: &[Vec<String>], mut place: impl FnMut(usize) -> String) -> Vec<String> {
    let Some((own, others)) = notes.split_first() else {
        return Vec::new();
    };
    let mut of_text: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (notes, rank) in others.iter().zip(1..) {
        for note in notes.iter().filter(|note| !own.contains(note)) {
            let first = *first.entry(note).or_insert(rank);
            *of_text.entry((first, note)).or_default() += 1;
        }
    }
    let mut texts = of_text.iter().map(|((rank, note), count)| {
        let place = place(*rank);
        match count - 1 {
            0 => format!("{place}: {note}"),
            more => format!("{place}, and {}: {note}", counted(more, "more rank")),
        }
    });
    let mut told: Vec<String> = texts.by_ref().take(TOLD_MAX).collect();
    let left = texts.count() as u64;
    if left > 0 {
        told.push(format!(
            "{} of the targets of other ranks",
            counted(left, "more note")
        ));
    }
    told
}

/// The accounts of each target, if `places` says on which host each rank is.
fn numbered(places: &[usize], ranks: &[FoundByRank]) -> Vec<Numbered> {
    let targets = ranks.first().map_or(0, |(_, (own, _))| own.len());
    let none = Accounts::default();
    let of = |target: usize| {
        let ranks = places.iter().zip(ranks);
        let all: Vec<(usize, &Accounts)> = ranks
            .map(|(place, (_, (own, _)))| (*place, own.get(target).unwrap_or(&none)))
            .collect();
        Numbered::of(&all)
    };
    (0..targets).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_other_ranks_are_shown_once() {
        let told = |of_ranks: &[&[&str]]| {
            let own = |notes: &&[&str]| notes.iter().map(|&note| note.to_owned()).collect();
            let notes: Vec<Vec<String>> = of_ranks.iter().map(own).collect();
            told(&notes, |rank| format!("rank {rank} on node{rank}")).join("\n")
        };
        assert_eq!(told(&[&["x is a link"], &["x is a link"]]), "");
        let said = told(&[&[], &["/t is in memory", "b"], &["a"], &["/t is in memory"]]);
        insta::assert_snapshot!(said, @r"
        rank 1 on node1, and 1 more rank: /t is in memory
        rank 1 on node1: b
        rank 2 on node2: a
        ");
        let many: Vec<String> = (0..12).map(|rank| format!("/r{rank}")).collect();
        let many: Vec<[&str; 1]> = many.iter().map(|note| [&**note]).collect();
        let many: Vec<&[&str]> = many.iter().map(|notes| &notes[..]).collect();
        let said = told(&many);
        let last = said.lines().last();
        assert_eq!(last, Some("3 more notes of the targets of other ranks"));
        assert_eq!(said.lines().count(), TOLD_MAX + 1);
    }
}
