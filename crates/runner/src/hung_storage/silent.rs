//! The targets of a run that waits for storage: their names, and the fate of their scratch files.

use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use iolab_storage::{ScratchRemover, Target, TargetKind, file_systems};

use super::NAME;
use super::waiting::server_of;

/// Time for removing scratch files from targets that do answer.
const REMOVING: Duration = Duration::from_secs(5);

/// Scratch files on storage that may not answer.
#[derive(Debug)]
pub(super) enum Scratch {
    /// The remover of each file; `None` for a file that another process removes.
    Made(Vec<Option<Arc<ScratchRemover>>>),
    /// A file may be in the making: the next run recognises it as a scratch file once its mark is stored.
    BeingMade,
}

/// A target that may not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SilentTarget {
    /// The target in the user's words.
    named: PathBuf,
    /// Its file server.
    server: Option<String>,
}

impl SilentTarget {
    pub(super) fn new(named: &Path, server: Option<String>) -> Self {
        Self {
            named: named.to_owned(),
            server,
        }
    }

    fn of(target: &Target) -> Self {
        let server = target.stack().nfs.as_ref();
        Self::new(target.named(), server.map(|mount| mount.server.clone()))
    }

    fn in_words(&self) -> String {
        let named = self.named.display();
        match &self.server {
            Some(server) => format!("{named} on the file server {server}"),
            None => named.to_string(),
        }
    }
}

/// The storage of a run that waits.
#[derive(Debug)]
pub(super) struct Silent {
    /// The targets.
    pub(super) places: Vec<SilentTarget>,
    /// Their scratch files.
    pub(super) scratch: Scratch,
}

/// Storage that does not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// The silent storage, in words.
    pub(super) what: String,
    /// Whether it includes a file server.
    pub(super) has_nfs: bool,
}

impl Silent {
    pub(super) fn of(targets: &[&Target]) -> Self {
        let scratch = targets.iter();
        let scratch = scratch.filter(|target| target.kind() == TargetKind::Scratch);
        Self {
            places: targets
                .iter()
                .map(|target| SilentTarget::of(target))
                .collect(),
            scratch: Scratch::Made(
                scratch
                    .map(|target| target.scratch_remover().map(Arc::new))
                    .collect(),
            ),
        }
    }

    /// Targets of these names, without a request to their storage.
    pub(super) fn named(named: &[PathBuf]) -> Self {
        let mounts = file_systems();
        let places = named.iter().map(|named| {
            let whole = absolute(named).unwrap_or_else(|_| named.clone());
            SilentTarget::new(named, server_of(&whole, &mounts))
        });
        Self {
            places: places.collect(),
            scratch: Scratch::Made(Vec::new()),
        }
    }

    /// The targets, or the run file if the targets are not in use, without a request to storage.
    pub(super) fn unanswered(&self, run_file: Option<&Path>, uses_targets: bool) -> Unanswered {
        if !uses_targets {
            return Unanswered {
                what: match run_file {
                    Some(path) => format!("the disk of the run file {}", path.display()),
                    None => "the disk of the run file".to_owned(),
                },
                has_nfs: false,
            };
        }
        let places = self.places.iter().map(SilentTarget::in_words);
        Unanswered {
            what: places.collect::<Vec<_>>().join(", "),
            has_nfs: self.places.iter().any(|place| place.server.is_some()),
        }
    }

    /// Removes the scratch files on storage that answers, and returns the fate of a file that is left. Silent storage gets
    /// a thread of its own, which removes the file if the answer comes while this process exists.
    pub(super) fn leave_scratch(&self) -> Option<&'static str> {
        let made = match &self.scratch {
            Scratch::Made(made) => made,
            Scratch::BeingMade => {
                return Some(
                    ". Where a scratch file is left, the next run there removes it, or names it if it is still empty",
                );
            }
        };
        let (removed, is_removed) = mpsc::channel();
        let mut left = 0;
        for remover in made {
            left += 1;
            let Some(remover) = remover.clone() else {
                continue;
            };
            let removed = removed.clone();
            let remove = move || {
                let _ = removed.send(remover.remove());
            };
            // A thread that cannot be started removes nothing.
            let _ = thread::Builder::new().name(NAME.to_owned()).spawn(remove);
        }
        drop(removed);
        let until = Instant::now() + REMOVING;
        while left > 0 {
            let time = until.saturating_duration_since(Instant::now());
            match is_removed.recv_timeout(time) {
                Ok(is_gone) => left -= usize::from(is_gone),
                Err(_) => break,
            }
        }
        (left > 0)
            .then_some(". The scratch file is removed when it answers, or by the next run there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_that_nothing_removes_is_left() {
        let silent = |scratch| Silent {
            places: Vec::new(),
            scratch,
        };
        let left = |scratch| silent(scratch).leave_scratch();
        assert_eq!(left(Scratch::Made(Vec::new())), None);
        assert!(left(Scratch::Made(vec![None])).is_some());
        let said = left(Scratch::BeingMade).expect("it may be left");
        insta::assert_snapshot!(said, @". Where a scratch file is left, the next run there removes it, or names it if it is still empty");
    }
}
