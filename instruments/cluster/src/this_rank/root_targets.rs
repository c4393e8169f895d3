//! Orders of the root to the other ranks, one after another, and its targets as the other ranks open them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::link::List;
use crate::shared_counters::{Accounts, Numbered};
use iolab_storage::{
    Demand, ExtraFiles, Need, Share, Target, TargetKind, check_together, leftover_bytes,
};
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Member, handshake, unreadable};
use iolab_runner::ranks::{RANK, is_own};
use iolab_runner::timeouts::{ANSWER, moving};

impl Member {
    /// Notes the targets, and which ranks share caches: the ranks of a host, unless each of them sees a target under its
    /// own path.
    pub(super) fn know_targets(&mut self, places: &[RemoteTarget]) {
        let by_rank = |place: &RemoteTarget| {
            let seen_in = place.seen_in.as_deref();
            seen_in
                .into_iter()
                .chain([&*place.path])
                .any(|path| path.contains(RANK))
        };
        self.clients = match places.iter().any(by_rank) {
            true => (0..self.places.len()).collect(),
            false => self.places.clone(),
        };
        places.clone_into(&mut self.targets);
    }

    /// Removes what dead runs left in targets of its own among these, and waits until all ranks have done so. Scratch files of the root
    /// are there already.
    pub(super) fn clean(&mut self, places: &[RemoteTarget]) -> Result<()> {
        let rank = self.team.link().rank();
        let own = places.iter().filter(|place| place.own.is_some());
        let own: Result<Vec<PathBuf>> = own
            .map(|place| handshake::place(Path::new(&place.path), rank, &self.host.name))
            .collect();
        let left = own.iter().flatten().map(|path| leftover_bytes(path));
        let left = self.pool(left.fold(0, u64::saturating_add), |all: Vec<u64>| {
            all.into_iter().fold(0, u64::saturating_add)
        })?;
        let live = places.iter().filter_map(|place| match &place.own {
            Some(own) => own.roots.clone(),
            None => Some(Path::new(&place.path).file_name()?.to_str()?.to_owned()),
        });
        let live: Vec<String> = live.collect();
        let cleaned =
            own.and_then(|own| own.iter().try_for_each(|path| Target::clean(path, &live)));
        self.agree(moving(left), cleaned)
    }

    /// How long ranks wait for each other to remove their scratch files.
    pub(super) fn removal_time(&mut self) -> Duration {
        let ranks = self.team.link().size() as u64;
        let scratch = self.targets.iter().filter(|place| place.scratch);
        let bytes = scratch.map(|place| {
            let by_each = |bytes: u64| bytes.saturating_mul(ranks);
            let main = match place.own {
                Some(_) => by_each(place.bytes),
                None => place.bytes,
            };
            let beside = place.beside.sizes(place.bytes).into_iter();
            main.saturating_add(by_each(beside.fold(0, u64::saturating_add)))
        });
        moving(bytes.fold(0, u64::saturating_add))
    }

    /// The targets as a rank sees them, in words; `None` if they or the rank's host are not known.
    pub(super) fn storage_of(&mut self, rank: usize) -> Option<String> {
        let host = self.host_of(rank)?.to_owned();
        let seen = self.targets.iter();
        let seen = seen.map(|place| Some(named_at(place, rank, &host)?.display().to_string()));
        let seen: Option<Vec<String>> = seen.collect();
        seen.filter(|seen| !seen.is_empty())
            .map(|seen| seen.join(", "))
    }

    pub(super) fn open(&mut self, places: &[RemoteTarget]) -> Result<Vec<Target>> {
        let rank = self.team.link().rank() as u32;
        let ranks = self.team.link().size() as u32;
        let host = self.host.name.clone();
        let opened = places.iter().map(|place| {
            let path = PathBuf::from(&place.path);
            if let Some(own) = &place.own {
                let path = handshake::place(&path, rank as usize, &host)?;
                let need = Need {
                    write: own.write,
                    beside: place.beside.clone(),
                    ..Need::reading(place.bytes)
                };
                return Target::open_cleaned(&path, &need);
            }
            let path = match &place.seen_in {
                Some(seen_in) => {
                    let seen_in = handshake::place(Path::new(seen_in), rank as usize, &host)?;
                    let name = path.file_name().filter(|_| place.scratch);
                    name.map_or_else(|| seen_in.clone(), |name| seen_in.join(name))
                }
                None => path,
            };
            if place.scratch {
                let share = Share {
                    bytes: place.bytes,
                    rank,
                    ranks,
                    private: place.beside.sizes(place.bytes),
                };
                return Target::join(&path, &share);
            }
            Target::open(&path, &Need::reading(place.bytes))
        });
        opened.collect()
    }

