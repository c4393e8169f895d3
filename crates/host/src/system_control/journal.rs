//! The journal of settings of the kernel that are changed: it is written before the first of them is, so that the next run can restore what a
//! killed one left behind.
//!
//! It lies in `/run`, which a reboot empties as it resets the settings; the identity of the boot stands in it all the same, for machines that
//! keep `/run`. The process that changes settings holds an exclusive `flock` on it: there is one at a time, and a lock that can be had
//! means that the process is dead. Only root can write it.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat, unlink};
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use crate::pseudo_files::text_of;

/// How often a journal is opened that another process removes at the same time.
const TRIES: u32 = 100;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A file of sysfs that is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its path below `/sys`.
    pub(super) path: PathBuf,
    /// Its value before.
    pub(super) before: String,
    /// The value that it is given; `None` for one that the kernel resets where another is changed.
    pub(super) during: Option<String>,
}

/// The journal, locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens and locks it; `None` where there is none and none is to be made.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): another process holds it, or it is not root's.
    pub(super) fn open(path: &Path, makes: bool) -> Result<Option<Self>> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if makes {
            flags |= OFlags::CREATE;
        }
        for _ in 0..TRIES {
            let file = match open(path, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) if !makes => return Ok(None),
                Err(errno) => return Err(cannot("open", path, errno)),
            };
            let own = fstat(&file).map_err(|errno| cannot("look at", path, errno))?;
            let is_plain = rustix::fs::FileType::from_raw_mode(own.st_mode).is_file();
            if !is_plain || own.st_nlink > 1 || own.st_uid != rustix::process::geteuid().as_raw() {
                return Err(Error::refused(format!(
                    "refusing to use {}: it is not the journal of an iolab of this user",
                    path.display()
                ))
                .hint("look at what made it, and remove it"));
            }
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::refused(format!(
                        "another iolab changes settings of the kernel now (it holds {})",
                        path.display()
                    ))
                    .hint("wait until it has ended: one changes them at a time"));
                }
                Err(errno) => return Err(cannot("lock", path, errno)),
            }
            // The process that held it may have removed it in between.
            let is_there =
                stat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino));
            if is_there {
                let path = path.to_owned();
                return Ok(Some(Self { file, path }));
            }
        }
        Err(
            Error::failed(format!("{} changes all the time", path.display()))
                .hint("end the other runs of iolab, and try again"),
        )
    }

    /// What a killed process has left changed; nothing of an earlier boot.
    ///
    /// # Errors
    /// It cannot be read, or is no journal.
    pub(super) fn left(&mut self) -> Result<Vec<Entry>> {
        let mut text = String::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_string(&mut text))
            .map_err(|error| {
                Error::failed(format!("cannot read {}: {error}", self.path.display()))
            })?;
        let Some((boot, lines)) = text.split_once('\n') else {
            return Ok(Vec::new());
        };
        if text_of(BOOT_ID).is_some_and(|now| now != boot) {
            return Ok(Vec::new());
        }
        let entries = lines.lines().map(|line| {
            parsed(line).ok_or_else(|| {
                Error::refused(format!("{} is no journal of iolab", self.path.display()))
                    .hint("look at what made it, and remove it")
            })
        });
        entries.collect()
    }

    /// Writes what is changed, in the place of what stood in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, entries: &[Entry]) -> Result<()> {
        let mut text = text_of(BOOT_ID).unwrap_or_default() + "\n";
        for entry in entries {
            let during = entry.during.as_deref().unwrap_or("");
            text += &format!("{}\t{}\t{during}\n", entry.path.display(), entry.before);
        }
        let mut file = &self.file;
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all());
        written.map_err(|error| {
            Error::failed(format!("cannot write {}: {error}", self.path.display()))
                .hint("make room there: without it no killed run could be cleaned up")
        })
    }

    /// Removes it: everything is as it was.
    pub(super) fn remove(self) {
        // One that stays is empty, or says what is so already.
        let _ = unlink(&self.path);
    }
}

/// `devices/.../queue/scheduler`, the value before and the one during, between tabs.
fn parsed(line: &str) -> Option<Entry> {
    let mut parts = line.split('\t');
    let path = PathBuf::from(parts.next()?);
    let (before, during) = (parts.next()?, parts.next()?);
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_below && parts.next().is_none()).then(|| Entry {
        path,
        before: before.to_owned(),
        during: (!during.is_empty()).then(|| during.to_owned()),
    })
}

fn cannot(what: &str, path: &Path, errno: Errno) -> Error {
    Error::failed(format!("cannot {what} {}: {errno}", path.display()))
        .hint("settings of the kernel are not changed without a journal that a killed run leaves")
}
