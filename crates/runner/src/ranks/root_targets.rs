//! The targets of the root as the other ranks open them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iolab_cluster::link::Link;
use iolab_cluster::root_order;
use iolab_storage::{Consent, ExtraFiles, Need, PrivateFiles, Share, Size, Target, TargetKind};
use iolab_workload::{Error, Result};

use super::{Member, per_rank_paths};

impl Member {
    /// Notes which ranks share caches: those of a host, unless each of them sees a target under a path of its own.
    pub(super) fn know_clients(&mut self, places: &[root_order::RemoteTarget]) {
        let by_rank = |place: &root_order::RemoteTarget| {
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
    }

    /// Removes what dead runs left in targets of its own. Scratch files of the root are there already.
    pub(super) fn clean(&mut self, places: &[root_order::RemoteTarget]) -> Result<()> {
        let rank = self.team.link().rank();
        let live = places.iter().filter_map(|place| match &place.own {
            Some(own) => own.roots.clone(),
            None => Some(Path::new(&place.path).file_name()?.to_str()?.to_owned()),
        });
        let live: Vec<String> = live.collect();
        let mut own = places.iter().filter(|place| place.own.is_some());
        own.try_for_each(|place| {
            let path = per_rank_paths::place(Path::new(&place.path), rank, &self.host.name)?;
            Target::clean(&path, &live)
        })
    }

    pub(super) fn open(&mut self, places: &[root_order::RemoteTarget]) -> Result<Vec<Target>> {
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

/// A target of the root as the other ranks open it, which `share` it or have one of their own.
pub(super) fn of(
    named: &Path,
    target: &Target,
    need: &Need,
    share: bool,
) -> Result<root_order::RemoteTarget> {
    let scratch = target.kind() == TargetKind::Scratch;
    let files = need.beside.private.iter();
    let own = || root_order::Own {
        write: need.write,
        private: files
            .map(|files| (files.threads.into(), (files.bs, files.ranks.into())))
            .collect(),
        fresh: need.beside.fresh.into(),
        roots: target
            .path()
            .file_name()
            .filter(|_| scratch)
            .and_then(|name| name.to_str())
            .map(str::to_owned),
    };
    Ok(root_order::RemoteTarget {
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

/// What a rank needs of a target of its own.
fn need_of(own: &root_order::Own, bytes: u64) -> Need {
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let files = own.private.iter();
    let private = files.map(|(threads, (bs, ranks))| PrivateFiles {
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
