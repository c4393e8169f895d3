//! The folder that the disk is mounted on: empty before, and empty afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fuser::{BackgroundSession, Config, Filesystem, MountOption, Session};
use iolab_storage::file_systems;
use iolab_workload::{Error, Result};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

/// Prefix of our sources in the table of mounts; the number of the process follows.
const SOURCE: &str = "iolab-serve-";
/// Threads that take requests from the kernel. One copies data while the other takes the next request.
const TAKERS: usize = 2;
const DEVICE: &str = "/dev/fuse";

/// A folder that a disk can be mounted on.
#[derive(Debug)]
pub struct MountFolder {
    path: PathBuf,
    had_leftover: bool,
}

impl MountFolder {
    /// Checks a folder, and whether this process may mount. Removes a mount that a killed process of ours left
    /// there.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) for a folder that is not empty or serves a disk
    /// already. Of kind [`Usage`](iolab_workload::Kind::Usage) for anything but a folder. Of kind failed
    /// without `/dev/fuse` or the right to mount.
    pub fn new(at: &Path) -> Result<Self> {
        let path = resolved(at)?;
        let mut had_leftover = false;
        let source = source_at(&path).unwrap_or_default();
        if let Some(server) = source.strip_prefix(SOURCE) {
            if !is_dead(&path, server) {
                return Err(
                    Error::refused(format!("{} serves a model already", path.display())).hint(
                        format!("end that server first, or: umount {}", path.display()),
                    ),
                );
            }
            remove(&path).map_err(|error| {
                Error::failed(format!(
                    "cannot unmount what a killed iolab serve left at {}: {error}",
                    path.display()
                ))
                .hint(format!("umount -l {}", path.display()))
            })?;
            had_leftover = true;
        }
        let mut entries = fs::read_dir(&path).map_err(|error| unusable(&path, &error))?;
        if entries.next().is_some() {
            return Err(Error::refused(format!("{} is not empty", path.display()))
                .hint("a mount would hide what it holds; name an empty directory"));
        }
        may_mount(&path)?;
        Ok(Self { path, had_leftover })
    }

    /// Whether a disk whose process was killed was still mounted there.
    pub fn had_leftover(&self) -> bool {
        self.had_leftover
    }

    /// Mounts a file system there and serves it in the background.
    ///
    /// # Errors
    /// When the kernel or fusermount3 refuses.
    pub(crate) fn mount(self, files: impl Filesystem + 'static) -> Result<Mounted> {
        let source = format!("{SOURCE}{}", std::process::id());
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(source.clone())];
        config.n_threads = Some(TAKERS);
        let session = Session::new(files, &self.path, &config)
            .and_then(Session::spawn)
            .map_err(|error| {
                cannot_mount(&self.path, error.to_string().trim_end()).hint(format!(
                    "FUSE needs read and write access to {DEVICE}, and the folder has to belong to the user; as root \
                     it needs neither"
                ))
            })?;
        Ok(Mounted {
            path: self.path,
            source,
            session: Some(session),
        })
    }
}

/// A mounted file system; dropping it unmounts.
pub(crate) struct Mounted {
    path: PathBuf,
    source: String,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// The mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts, also while files are open: programs that use them get errors.
    ///
    /// # Errors
    /// When it is still mounted afterwards.
    pub(crate) fn unmount(mut self) -> Result<()> {
        self.take_down().map_err(|error| {
            Error::failed(format!("cannot unmount {}: {error}", self.path.display()))
                .hint(format!("umount -l {}", self.path.display()))
        })
    }

    fn take_down(&mut self) -> io::Result<()> {
        // Dropping the session would unmount anything that is mounted there, and wait for open files.
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        std::mem::forget(session);
        // Another process may have unmounted ours and mounted something else.
        if source_at(&self.path).is_some_and(|source| source == self.source) {
            remove(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // This is the way out of a failure; the user sees that failure, not one of unmounting.
        let _ = self.take_down();
    }
}

fn may_mount(path: &Path) -> Result<()> {
    if !Path::new(DEVICE).exists() {
        return Err(cannot_mount(path, &format!("there is no {DEVICE}"))
            .hint("load the kernel's FUSE: modprobe fuse"));
    }
    if !rustix::process::geteuid().is_root() && helper().is_none() {
        let why = "only root mounts without fusermount3, which is not installed";
        return Err(cannot_mount(path, why).hint("apt-get install fuse3"));
    }
    Ok(())
}

fn cannot_mount(path: &Path, why: &str) -> Error {
    Error::failed(format!("cannot mount on {}: {why}", path.display()))
}

/// The absolute path of a folder, without a look into the mount on it, which may be dead.
fn resolved(at: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(at).map_err(|error| unusable(at, &error))?;
    let resolved = match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => fs::canonicalize(parent).map(|parent| parent.join(name)),
        _ => fs::canonicalize(&absolute),
    };
    let path = resolved.map_err(|error| unusable(at, &error))?;
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        return fs::canonicalize(&path).map_err(|error| unusable(at, &error));
    }
    Ok(path)
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("cannot mount on {}: {error}", path.display()))
        .hint(format!("name an empty directory: mkdir {}", path.display()))
}

/// Source of the mount on a path; `None` without a mount.
fn source_at(path: &Path) -> Option<String> {
    let mut mounts = file_systems().into_iter();
    let last = mounts.rfind(|mount| mount.mount_point == path);
    last.map(|mount| mount.source)
}

/// Whether the process `server` that answered for a FUSE mount is gone. The kernel may still know the folder's
/// metadata, but refuses to list its content. To users other than the one who mounted it, root included, the
/// kernel says "permission denied" either way; `/proc` then tells.
fn is_dead(path: &Path, server: &str) -> bool {
    let error = fs::read_dir(path).err();
    match error.as_ref().and_then(Errno::from_io_error) {
        Some(Errno::NOTCONN) => true,
        Some(Errno::ACCESS) => !Path::new("/proc").join(server).exists(),
        _ => false,
    }
}

/// Unmounts at once, and lets the kernel free the mount when its last user is gone.
fn remove(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        Err(Errno::PERM) => {}
        done => return Ok(done?),
    }
    let helper = helper().ok_or(io::Error::from(Errno::PERM))?;
    let output = Command::new(helper)
        .args(["-u", "-z", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(words.trim().to_owned()))
        }
    }
}

/// The program that mounts and unmounts for ordinary users.
fn helper() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    ["fusermount3", "fusermount"].into_iter().find_map(|name| {
        let mut folders = std::env::split_paths(&path);
        folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
    })
}