    pub(super) fn fill(&mut self, targets: &[Target], seed: u64, stop: &AtomicBool) -> Result<()> {
        let rank = self.team.link().rank() as u64;
        for (target, number) in targets.iter().zip(0u64..) {
            let seed = seed.wrapping_add(number << 32).wrapping_add(rank << 40);
            target.fill(seed, stop, &mut |_| {})?;
        }
        Ok(())
    }
}

/// The path by which a rank on a host sees a target; for a scratch file that all share, the path of its folder.
fn named_at(place: &RemoteTarget, rank: usize, host: &str) -> Option<PathBuf> {
    let path = match &place.seen_in {
        Some(seen_in) => Path::new(seen_in),
        None if place.scratch && place.own.is_none() => Path::new(&place.path).parent()?,
        None => Path::new(&place.path),
    };
    handshake::place(path, rank, host).ok()
}

/// Whether each rank has a file of its own for this target, and not one for each host.
pub(super) fn is_by_rank(place: &RemoteTarget) -> bool {
    place.own.is_some() && (place.scratch || place.path.contains(RANK))
}

/// A target of the root as the other ranks open it, which `share` it or have one of their own.
pub(super) fn of(named: &Path, target: &Target, need: &Need, share: bool) -> Result<RemoteTarget> {
    let scratch = target.kind() == TargetKind::Scratch;
    let own = || Own {
        write: need.write,
        roots: target
            .shared_path()
            .file_name()
            .filter(|_| scratch)
            .and_then(|name| name.to_str())
            .map(str::to_owned),
    };
    Ok(RemoteTarget {
        path: text(if share { target.shared_path() } else { named })?,
        scratch,
        bytes: target.size(),
        beside: need.beside.clone(),
        own: (!share).then(own),
        seen_in: match share && is_own(named) {
            true => Some(text(named)?),
            false => None,
        },
    })
}

/// A path as ranks exchange it.
fn text(path: &Path) -> Result<String> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Error::usage(format!("{} is not UTF-8", path.display()))
            .hint("give another name to it (a symbolic link): ranks exchange it as text")
    })
}

impl Member {
    /// Has this rank open its targets, in place of those that it had.
    pub(super) fn follow_open(
        &mut self,
        places: &[RemoteTarget],
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        self.know_targets(places);
        self.clean(places)?;
        let demands = self.open(places).and_then(|opened| {
            *targets = opened;
            targets.iter().map(Target::demands).collect()
        });
        let agreed = self.agree_on_targets(demands, targets.iter());
        agreed.map(drop)
    }

    /// Waits for all ranks to have opened their targets, and checks whether their new files fit into the file systems that
    /// they share. Finds out which other ranks read the accounts of its targets too; at the root, returns the notes of the
    /// others as well.
    pub(super) fn agree_on_targets<'a>(
        &mut self,
        demands: Result<Vec<Vec<Demand>>>,
        targets: impl Iterator<Item = &'a Target>,
    ) -> Result<Vec<String>> {
        let (mut demands, opened) = match demands {
            Ok(demands) => (demands.concat(), Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        self.agree(ANSWER, opened)?;
        let rank = self.team.link().rank();
        let place = self.places.get(rank).copied().unwrap_or(rank);
        for demand in &mut demands {
            demand.host = demand.host.map(|_| place as u64);
        }
        let all = self.team.gather(List(demands), ANSWER);
        let all = all.map_err(|lost| self.error(lost))?;
        // Known to the root alone, and no fault of its own: the error names directories, not a rank.
        let fits = all.map_or(Ok(()), |all| check_together(&all.0));
        let agreed = self.agree(ANSWER, fits.clone());
        fits.and(agreed)?;
        let own = targets.map(|target| (accounts(target), target.notes().to_vec()));
        let (accounts, notes): (Vec<Accounts>, Vec<Vec<String>>) = own.unzip();
        let places = self.places.clone();
        let mut notes_of_all = Vec::new();
        let own: Found = (rank, accounts, notes.concat());
        self.accounts = self.pool(own, |mut all: Vec<Found>| {
            all.sort_unstable_by_key(|(rank, ..)| *rank);
            notes_of_all = all.iter().map(|(.., notes)| notes.clone()).collect();
            numbered(&places, &all)
        })?;
        Ok(told(&notes_of_all, |rank| self.place(rank)))
    }
}

/// Notes of other ranks that are shown one by one.
const TOLD_MAX: usize = 8;

/// Number of a rank, and its findings about its targets: the accounts of each, and notes.
type Found = (usize, Vec<Accounts>, Vec<String>);

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
fn numbered(places: &[usize], ranks: &[Found]) -> Vec<Numbered> {
    let targets = ranks.first().map_or(0, |(_, own, _)| own.len());
    let none = Accounts::default();
    let of = |target: usize| {
        let ranks = places.iter().zip(ranks);
        let all: Vec<(usize, &Accounts)> = ranks
            .map(|(place, (_, own, _))| (*place, own.get(target).unwrap_or(&none)))
            .collect();
        Numbered::of(&all)
    };
    (0..targets).map(of).collect()
}

/// An order of the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum RootOrder {
    /// Opening of these targets.
    Open(Vec<RemoteTarget>),
    /// Filling of each rank's own files.
    Fill {
        /// Seed of the data.
        seed: u64,
        /// Most bytes that all ranks fill together.
        bytes: u64,
    },
    /// Running a trial; each rank derives its own workers from it.
    Trial {
        /// The settings that differ from the default ones, each by its name.
        settings: Vec<(String, String)>,
        seed: u64,
        /// Number of its target.
        target: usize,
    },
    /// End of the run: removal of each rank's own files.
    End,
    /// Idle time of the root for its devices before its next order, ns.
    Rest(u64),
    /// Trials are kept from now on: how to finish the run if a rank is lost.
    Keep(String),
}

