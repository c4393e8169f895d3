//! How a target is opened once more.

use std::fmt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::direct_io;
use iolab_workload::Error;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec};

/// How a worker opens the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenMode {
    /// For writing too.
    pub write: bool,
    /// `O_DIRECT`.
    pub direct: bool,
    /// `O_SYNC`.
    pub osync: bool,
    /// `O_DSYNC`.
    pub odsync: bool,
}

/// The flags as the C library has them: rustix 1.1 without libc gives `O_SYNC` for both.
const O_SYNC: OFlags = OFlags::from_bits_retain(libc::O_SYNC as _);
const O_DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as _);

impl OpenMode {
    /// As the workers of a trial open it.
    pub fn of(spec: &TrialSpec) -> Self {
        Self {
            write: spec.writes(),
            direct: spec.cache == CacheState::Direct,
            osync: spec.writes() && spec.sync == SyncPolicy::Osync,
            odsync: spec.writes() && spec.sync == SyncPolicy::Odsync,
        }
    }

    /// Why `path` cannot be opened so.
    pub(super) fn refused(self, path: &Path, errno: Errno) -> Error {
        match errno {
            Errno::INVAL if self.direct => direct_io::unsupported(path, "its file system"),
            _ => super::errno::on_path(&format!("open ({self})"), path, errno),
        }
    }

    /// Its flags.
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

/// Its flags as the kernel names them.
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
