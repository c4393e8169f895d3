//! Scratch file: a file of iolab's own in the user's directory, with further files that belong to it.
//!
//! Layout: the usable region, then a footer of [`FOOTER_LEN`] bytes that distinguishes a left-over from other
//! programs' files. A run holds an exclusive `flock` as long as it lives, so a free lock means that the run is
//! dead. If the file system has files without a name (`O_TMPFILE`), the file gets its name when it is complete
//! and locked.
//!
//! Further files belong to the scratch file, and are left-overs if it is one: private files of workers, and
//! fresh files. They have exactly the requested size. A name consists of the scratch file's name, a dot, the
//! size, a dot and a number. Files for programs, which read a file to its end and must not meet a footer, lie
//! in a folder next to the scratch file (`private_folder.rs`). They are named by their size. The footer lists
//! the inodes of the files and the folder, each file's before it gets its name: unlisted files belong to
//! others.

use std::cell::Cell;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, FlockOperation, Mode, OFlags, Stat, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::procfs;
use iolab_workload::{Error, Result};

use super::errno;
use super::overlay;
use super::path_lookup::same_inode;
use super::private_folder::Private;
use super::target_size::check_process_limit;

pub(super) mod footer;
mod leftovers;

pub(super) use footer::{FOOTER_LEN, check_count};
use footer::{Listed, ListedFile, Register};
pub use leftovers::leftover_bytes;
pub(super) use leftovers::remove_leftovers;

const PREFIX: &str = ".iolab-scratch-";
const DIGITS: usize = 16;
const MODE: u32 = 0o600;
/// Attempts at a new name. Names are random: a second attempt is for a lost race, more would hide a fault.
const TRIES: u32 = 8;

/// Name of a scratch file, and the duty to remove it.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: OwnedFd,
    /// Directory in which `dir` was made for it, and the name of `dir` there; `None` if `dir` existed before.
    above: Option<(OwnedFd, String)>,
    name: String,
    path: PathBuf,
    stat: Stat,
    removed: bool,
    role: Role,
}

/// Means by which the next run recognises the file as a left-over if this process is killed.
#[derive(Debug)]
enum Role {
    /// A footer of its own, which lists the files that belong to it.
    Main {
        register: Arc<Register>,
        /// Number of numbered files made so far.
        made: AtomicU64,
    },
    /// The footer of another file of this process.
    Beside(Listed),
    /// A footer that only another process writes. Files made here belong to an empty main file of this process,
    /// made when it is needed.
    Joined(Mutex<Option<Box<Scratch>>>),
}

