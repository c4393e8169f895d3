//! Detection of another iolab that changes kernel settings, for any user: by name and length of the journal,
//! and by the kernel's list of locks. The journal itself is for root only: whoever may open it may also lock
//! it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use crate::pseudo_files::text_of;

/// Attempts to look up the journal while its versions replace each other.
const TRIES: u32 = 100;

/// Another iolab with changed kernel settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherControl {
    /// A live process of this number, during its trials.
    Process(u32),
    /// No visible process: the changes of a killed one are still in force.
    Killed,
}

/// Process with a journal at this path, other than the process `own`.
pub(super) fn other_control(proc: &Path, journal: &Path, own: u32) -> Option<OtherControl> {
    let mut found = fs::symlink_metadata(journal).ok()?;
    for _ in 0..TRIES {
        let locks = text_of(proc.join("locks")).unwrap_or_default();
        if let Some(holder) = locks.lines().find_map(|line| holder(line, &found)) {
            return (holder != own).then_some(OtherControl::Process(holder));
        }
        let now = fs::symlink_metadata(journal).ok()?;
        if (now.dev(), now.ino()) == (found.dev(), found.ino()) {
            // An empty journal means that nothing is changed.
            return (now.len() > 0).then_some(OtherControl::Killed);
        }
        found = now;
    }
    None
}

/// Process that holds this file by `flock`, if a line of `/proc/locks` says so: `1: FLOCK ADVISORY WRITE 8944
/// fe:00:9773086 0 EOF`.
fn holder(line: &str, file: &Metadata) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    let (process, place) = (words.nth(2)?, words.next()?);
    let device = file.dev();
    let own = format!("{:02x}:{:02x}:{}", major(device), minor(device), file.ino());
    (kind == "FLOCK" && place == own)
        .then(|| process.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    #[test]
    fn live_and_killed_processes_are_distinguished() {
        let tree = Tree::empty();
        let journal = tree.path().join("journal");
        let other = || other_control(tree.path(), &journal, 7);
        assert_eq!(other(), None);
        fs::write(&journal, "").expect("written");
        assert_eq!(other(), None, "nothing is changed");
        fs::write(&journal, "boot\nqueue/scheduler").expect("written");
        assert_eq!(other(), Some(OtherControl::Killed));
        let file = fs::metadata(&journal).expect("there");
        let (device, inode) = (file.dev(), file.ino());
        let place = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
        let held = |lock: &str| {
            let others = "1: POSIX  ADVISORY  READ 8 00:19:5 128 128";
            tree.files(
                "",
                &[("locks", &format!("{others}\n2: {lock} {place} 0 EOF"))],
            );
        };
        for (lock, expected) in [
            (
                "FLOCK  ADVISORY  WRITE 8944",
                Some(OtherControl::Process(8944)),
            ),
            ("FLOCK  ADVISORY  WRITE 7", None),
            ("POSIX  ADVISORY  WRITE 8944", Some(OtherControl::Killed)),
            // A process that waits for the lock.
            ("-> FLOCK  ADVISORY  WRITE 8944", Some(OtherControl::Killed)),
        ] {
            held(lock);
            assert_eq!(other(), expected, "{lock}");
        }
    }
}
