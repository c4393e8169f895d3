//! Mode in which a target is opened again.

use std::fmt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::direct_io;
use iolab_workload::Error;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};

/// Mode in which a worker opens the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenMode {
    /// For writing, besides reading.
    pub write: bool,
    /// Direct I/O: `O_DIRECT`.
    pub direct: bool,
    /// Synchronous writes: `O_SYNC`.
    pub osync: bool,
    /// Synchronous writes of data: `O_DSYNC`.
    pub odsync: bool,
}

/// Flags of the C library: rustix 1.1 without libc has `O_SYNC` for both.
const O_SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC as _);
const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as _);

impl OpenMode {
    /// Mode for the workers of a trial.
    pub fn of(spec: &TrialSpec) -> Self {
        Self {
            write: spec.writes(),
            direct: spec.cache == CacheState::Direct,
            osync: spec.writes() && spec.sync == SyncPolicy::Osync,
            odsync: spec.writes() && spec.sync == SyncPolicy::Odsync,
        }
    }

    /// Error for a `path` that cannot be opened in this mode.
    pub(super) fn refused(self, path: &Path, errno: Errno) -> Error {
        match errno {
            Errno::INVAL if self.direct => direct_io::unsupported(path, "its file system"),
            _ => super::errno::on_path(&format!("open ({self})"), path, errno),
        }
    }

    /// Flags for the system call.
    pub(super) fn flags(self) -> OFlags {
        let access = match self.write {
            true => OFlags::RDWR,
            false => OFlags::RDONLY,
        };
        [
            (self.direct, OFlags::DIRECT),
            (self.osync, O_SYNC),
            (self.odsync, O_DSYNC),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .fold(access, |flags, (_, flag)| flags | flag)
    }
}

/// Flags by the kernel's names.
impl fmt::Display for OpenMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.write { "O_RDWR" } else { "O_RDONLY" };
        let names: Vec<&str> = [
            (true, access),
            (self.direct, "O_DIRECT"),
            (self.osync, "O_SYNC"),
            (self.odsync, "O_DSYNC"),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| name)
        .collect();
        f.write_str(&names.join("|"))
    }
}
