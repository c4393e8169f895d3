//! The targets of a run that waits for storage: what they are called, and what becomes of their scratch files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use iolab_storage::{ScratchRemover, Target, TargetKind, file_systems};

use super::NAME;
use crate::target_numbers::full;

/// Time for removing scratch files from targets that do answer.
const REMOVING: Duration = Duration::from_secs(5);

/// Scratch files on storage that may not answer.
#[derive(Debug)]
pub(super) enum Scratch {
    /// What removes each; `None` for one that another process removes.
    Made(Vec<Option<Arc<ScratchRemover>>>),
    /// One may be in the making: the next run knows it for a scratch file once its mark is stored.
    BeingMade,
}

/// What a run that waits was to measure.
#[derive(Debug)]
pub(super) struct Silent {
    /// The targets in words.
    pub(super) places: Vec<String>,
    /// Whether one is on a file server.
    pub(super) has_nfs: bool,
    /// Its scratch files.
    pub(super) scratch: Scratch,
}

impl Silent {
    pub(super) fn of(targets: &[&Target]) -> Self {
        let scratch = targets.iter();
        let scratch = scratch.filter(|target| target.kind() == TargetKind::Scratch);
        Self {
            places: targets.iter().map(|target| place(target)).collect(),
            has_nfs: targets.iter().any(|target| target.stack().nfs.is_some()),
            scratch: Scratch::Made(
                scratch
                    .map(|target| target.scratch_remover().map(Arc::new))
                    .collect(),
            ),
        }
    }

    /// Targets of these names, which are not open yet. Nothing is asked of their storage: that is watched.
    pub(super) fn unopened(named: &[PathBuf]) -> Self {
        let servers: Vec<Option<String>> = named.iter().map(|named| server_of(named)).collect();
        let both = named.iter().zip(&servers);
        Self {
            places: both
                .map(|(named, server)| in_words(named, server.as_deref()))
                .collect(),
            has_nfs: servers.iter().any(Option::is_some),
            scratch: Scratch::BeingMade,
        }
    }

    /// Removes the scratch files on storage that answers, and says what becomes of one that is left. What does not answer keeps a thread of
    /// its own, which removes it should the answer come while this process is there.
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
            // One that cannot be started removes nothing.
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

/// A target in words, with its server.
fn place(target: &Target) -> String {
    let server = target.stack().nfs.as_ref();
    in_words(target.named(), server.map(|mount| mount.server.as_str()))
}

fn in_words(named: &Path, server: Option<&str>) -> String {
    let named = named.display();
    match server {
        Some(server) => format!("{named} on the file server {server}"),
        None => named.to_string(),
    }
}

/// The file server of a path by its name alone, without symbolic links.
fn server_of(named: &Path) -> Option<String> {
    let path = full(named);
    let mounts = file_systems().into_iter();
    let above = mounts.filter(|mount| path.starts_with(&mount.mount_point));
    // The last one hides those that were mounted before it.
    let own = above.max_by_key(|mount| mount.mount_point.components().count())?;
    (own.kind == "nfs" || own.kind == "nfs4").then_some(own.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_that_nothing_removes_is_left() {
        let silent = |scratch| Silent {
            places: Vec::new(),
            has_nfs: false,
            scratch,
        };
        let left = |made| silent(Scratch::Made(made)).leave_scratch();
        assert_eq!(left(Vec::new()), None);
        assert!(left(vec![None]).is_some());
    }

    #[test]
    fn targets_that_are_not_open_are_named_as_they_are_given() {
        let silent = Silent::unopened(&[PathBuf::from("/proc/x"), PathBuf::from("y")]);
        assert_eq!(silent.places, ["/proc/x", "y"]);
        assert!(!silent.has_nfs);
        let said = silent.leave_scratch();
        assert!(said.is_some_and(|said| said.contains("the next run")));
    }
}
