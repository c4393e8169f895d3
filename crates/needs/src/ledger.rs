//! Skips of one `cargo test`, which runs each test program as a separate process.
//!
//! Each process appends to a file whose name contains the id and the start of its ancestor `cargo`, so that
//! concurrent `cargo test` runs in one workspace use separate files.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::{Need, folder_on_disk};

/// Age after which ledgers that were never listed are removed, if their `cargo` has ended.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A test that was not run, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// Requirement that the machine lacks.
    pub need: Need,
    /// Test program, with the test's name or its position in the source.
    pub test: String,
    /// Evidence of the lack.
    pub reason: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { need, test, reason } = self;
        write!(f, "{test} needs {need}: {reason}")
    }
}

impl Skip {
    fn line(&self) -> String {
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (test, reason) = (plain(&self.test), plain(&self.reason));
        format!("{}\t{test}\t{reason}\n", self.need.name())
    }

    fn of_line(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, '\t');
        Some(Self {
            need: Need::of_name(parts.next()?)?,
            test: parts.next()?.to_owned(),
            reason: parts.next()?.to_owned(),
        })
    }
}

/// File of one `cargo test`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger(PathBuf);

impl Ledger {
    /// Ledger of the `cargo` that started this process, directly or not; without one, the parent process's
    /// ledger.
    ///
    /// # Errors
    ///
    /// The path of this program or `/proc` cannot be read.
    pub fn of_this_cargo() -> io::Result<Self> {
        let parent = Process::read(std::os::unix::process::parent_id())?;
        // The first process has no parent, also in a container; `/proc` may hide processes of other users.
        let above = |process: &Process| Process::read(process.parent).ok();
        let mut ancestors = std::iter::successors(above(&parent), above);
        let cargo = match parent.name == "cargo" {
            true => parent,
            false => ancestors
                .find(|process| process.name == "cargo")
                .unwrap_or(parent),
        };
        Ok(Self(folder()?.join(cargo.key())))
    }

    /// Appends a skip.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn add(&self, skip: &Skip) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::options().append(true).create(true).open(&self.0)?;
        // One write, so that lines of threads and processes do not mix.
        file.write_all(skip.line().as_bytes())
    }

    /// All distinct skips, ordered by need; removes the ledger.
    ///
    /// # Errors
    ///
    /// The file cannot be read or removed, or is not a ledger.
    pub fn take(&self) -> io::Result<BTreeSet<Skip>> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            text => text?,
        };
        let skip = |line: &str| {
            Skip::of_line(line).ok_or_else(|| io::Error::other(format!("no skip: '{line}'")))
        };
        let skips = text.lines().map(skip).collect::<io::Result<_>>()?;
        fs::remove_file(&self.0)?;
        Ok(skips)
    }

    /// Removes ledgers older than a day whose `cargo` has ended.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn tidy() -> io::Result<()> {
        let entries = match fs::read_dir(folder()?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name
                .split('-')
                .next()
                .and_then(|number| number.parse().ok());
            let runs = number
                .and_then(|number| Process::read(number).ok())
                .is_some_and(|process| process.key() == name);
            let age = entry.metadata().and_then(|data| data.modified());
            let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEPT));
            if !runs && is_old {
                // Another process may remove it at the same time.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

/// The folder of ledgers.
fn folder() -> io::Result<PathBuf> {
    Ok(folder_on_disk()?.join("skips"))
}

/// A process as described by `/proc/PID/stat`.
struct Process {
    number: u32,
    name: String,
    parent: u32,
    /// Start of the process, in clock ticks since the start of the system.
    started: u64,
}

impl Process {
    fn read(number: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{number}/stat"))?;
        Self::parse(number, &text).ok_or_else(|| io::Error::other(format!("no process: '{text}'")))
    }

    fn parse(number: u32, text: &str) -> Option<Self> {
        // The name is in parentheses and may contain some.
        let (head, rest) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Self {
            number,
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn key(&self) -> String {
        format!("{}-{}", self.number, self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(number: u32) -> Skip {
        Skip {
            need: Need::Fuse,
            test: format!("a test {number}"),
            reason: "no /dev/fuse\nand no\tmount".to_owned(),
        }
    }

    #[test]
    fn concurrent_skips_are_stored_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger(folder.path().join("not yet/there"));
        assert!(ledger.take().unwrap().is_empty());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|number| ledger.add(&skip(number)).unwrap()));
            }
        });
        let skips = ledger.take().unwrap();
        assert_eq!(skips.len(), 50);
        let first = skips.first().unwrap();
        assert_eq!(first.reason, "no /dev/fuse and no mount");
        assert!(ledger.take().unwrap().is_empty(), "it was listed");
    }

    #[test]
    fn what_is_no_skip_is_no_skip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        fs::write(&path, "fuse\ta test\n").unwrap();
        assert!(Ledger(path).take().is_err());
    }

    #[test]
    fn a_process_is_found_whatever_its_name() {
        let text = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 0 0 1 2 0 0 20 0 1 0 4711 1 1 1";
        let process = Process::parse(7, text).unwrap();
        assert_eq!(process.name, "a) b (c");
        assert_eq!((process.parent, process.key()), (3, "7-4711".to_owned()));
        let own = Process::read(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }

    #[test]
    fn all_processes_of_a_cargo_have_one_ledger() {
        let own = Ledger::of_this_cargo().unwrap();
        assert_eq!(own, Ledger::of_this_cargo().unwrap());
        let name = own.0.file_name().unwrap().to_string_lossy().into_owned();
        let number = name.split('-').next().unwrap().parse().unwrap();
        assert_eq!(Process::read(number).unwrap().key(), name);
    }
}
