//! Journal of changed kernel settings, written before the first change, so that the next run can restore the
//! changes of a killed one.
//!
//! The journal lies in `/run`, which a reboot empties as it resets the settings. It names the boot all the
//! same, for machines that keep `/run`. The process that changes settings holds an exclusive `flock` on it:
//! only one process can, and a free lock means that the process is dead. Only root can write the journal. Each
//! version is a new file that replaces the former one whole: a kill leaves one of the two.
//!
//! Detection of another iolab that changes kernel settings, for any user: by name and length of the journal,
//! and by the kernel's list of locks. The journal itself is for root only: whoever may open it may also lock
//! it.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{
    FlockOperation, Mode, OFlags, flock, fstat, major, minor, open, rename, stat, unlink,
};
use rustix::io::Errno;

use super::{JOURNAL, SYS, current, put};
use crate::text_of;
use iolab_storage::procfs;
use iolab_workload::{Error, Result};

/// Attempts to open a journal that another process removes at the same time.
const TRIES: u32 = 100;

/// A changed file of sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalEntry {
    /// Path below `/sys`.
    pub(super) path: PathBuf,
    /// Value before the change.
    pub(super) before: String,
    /// Value during the change.
    pub(super) during: During,
}

/// Value of a file of sysfs while it is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum During {
    /// Requested value; the kernel's version of it is not known yet.
    Asked(String),
    /// Value read back after the change.
    Read(String),
    /// Value that the kernel sets when another file is changed.
    Reset,
}

impl During {
    /// Whether a value can result from this process's change; otherwise another program has set it.
    fn explains(&self, now: &str) -> bool {
        match self {
            // The kernel rounds numbers down, or limits them to the device's abilities.
            Self::Asked(asked) => {
                let number = |text: &str| text.parse::<u64>().ok();
                let is_rounded = number(now)
                    .zip(number(asked))
                    .is_some_and(|(now, asked)| now < asked);
                now == asked || is_rounded
            }
            Self::Read(read) => now == read,
            Self::Reset => true,
        }
    }
}

/// Result of opening the journal.
#[derive(Debug)]
pub(super) enum Opened {
    /// There is no journal, and none was to be made.
    Absent,
    /// A live process other than this one holds the journal.
    Held,
    /// This process holds the journal.
    Own(Journal),
}

