//! The targets of the root as the other ranks open them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::timeouts::moving;
use iolab_cluster::link::Link;
use iolab_cluster::root_order::{self, RemoteTarget};
use iolab_storage::{
    Consent, ExtraFiles, Need, PrivateFiles, Share, Size, Target, TargetKind, leftover_bytes,
};
use iolab_workload::{Error, Result};

use super::{ANSWER, Member, per_rank_paths};

impl Member {
    /// Notes the targets, and which ranks share caches: the ranks of a host, unless each of them sees a target under its
    /// own path.
    pub(super) fn know_targets(&mut self, places: &[RemoteTarget]) {
        let by_rank = |place: &RemoteTarget| {
            let seen_in = place.seen_in.as_deref();
            seen_in
                .into_iter()
                .chain([&*place.path])
                .any(per_rank_paths::is_by_rank)
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
            .map(|place| per_rank_paths::place(Path::new(&place.path), rank, &self.host.name))
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
        self.agree(moving(left, ANSWER), cleaned)
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
            let beside = place.private.iter().copied();
            main.saturating_add(by_each(beside.fold(0, u64::saturating_add)))
        });
        moving(bytes.fold(0, u64::saturating_add), ANSWER)
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
                let path = per_rank_paths::place(&path, rank as usize, &host)?;
                return Target::open_cleaned(&path, &need_of(own, place.bytes));
            }
            let path = match &place.seen_in {
                Some(seen_in) => {
                    let seen_in = per_rank_paths::place(Path::new(seen_in), rank as usize, &host)?;
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
                    private: place.private.clone(),
                };
                return Target::join(&path, &share);
            }
            open_existing(&path, place.bytes)
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
    per_rank_paths::place(path, rank, host).ok()
}

/// Whether each rank has a file of its own for this target, and not one for each host.
pub(super) fn is_by_rank(place: &RemoteTarget) -> bool {
    place.own.is_some() && (place.scratch || per_rank_paths::is_by_rank(&place.path))
}

/// A target of the root as the other ranks open it, which `share` it or have one of their own.
pub(super) fn of(named: &Path, target: &Target, need: &Need, share: bool) -> Result<RemoteTarget> {
    let scratch = target.kind() == TargetKind::Scratch;
    let files = need.beside.private.iter();
    let own = || root_order::Own {
        write: need.write,
        private: files
            .map(|files| (files.threads.into(), files.bs, files.ranks.into()))
            .collect(),
        fresh: need.beside.fresh.into(),
        roots: target
            .path()
            .file_name()
            .filter(|_| scratch)
            .and_then(|name| name.to_str())
            .map(str::to_owned),
    };
    Ok(RemoteTarget {
        path: text(if share { target.path() } else { named })?,
        scratch,
        bytes: target.size(),
        private: match scratch {
            true => need.beside.sizes(target.size()),
            false => Vec::new(),
        },
        own: (!share).then(own),
        seen_in: match share && per_rank_paths::is_own(named) {
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

/// Requirements of a rank on a target of its own.
fn need_of(own: &root_order::Own, bytes: u64) -> Need {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let files = own.private.iter();
    let private = files.map(|(threads, bs, ranks)| PrivateFiles {
        threads: count(*threads),
        bs: *bs,
        ranks: count(*ranks),
        // Several files of a worker are refused with several ranks.
        files: None,
    });
    Need {
        size: Size::Exactly(bytes),
        write: own.write,
        consent: Consent::No,
        beside: ExtraFiles {
            private: private.collect(),
            fresh: count(own.fresh),
        },
        lends: false,
    }
}

fn open_existing(path: &Path, bytes: u64) -> Result<Target> {
    Target::open(path, &Need::reading(bytes))
}
