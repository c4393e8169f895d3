//! The targets of a run that waits for storage: what they are called, and what becomes of their scratch files.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use iolab_storage::{ScratchRemover, Target, TargetKind, file_systems};

use super::NAME;
use super::server::{resolved, server_of};

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

/// A target that may not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SilentTarget {
    /// As the user calls it.
    named: PathBuf,
    /// Its file server.
    server: Option<String>,
    /// Its paths from the root on: by that name, and by what is known of symbolic links.
    paths: Vec<PathBuf>,
}

impl SilentTarget {
    pub(super) fn new(named: &Path, server: Option<String>, leads_to: Option<PathBuf>) -> Self {
        let by_name = absolute(named).ok();
        Self {
            named: named.to_owned(),
            server,
            paths: by_name.into_iter().chain(leads_to).collect(),
        }
    }

    fn of(target: &Target) -> Self {
        let server = target.stack().nfs.as_ref();
        let server = server.map(|mount| mount.server.clone());
        // What the descriptor leads to, of which nothing is asked.
        let open = format!("/proc/self/fd/{}", target.file().as_raw_fd());
        let path = Path::new(&open).read_link().ok();
        let path = match target.kind() {
            TargetKind::Scratch => path.and_then(|path| Some(path.parent()?.to_owned())),
            TargetKind::File | TargetKind::BlockDevice | TargetKind::CharDevice => path,
        };
        Self::new(target.named(), server, path)
    }

    /// A file that is no target.
    fn of_file(path: &Path) -> Self {
        Self::new(path, server_of(path, &file_systems()), None)
    }

    fn has(&self, file: &Path) -> bool {
        self.paths.iter().any(|path| file.starts_with(path))
    }

    fn in_words(&self) -> String {
        let named = self.named.display();
        match &self.server {
            Some(server) => format!("{named} on the file server {server}"),
            None => named.to_string(),
        }
    }
}

/// What a run that waits was to measure.
#[derive(Debug)]
pub(super) struct Silent {
    /// The targets.
    pub(super) places: Vec<SilentTarget>,
    /// Their scratch files.
    pub(super) scratch: Scratch,
}

/// What does not answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// In words.
    pub(super) what: String,
    /// Whether a file server is among it.
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

    /// Targets of these names. Nothing is asked of their storage.
    pub(super) fn named(named: &[PathBuf]) -> Self {
        let places = named
            .iter()
            .map(|named| SilentTarget::new(named, None, None));
        Self {
            places: places.collect(),
            scratch: Scratch::Made(Vec::new()),
        }
    }

    /// Targets of these names, where symbolic links are followed, which may get no answer.
    pub(super) fn found(named: &[PathBuf]) -> Self {
        let mounts = file_systems();
        let places = named.iter().map(|named| {
            let leads_to = resolved(named, &mounts);
            SilentTarget::new(named, server_of(&leads_to, &mounts), Some(leads_to))
        });
        Self {
            places: places.collect(),
            scratch: Scratch::Made(Vec::new()),
        }
    }

    /// Of the targets those whose files are waited for, and files that are on none. Where no file is known, it can be any target, or the
    /// run file where the targets are not used. Nothing is asked of storage.
    pub(super) fn unanswered(
        &self,
        files: &[PathBuf],
        run_file: Option<&Path>,
        uses_targets: bool,
    ) -> Unanswered {
        let whole = run_file.and_then(|run_file| absolute(run_file).ok());
        // Those that SQLite keeps beside it are called so, with more behind.
        let is_of_run_file = |file: &PathBuf| {
            let begins = whole
                .as_deref()
                .map(|path| path.as_os_str().as_encoded_bytes());
            let file = file.as_os_str().as_encoded_bytes();
            begins.is_some_and(|begins| file.starts_with(begins))
        };
        let (of_run_file, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
            files.iter().partition(|file| is_of_run_file(file));
        let is_asked = |place: &&SilentTarget| match files.is_empty() {
            true => uses_targets,
            false => others.iter().any(|file| place.has(file)),
        };
        let is_elsewhere = |file: &&&PathBuf| !self.places.iter().any(|place| place.has(file));
        let elsewhere = others.iter().filter(is_elsewhere);
        let elsewhere: Vec<SilentTarget> =
            elsewhere.map(|file| SilentTarget::of_file(file)).collect();
        let asked: Vec<&SilentTarget> = self
            .places
            .iter()
            .filter(is_asked)
            .chain(&elsewhere)
            .collect();
        let is_run_file = !of_run_file.is_empty() || (files.is_empty() && !uses_targets);
        let run_file = is_run_file.then(|| match run_file {
            Some(path) => format!("the disk of the run file {}", path.display()),
            None => "the disk of the run file".to_owned(),
        });
        let places = asked.iter().map(|place| place.in_words());
        Unanswered {
            what: places.chain(run_file).collect::<Vec<_>>().join(", "),
            has_nfs: asked.iter().any(|place| place.server.is_some()),
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

    #[test]
    fn what_is_waited_for_is_named_and_nothing_else() {
        let server = Some("nas:/export".to_owned());
        let leads_to = Some(PathBuf::from("/srv/data"));
        let silent = Silent {
            places: vec![
                SilentTarget::new(Path::new("/proc/x"), None, None),
                SilentTarget::new(Path::new("y"), server, leads_to),
            ],
            scratch: Scratch::Made(Vec::new()),
        };
        let run_file = Some(Path::new("/out/r.iolab"));
        let said = |files: &[&str], uses_targets| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            let said = silent.unanswered(&files, run_file, uses_targets);
            (said.what, said.has_nfs)
        };
        let expect = |what: &str, has_nfs| (what.to_owned(), has_nfs);
        let y = "y on the file server nas:/export";
        let current = absolute("y/.iolab-scratch-1").expect("a path");
        let current = current.to_str().expect("text");
        assert_eq!(said(&["/proc/x/1"], true), expect("/proc/x", false));
        for file in ["/srv/data/1", "/srv/data", current] {
            assert_eq!(said(&[file], false), expect(y, true), "{file}");
        }
        // Any of them, where it is not known which.
        assert_eq!(said(&[], true), expect(&format!("/proc/x, {y}"), true));
        let disk = "the disk of the run file /out/r.iolab";
        for (files, uses_targets) in [(&[][..], false), (&["/out/r.iolab-wal"], true)] {
            assert_eq!(said(files, uses_targets), expect(disk, false));
        }
        let neither = said(&["/srv/database", "/srv/data"], true);
        assert_eq!(neither, expect(&format!("{y}, /srv/database"), true));
    }
}
