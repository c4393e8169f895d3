//! Mounts visible to processes, each in a mount namespace and below a root.

use std::path::{Path, PathBuf};

use rustix::fs::Stat;

use super::super::mounts::Mount;

/// Mounts visible to some process.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Path of its root from here.
    pub(super) root: PathBuf,
    /// A process in it, if that is another one than this.
    pub(super) process: Option<u32>,
    pub(super) mounts: Vec<Mount>,
}

impl Namespace {
    /// Object at the source of a mount, if the source is a path that means the same to every process.
    pub(super) fn source(&self, mount: &Mount) -> Option<Stat> {
        let source = Path::new(&mount.fs.source);
        let is_plain = source.is_absolute() && !source.starts_with("/proc");
        is_plain
            .then(|| rustix::fs::stat(rooted(&self.root, source)).ok())
            .flatten()
    }

    /// Mount point of the first matching mount, in words.
    pub(super) fn mounted(&self, is_it: impl Fn(&&Mount) -> bool) -> Option<String> {
        let mount = self.mounts.iter().find(is_it)?;
        let at = mount.fs.mount_point.display();
        Some(match self.process {
            None => format!("mounted at {at}"),
            Some(process) => {
                format!("mounted at {at} in the mount namespace of process {process}")
            }
        })
    }
}

/// Absolute path as seen from another root.
pub(super) fn rooted(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