impl Scratch {
    /// Opens the file that process 0 of a run made, with `region` usable bytes.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) for any other file; of kind
    /// [`Usage`](iolab_workload::Kind::Usage) when it is out of reach.
    pub(super) fn join(dir: OwnedFd, path: &Path, region: u64) -> Result<(Self, File)> {
        let not_ours = || {
            Error::refused(format!(
                "refusing to use {}: it is not the scratch file of this run",
                path.display()
            ))
            .hint("another program interferes there; choose another directory")
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| leftovers::is_scratch_name(name));
        let name = name.ok_or_else(not_ours)?.to_owned();
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&dir, &*name, flags, Mode::empty());
        let file = File::from(file.map_err(|errno| {
            errno::on_path("open", path, errno).hint(
                "all ranks use one scratch file: give a directory on a file system that all hosts share",
            )
        })?);
        let stat = rustix::fs::fstat(&file).map_err(|e| errno::on_path("look at", path, e))?;
        let length = u64::try_from(stat.st_size).ok();
        if !leftovers::could_be_ours(&stat)
            || length != region.checked_add(FOOTER_LEN)
            || footer::read(&file, region + FOOTER_LEN).is_none()
        {
            return Err(not_ours());
        }
        let scratch = Self {
            dir,
            above: None,
            name,
            path: path.to_owned(),
            stat,
            // Another process made the file, and removes it.
            removed: true,
            role: Role::Joined(Mutex::new(None)),
        };
        Ok((scratch, file))
    }

    /// Creates, locks and marks a file with a usable region of `region` bytes.
    ///
    /// # Errors
    /// The directory is not writable, or the file cannot have that size.
    pub(super) fn create(dir: OwnedFd, dir_path: &Path, region: u64) -> Result<(Self, File)> {
        check_process_limit(region + FOOTER_LEN)?;
        procfs::check(0, 0)?;
        for _ in 0..TRIES {
            let name = format!("{PREFIX}{:016x}", random()?);
            let path = dir_path.join(&name);
            let hold = |error: std::io::Error| errno::on_path("hold", &path, errno::of_std(&error));
            let look = |errno| errno::on_path("look at", &path, errno);
            // Everything that can fail comes before the name: a later failure would leave the file under that
            // name.
            let ready = Cell::new(None);
            let made = appear(&dir, &name, &|file| {
                // If it already has a name, another run may take it for a left-over in the instant before the
                // lock.
                if !lock(file) {
                    return Err(Unmade::Taken);
                }
                footer::mark(file, &path, region)?;
                let register = Register::new(file.try_clone().map_err(hold)?, region);
                let stat = rustix::fs::fstat(file).map_err(look)?;
                ready.set(Some((register, stat)));
                Ok(())
            });
            let file = match made {
                Ok(file) => file,
                Err(Unmade::Taken) => continue,
                Err(Unmade::Refused(errno)) => return Err(cannot_create(dir_path, errno)),
                Err(Unmade::Failed(error)) => return Err(error),
            };
            let Some((register, stat)) = ready.take() else {
                continue;
            };
            if !stands_for(&dir, &name, &stat) {
                continue;
            }
            let scratch = Self {
                dir,
                above: None,
                name,
                path,
                stat,
                removed: false,
                role: Role::Main {
                    register: Arc::new(register),
                    made: AtomicU64::new(0),
                },
            };
            return Ok((scratch, file));
        }
        Err(Error::failed(format!(
            "cannot create a scratch file in {}: {TRIES} random names were taken or removed at once",
            dir_path.display()
        ))
        .hint("another program interferes there; choose another directory"))
    }

    /// Makes the folder for files of programs.
    ///
    /// # Errors
    /// As [`Private::create`].
    pub(super) fn folder(&self) -> Result<Private> {
        let Role::Main { register, .. } = &self.role else {
            return Err(super::no_scratch(&self.path));
        };
        let place = (hold(&self.dir, &self.path)?, self.folder_path());
        Private::create(place, &self.name, self.stat.st_uid, |dir, path| {
            let entry = ListedFile::of(dir, c"", AtFlags::EMPTY_PATH);
            let entry = entry.map_err(|errno| errno::on_path("look at", path, errno))?;
            let slot = register.enter(entry, &self.path)?;
            let register = Arc::clone(register);
            Ok(Listed { register, slot })
        })
    }

    /// Creates an empty file for programs in the folder `folder`, for exactly `bytes` bytes; no other file
    /// there has that size.
    ///
    /// # Errors
    /// The file cannot be made, or cannot have that size.
    pub(super) fn within(&self, folder: &Private, bytes: u64) -> Result<(Self, File)> {
        let Role::Main { register, .. } = &self.role else {
            return Err(super::no_scratch(&self.path));
        };
        let (parent, name) = folder.place();
        let above = (hold(parent, folder.path())?, name.to_owned());
        let place = (folder.dir(), folder.path());
        let (mut scratch, file) = Self::companion(register, place, name_within(bytes), bytes)?;
        scratch.above = Some(above);
        Ok((scratch, file))
    }

    /// Creates an empty file that belongs to this one, for exactly `bytes` bytes.
    ///
    /// # Errors
    /// The file cannot be made, or cannot have that size.
    pub(super) fn numbered_beside(&self, bytes: u64) -> Result<(Self, File)> {
        match &self.role {
            Role::Main { register, made } => {
                let number = made.fetch_add(1, Ordering::Relaxed);
                let name = format!("{}.{bytes}.{number}", self.name);
                Self::companion(register, (&self.dir, self.folder_path()), name, bytes)
            }
            Role::Beside(_) => Err(super::no_scratch(&self.path)),
            Role::Joined(own) => {
                let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
                if own.is_none() {
                    let dir = hold(&self.dir, &self.path)?;
                    *own = Some(Box::new(Self::create(dir, self.folder_path(), 0)?.0));
                }
                match &*own {
                    Some(own) => own.numbered_beside(bytes),
                    None => Err(super::no_scratch(&self.path)),
                }
            }
        }
    }

    /// A file in a directory, given with its path, that this register lists.
    fn companion(
        register: &Arc<Register>,
        (dir, parent): (&OwnedFd, &Path),
        name: String,
        bytes: u64,
    ) -> Result<(Self, File)> {
        check_process_limit(bytes)?;
        let path = parent.join(&name);
        let look = |errno| errno::on_path("look at", &path, errno);
        let held = hold(dir, parent)?;
        let (listed, seen) = (Cell::new(None), Cell::new(None));
        let made = appear(dir, &name, &|file| {
            if let Some(before) = listed.take() {
                register.leave(before);
            }
            seen.set(Some(rustix::fs::fstat(file).map_err(look)?));
            let entry = ListedFile::of(file, c"", AtFlags::EMPTY_PATH);
            listed.set(Some(register.enter(entry.map_err(look)?, &path)?));
            Ok(())
        });
        let cannot_create = |errno| errno::on_path("create", &path, errno);
        let file = made.map_err(|unmade| match unmade {
            Unmade::Taken => cannot_create(Errno::EXIST),
            Unmade::Refused(errno) => cannot_create(errno),
            Unmade::Failed(error) => error,
        })?;
        let (Some(slot), Some(stat)) = (listed.get(), seen.get()) else {
            return Err(cannot_create(Errno::IO));
        };
        let scratch = Self {
            dir: held,
            above: None,
            name,
            path,
            stat,
            removed: false,
            role: Role::Beside(Listed {
                register: Arc::clone(register),
                slot,
            }),
        };
        Ok((scratch, file))
    }

    /// Path of the directory that it is in.
    fn folder_path(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Directory that it is in.
    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Handle that removes the file while others use it; `None` if another process made it.
    pub(super) fn remover(&self) -> Option<ScratchRemover> {
        let Role::Main { register, made: _ } = &self.role else {
            return None;
        };
        Some(ScratchRemover {
            dir: hold(&self.dir, &self.path).ok()?,
            register: Arc::clone(register),
            name: self.name.clone(),
            stat: self.stat,
        })
    }

    /// Removes the file, if its name still stands for it.
    ///
    /// # Errors
    /// The name now stands for another file, or the file cannot be removed.
    pub(super) fn remove(&mut self) -> Result<()> {
        if let Role::Joined(own) = &mut self.role
            && let Some(own) = own.get_mut().unwrap_or_else(PoisonError::into_inner)
        {
            return own.remove();
        }
        if self.removed {
            return Ok(());
        }
        match rustix::fs::statat(&self.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(now) if same_inode(&now, &self.stat) => {
                rustix::fs::unlinkat(&self.dir, &*self.name, AtFlags::empty())
                    .map_err(|errno| cannot_remove(&self.path, errno))?;
            }
            Ok(_) => {
                return Err(Error::failed(format!(
                    "{} is no longer iolab's scratch file and was left alone",
                    self.path.display()
                ))
                .hint("another process replaced it; find the scratch file and delete it by hand"));
            }
            Err(errno) => return Err(cannot_remove(&self.path, errno)),
        }
        self.removed = true;
        if let Role::Beside(listed) = &self.role {
            listed.leave();
        }
        Ok(())
    }

    /// Whether the path leads to this file, in the directory in which it was made. Names made by iolab are
    /// looked up step by step: the path may be longer than a system call accepts.
    pub(super) fn is_at_its_path(&self) -> bool {
        let is = |now: std::result::Result<Stat, Errno>, held: &OwnedFd| {
            let held = rustix::fs::fstat(held);
            now.is_ok_and(|now| held.is_ok_and(|held| same_inode(&now, &held)))
        };
        let own = self.folder_path();
        let leads_to_dir = match &self.above {
            None => is(rustix::fs::stat(own), &self.dir),
            Some((above, name)) => {
                let parent = own.parent().unwrap_or(Path::new(""));
                let now = rustix::fs::statat(above, &**name, AtFlags::SYMLINK_NOFOLLOW);
                is(now, &self.dir) && is(rustix::fs::stat(parent), above)
            }
        };
        leads_to_dir && stands_for(&self.dir, &self.name, &self.stat)
    }
}