/// The journal, locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens and locks the journal.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): it is not a plain file of this user with one name.
    pub(super) fn open(path: &Path, makes: bool) -> Result<Opened> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if makes {
            flags |= OFlags::CREATE;
        }
        for _ in 0..TRIES {
            let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) if !makes => return Ok(Opened::Absent),
                Err(Errno::LOOP) => return Err(not_own(path)),
                Err(errno) => return Err(cannot("open", path, errno)),
            };
            let own = fstat(&file).map_err(|errno| cannot("look at", path, errno))?;
            let is_plain = rustix::fs::FileType::from_raw_mode(own.st_mode).is_file();
            if !is_plain || own.st_nlink > 1 || own.st_uid != rustix::process::geteuid().as_raw() {
                return Err(not_own(path));
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(Opened::Held),
                Err(errno) => return Err(cannot("lock", path, errno)),
            }
            // The process that held it may have removed or replaced it in between.
            let is_there =
                stat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino));
            if is_there {
                let path = path.to_owned();
                return Ok(Opened::Own(Self { file, path }));
            }
        }
        Err(
            Error::failed(format!("{} changes all the time", path.display()))
                .hint("end the other runs of iolab, and try again"),
        )
    }

    /// Changes left by a killed process; changes from an earlier boot are left out.
    ///
    /// # Errors
    /// The file cannot be read, or is not a journal.
    pub(super) fn left(&mut self) -> Result<Vec<JournalEntry>> {
        let mut text = String::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_string(&mut text))
            .map_err(|error| {
                Error::failed(format!("cannot read {}: {error}", self.path.display()))
            })?;
        entries_of(&text, &self.path)
    }

    /// Writes the present changes as a new version. Without changes the file is empty, so that any user can see
    /// that.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&mut self, entries: &[JournalEntry]) -> Result<()> {
        let mut text = match entries.is_empty() {
            true => String::new(),
            false => procfs::boot_id().unwrap_or_default() + "\n",
        };
        for entry in entries {
            let (state, during) = match &entry.during {
                During::Asked(value) => ("asked", value.as_str()),
                During::Read(value) => ("read", value.as_str()),
                During::Reset => ("reset", ""),
            };
            let (path, before) = (entry.path.display(), &entry.before);
            text += &format!("{path}\t{before}\t{state}\t{during}\n");
        }
        self.file = self.replaced(&text).map_err(|error| {
            Error::failed(format!("cannot write {}: {error}", self.path.display()))
                .hint("make room there: without it no killed run could be cleaned up")
        })?;
        Ok(())
    }

    /// A new file with this text in place of the journal, locked before it gets the name, so that no one else
    /// can lock it.
    fn replaced(&self, text: &str) -> std::io::Result<File> {
        let next = next(&self.path);
        // Only the holder of the journal makes this file: an existing one was left by a kill.
        match unlink(&next) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(open(&next, flags, Mode::RUSR | Mode::WUSR)?);
        let whole = flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(rename(&next, &self.path)?));
        if whole.is_err() {
            let _ = unlink(&next);
        }
        whole.map(|()| file)
    }

    /// Removes the journal, with all settings as they were.
    pub(super) fn remove(self) {
        // A file that stays is empty, or states the present values.
        let _ = unlink(next(&self.path));
        let _ = unlink(&self.path);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that is just being started shares the file until its program begins: closing alone would
        // leave it locked.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Name of the journal's next version before it replaces this one.
fn next(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

/// Entries of the journal that this process holds, for a thread that does not own it.
///
/// # Errors
/// As [`Journal::left`].
pub(super) fn held(path: &Path) -> Result<Vec<JournalEntry>> {
    let text = fs::read_to_string(path)
        .map_err(|error| Error::failed(format!("cannot read {}: {error}", path.display())))?;
    entries_of(&text, path)
}

/// Entries in the text of a journal; none from an earlier boot.
fn entries_of(text: &str, path: &Path) -> Result<Vec<JournalEntry>> {
    let Some((boot, lines)) = text.split_once('\n') else {
        return Ok(Vec::new());
    };
    if procfs::boot_id().is_some_and(|now| now != boot) {
        return Ok(Vec::new());
    }
    let entries = lines.lines().map(|line| {
        parsed(line).ok_or_else(|| {
            Error::refused(format!("{} is not a journal of iolab", path.display()))
                .hint("look at what made it, and remove it")
        })
    });
    entries.collect()
}

/// Parses a line of four fields between tabs: `devices/.../queue/scheduler`, the former value, the kind of the
/// present value, and that value.
fn parsed(line: &str) -> Option<JournalEntry> {
    let mut parts = line.split('\t');
    let path = PathBuf::from(parts.next()?);
    let (before, state, during) = (parts.next()?, parts.next()?, parts.next()?);
    let during = match state {
        "asked" => During::Asked(during.to_owned()),
        "read" => During::Read(during.to_owned()),
        "reset" => During::Reset,
        _ => return None,
    };
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_below && parts.next().is_none()).then(|| JournalEntry {
        path,
        before: before.to_owned(),
        during,
    })
}

fn not_own(path: &Path) -> Error {
    Error::refused(format!(
        "refusing to use {}: it is not the journal of an iolab of this user",
        path.display()
    ))
    .hint("look at what made it, and remove it")
}

fn cannot(what: &str, path: &Path, errno: Errno) -> Error {
    Error::failed(format!("cannot {what} {}: {errno}", path.display()))
        .hint("settings of the kernel are not changed without a journal that a killed run leaves")
}

/// Restores and names the settings that this process changed, where the thread that changed them cannot go on.
/// The journal stays as it is: the next run finds nothing to do.
///
/// # Errors
/// A setting cannot be restored within `limit`: the kernel may let a change of a queue wait for its requests.
pub fn restore_own(limit: Duration) -> Result<Vec<String>> {
    restore_held(Path::new(SYS), Path::new(JOURNAL), limit)
}

pub(super) fn restore_held(sys: &Path, journal: &Path, limit: Duration) -> Result<Vec<String>> {
    let (sys, journal) = (sys.to_owned(), journal.to_owned());
    let (done, is_done) = mpsc::channel();
    // The restoration may block for ever, for the same reason that this process is ending.
    let started = thread::Builder::new().spawn(move || {
        let restored = held(&journal).and_then(|entries| put_back(&sys, &entries));
        let _ = done.send(restored);
    });
    let restored = started.ok().and_then(|_| is_done.recv_timeout(limit).ok());
    restored.unwrap_or_else(|| Err(not_restored("the kernel does not answer")))
}

/// Restores and names the settings in a journal.
pub(super) fn restore(sys: &Path, journal: &mut Journal) -> Result<Vec<String>> {
    let left = journal.left()?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let restored = put_back(sys, &left)?;
    journal.write(&[])?;
    Ok(restored)
}

/// Restores the values of files, and names the files that had another value. Values that others have changed
/// meanwhile stay, and files that are gone with their device are skipped.
pub(super) fn put_back(sys: &Path, entries: &[JournalEntry]) -> Result<Vec<String>> {
    let mut named = Vec::new();
    let mut failed = Vec::new();
    // The last change first; then files that the kernel resets along with another one.
    let (changed, reset): (Vec<&JournalEntry>, Vec<&JournalEntry>) = entries
        .iter()
        .partition(|entry| entry.during != During::Reset);
    for entry in changed.into_iter().rev().chain(reset) {
        let path = sys.join(&entry.path);
        let Some(now) = current(&path).filter(|now| *now != entry.before) else {
            continue;
        };
        let is_others = match &entry.during {
            // Settings of a scheduler that others have chosen are not iolab's to set.
            During::Reset => scheduler_of(entry, entries)
                .is_some_and(|own| current(&sys.join(&own.path)).as_ref() != Some(&own.before)),
            during => !during.explains(&now),
        };
        if is_others {
            continue;
        }
        match put(&path, &entry.before) {
            Ok(()) => named.push(format!(
                "{}: {} again, was {now}",
                path.display(),
                entry.before
            )),
            Err(error) => failed.push(error.message().to_owned()),
        }
    }
    match failed.is_empty() {
        true => Ok(named),
        false => Err(not_restored(&failed.join("; "))),
    }
}

fn not_restored(why: &str) -> Error {
    Error::failed(format!("settings of the kernel are not restored: {why}")).hint(format!(
        "the next run of iolab as root tries again; set them yourself, and remove {JOURNAL}, where that cannot help"
    ))
}

/// The scheduler entry whose change resets this entry.
fn scheduler_of<'a>(reset: &JournalEntry, entries: &'a [JournalEntry]) -> Option<&'a JournalEntry> {
    entries.iter().find(|entry| {
        let queue = entry.path.parent();
        let is_scheduler = entry.during != During::Reset && entry.path.ends_with("scheduler");
        is_scheduler && queue.is_some_and(|queue| reset.path.starts_with(queue))
    })
}

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