/// A target as the other ranks open it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemoteTarget {
    /// Absolute path: of the root's scratch directory, or of the existing target.
    pub(super) path: String,
    /// Whether the target is a scratch file.
    pub(super) scratch: bool,
    /// Used bytes.
    pub(super) bytes: u64,
    /// Files that each rank makes for its own workers.
    pub(super) beside: ExtraFiles,
    /// Needs of each rank, if the path means a different one for each rank.
    pub(super) own: Option<Own>,
    /// Path of a folder, different for each rank, in which each sees the root's scratch file.
    pub(super) seen_in: Option<String>,
}

/// Needs of a rank from its own target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Own {
    /// Whether the rank writes to the target.
    pub(super) write: bool,
    /// Name of the root's scratch directory, which may be in the same store, on a mount with separate locks.
    pub(super) roots: Option<String>,
}

impl RootOrder {
    /// The order to run a trial on the target with this number.
    ///
    /// # Errors
    /// The trial does not consist of settings alone.
    pub(super) fn trial(trial: &TrialSpec, target: usize) -> Result<Self> {
        let own = CellSpec::of(trial.clone());
        let plain = CellSpec::of(TrialSpec::default());
        let differing = SETTINGS.iter().filter_map(|setting| {
            let value = setting.get(&own);
            (value != setting.get(&plain)).then(|| (setting.name.to_owned(), value))
        });
        let settings: Vec<(String, String)> = differing.collect();
        let seed = trial.seed;
        match trial_of(&settings, seed)? == *trial {
            true => Ok(Self::Trial {
                settings,
                seed,
                target,
            }),
            false => Err(Error::failed(
                "a trial cannot be described to the other ranks",
            )),
        }
    }
}

/// The trial with these settings.
///
/// # Errors
/// A name or a value that this program does not have.
pub(super) fn trial_of(settings: &[(String, String)], seed: u64) -> Result<TrialSpec> {
    let mut cell = CellSpec::of(TrialSpec::default());
    for (name, text) in settings {
        let setting = Setting::find(name).ok_or_else(unreadable)?;
        setting.set(&mut cell, text)?;
    }
    cell.trial.seed = seed;
    Ok(cell.trial)
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

#[cfg(test)]
mod order_tests {
    use crate::link::{decode, encode};
    use iolab_workload::trial::Others;

    use super::*;

    /// The order of a trial, from which the same trial is read.
    fn given(trial: &TrialSpec) -> RootOrder {
        let order = RootOrder::trial(trial, 3).expect("settings alone");
        let RootOrder::Trial { settings, seed, .. } = &order else {
            panic!("{order:?}");
        };
        assert_eq!(trial_of(settings, *seed).as_ref(), Ok(trial));
        order
    }

    #[test]
    fn order_contains_every_setting_of_a_trial() {
        for setting in SETTINGS {
            let mut cell = CellSpec::default();
            setting.set(&mut cell, setting.example).expect("a value");
            cell.trial.seed = u64::MAX;
            let order = given(&cell.trial);
            assert_eq!(decode::<RootOrder>(&encode(&order)), Some(order));
        }
    }

    #[test]
    fn trials_beyond_settings_are_refused() {
        let trial = TrialSpec {
            others: Others {
                before: 1,
                after: 0,
                before_written: None,
            },
            ..TrialSpec::default()
        };
        assert!(RootOrder::trial(&trial, 0).is_err());
    }
}