/// Remover of the name of a scratch file whose target cannot be dropped, because its threads wait for storage.
#[derive(Debug)]
pub struct ScratchRemover {
    dir: OwnedFd,
    /// Files that belong to it come and go during a run.
    register: Arc<Register>,
    name: String,
    stat: Stat,
}

impl ScratchRemover {
    /// Removes the file. True if it is gone. It stays if its name now stands for another file, and while other
    /// files belong to it, which only its footer names. Blocks without end if the storage does not answer.
    pub fn remove(&self) -> bool {
        stands_for(&self.dir, &self.name, &self.stat)
            && self.register.is_empty()
            && rustix::fs::unlinkat(&self.dir, &*self.name, AtFlags::empty()).is_ok()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // No one is left to report to; [`Target::remove`] reports errors.
        let _ = self.remove();
    }
}

/// Name of a file in the folder of programs.
pub(super) fn name_within(bytes: u64) -> String {
    bytes.to_string()
}

/// Another descriptor of a directory.
fn hold(dir: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(dir, 0)
        .map_err(|errno| errno::on_path("hold the directory of", path, errno))
}

/// Whether a name stands for this inode.
fn stands_for(dir: &OwnedFd, name: &str, stat: &Stat) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| same_inode(&now, stat))
}

/// Reason why a file was not made.
enum Unmade {
    /// Another file has the name, or briefly had it.
    Taken,
    Refused(Errno),
    Failed(Error),
}

