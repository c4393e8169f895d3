//! The targets of a run that waits for storage: what they are called, and what becomes of their scratch files.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use iolab_storage::{ScratchRemover, Target, TargetKind};

use super::NAME;

/// Time for removing scratch files from targets that do answer.
const REMOVING: Duration = Duration::from_secs(5);

/// What a run that waits was to measure.
pub(super) struct Silent {
    /// The targets in words.
    pub(super) places: Vec<String>,
    /// Whether one is on a file server.
    pub(super) has_nfs: bool,
    /// What removes each scratch file; `None` for one that another process removes.
    pub(super) scratch: Vec<Option<Arc<ScratchRemover>>>,
}

impl Silent {
    pub(super) fn of(targets: &[&Target]) -> Self {
        let scratch = targets.iter();
        let scratch = scratch.filter(|target| target.kind() == TargetKind::Scratch);
        Self {
            places: targets.iter().map(|target| place(target)).collect(),
            has_nfs: targets.iter().any(|target| target.stack().nfs.is_some()),
            scratch: scratch
                .map(|target| target.scratch_remover().map(Arc::new))
                .collect(),
        }
    }

    /// Removes the scratch files on storage that answers, and says whether one is left. What does not answer keeps a thread of its own,
    /// which removes it should the answer come while this process is there.
    pub(super) fn leaves_scratch(&self) -> bool {
        let (removed, is_removed) = mpsc::channel();
        let mut left = 0;
        for remover in &self.scratch {
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
        left > 0
    }
}

/// A target in words, with its server.
fn place(target: &Target) -> String {
    let named = target.named().display();
    match &target.stack().nfs {
        Some(mount) => format!("{named} on the file server {}", mount.server),
        None => named.to_string(),
    }
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
        assert!(!silent(Vec::new()).leaves_scratch());
        assert!(silent(vec![None]).leaves_scratch());
    }
}