impl From<Error> for Unmade {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Made<T = File> = std::result::Result<T, Unmade>;

/// Makes a file that is complete when it gets its name, where the file system supports that.
fn appear(dir: &OwnedFd, name: &str, prepare: &dyn Fn(&File) -> Made<()>) -> Made {
    match prepared_before(dir, name, prepare)? {
        Some(file) => Ok(file),
        None => prepared_under(dir, name, prepare),
    }
}

/// Prepares a file and gives it its name; `None` where files without a name do not exist, or cannot get one. On
/// an overlay, such a file keeps showing without its name, by which its layer is found.
fn prepared_before(
    dir: &OwnedFd,
    name: &str,
    prepare: &dyn Fn(&File) -> Made<()>,
) -> Made<Option<File>> {
    if overlay::is_overlaid(dir) {
        return Ok(None);
    }
    let mode = Mode::from_raw_mode(MODE);
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, c".", flags, mode).map(File::from) else {
        return Ok(None);
    };
    prepare(&file)?;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, link, dir, name, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::EXIST) => Err(Unmade::Taken),
        Err(_) => Ok(None),
    }
}

/// Prepares a file that already has its name, and removes it if that fails. A kill before the preparation
/// leaves an empty file, which stays.
fn prepared_under(dir: &OwnedFd, name: &str, prepare: &dyn Fn(&File) -> Made<()>) -> Made {
    let mode = Mode::from_raw_mode(MODE);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name, flags, mode) {
        Ok(file) => File::from(file),
        Err(Errno::EXIST) => return Err(Unmade::Taken),
        Err(errno) => return Err(Unmade::Refused(errno)),
    };
    prepare(&file).inspect_err(|_| {
        if rustix::fs::fstat(&file).is_ok_and(|own| stands_for(dir, name, &own)) {
            // The error that made the file useless is the one to report.
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        }
    })?;
    Ok(file)
}

/// Random number from the kernel, or from the standard library before the kernel's generator is ready.
fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    let given = rustix::rand::getrandom(&mut bytes, GetRandomFlags::NONBLOCK);
    match given {
        Ok(count) if count == bytes.len() => Ok(u64::from_ne_bytes(bytes)),
        // Kernels before 5.6 would block for minutes on a machine that has just started. A name has to be new,
        // not secret.
        Err(Errno::AGAIN) => Ok(RandomState::new().build_hasher().finish()),
        other => Err(Error::failed(format!(
            "the kernel gives no random number for the name of a scratch file: {}",
            other.err().unwrap_or(Errno::IO)
        ))
        .hint("give an existing file as the target, or allow the system call getrandom")),
    }
}

/// Checks that files can be made in a directory, before its free space matters.
///
/// # Errors
/// The file system is read-only or permissions are missing; of kind [`Failed`](iolab_workload::Kind::Failed)
/// when files can be made but not removed.
pub(super) fn check_writable(dir: impl AsFd, path: &Path) -> Result<()> {
    let attributes = rustix::fs::statx(&dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .map(|statx| statx.stx_attributes);
    if attributes.is_ok_and(|attributes| attributes.contains(StatxAttributes::APPEND)) {
        return Err(Error::failed(format!(
            "{} is append-only: a scratch file could be made there, but not removed",
            path.display()
        ))
        .hint("give another directory, or take the attribute away (`chattr -a DIR`)"));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(dir, c".", access, AtFlags::EACCESS) {
        Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(cannot_create(path, errno)),
        // If the kernel cannot say, the creation will.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Error for a file that could not be removed; the results stay valid.
fn cannot_remove(path: &Path, errno: Errno) -> Error {
    let reason = errno::reason(errno);
    Error::failed(format!("cannot remove {}: {reason}", path.display())).hint(
        "remove it by hand; a directory that is read-only, immutable or append-only keeps its files (`findmnt -T PATH`, `lsattr -d DIR`)",
    )
}

fn cannot_create(dir: &Path, errno: Errno) -> Error {
    let error = errno::on_path("create a scratch file in", dir, errno);
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOENT => {
            error.hint("give a directory that you may write to, for example your home directory")
        }
        Errno::OPNOTSUPP | Errno::INVAL => {
            error.hint("new files are not possible on this file system; choose another directory")
        }
        _ => error,
    }
}

fn lock(file: &File) -> bool {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => false,
        // On a file system without locks, left-overs are never recognised, which is safe.
        Ok(()) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_when_it_appears() {
        let dir = tempfile::tempdir().unwrap();
        let handle = OwnedFd::from(File::open(dir.path()).unwrap());
        let path = dir.path().join("file");
        let before = |file: &File| {
            assert!(!path.exists());
            Ok(footer::mark(file, &path, 0)?)
        };
        let Ok(Some(file)) = prepared_before(&handle, "file", &before) else {
            return needs::skip(needs::Need::UnnamedFiles, "none among temporary files");
        };
        assert!(footer::read(&file, FOOTER_LEN).is_some());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), FOOTER_LEN);
        let taken = prepared_before(&handle, "file", &|_| Ok(()));
        assert!(matches!(taken, Err(Unmade::Taken)));
    }

    #[test]
    fn named_file_goes_when_it_cannot_be_prepared() {
        let dir = tempfile::tempdir().unwrap();
        let handle = OwnedFd::from(File::open(dir.path()).unwrap());
        let path = dir.path().join("file");
        let failing = prepared_under(&handle, "file", &|_| {
            assert!(path.exists());
            Err(Unmade::Failed(Error::failed("no space")))
        });
        assert!(matches!(failing, Err(Unmade::Failed(_))));
        assert!(!path.exists());
        let mark = |file: &File| Ok(footer::mark(file, &path, 0)?);
        let file = prepared_under(&handle, "file", &mark).ok().unwrap();
        assert!(footer::read(&file, FOOTER_LEN).is_some());
        let taken = prepared_under(&handle, "file", &mark);
        assert!(matches!(taken, Err(Unmade::Taken)));
        assert!(path.exists());
    }
}
