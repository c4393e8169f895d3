//! Scratch directory: a directory of iolab's own (mode 0700) in the user's directory, with all files that a process
//! makes there for one target.
//!
//! Its file `lock` names the process that made it, which holds an exclusive `flock` on that file as long as it
//! lives: a free lock means that the run is dead. The other files have exactly the requested size, because
//! programs read a file to its end: `data`, the region of the target; further files, named by a number: private
//! files of workers and fresh files; files for programs, named by their size.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, FlockOperation, Mode, OFlags, RawDir, SeekFrom, Stat, StatxAttributes,
    StatxFlags,
};
use rustix::io::Errno;

use crate::procfs;
use iolab_workload::{Error, Result};

use super::errno;
use super::path_lookup::same_inode;
use super::target_size::check_process_limit;

mod leftovers;

pub use leftovers::leftover_bytes;
pub(super) use leftovers::remove_leftovers;

const PREFIX: &str = ".iolab-scratch-";
const DIGITS: usize = 16;
const MODE: u32 = 0o600;
const LOCK: &str = "lock";
const REGION: &str = "data";
/// Attempts at a new name. Names are random: a second attempt is for a lost race, more would hide a fault.
const TRIES: u32 = 8;

/// The directory, and the duty to remove it once it is empty.
#[derive(Debug)]
struct ScratchDir {
    parent: OwnedFd,
    name: String,
    path: PathBuf,
    dir: OwnedFd,
    stat: Stat,
    /// `None` in a directory that another process removes, and once it is removed.
    lock: Mutex<Option<File>>,
    /// Number of numbered files made so far.
    made: AtomicU64,
    /// Whether programs run in it, and all that they make goes with it.
    is_for_programs: AtomicBool,
}

impl ScratchDir {
    /// Makes and locks a directory in `parent`, given with its path.
    ///
    /// # Errors
    /// The parent is not writable; of kind [`Refused`](iolab_workload::Kind::Refused) when another process puts
    /// something else in its place.
    fn create(parent: &OwnedFd, parent_path: &Path) -> Result<Arc<Self>> {
        for _ in 0..TRIES {
            // A name has to be new, not secret.
            let random = RandomState::new().build_hasher().finish();
            let name = format!("{PREFIX}{random:016x}");
            match rustix::fs::mkdirat(parent, &*name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(cannot_create(parent_path, errno)),
            }
            let made = Self::locked(parent, parent_path, &name).inspect_err(|_| {
                // The error that made the directory useless is the one to report.
                let _ = rustix::fs::unlinkat(parent, &*name, AtFlags::REMOVEDIR);
            })?;
            if let Some(made) = made {
                return Ok(Arc::new(made));
            }
        }
        Err(Error::failed(format!(
            "cannot create a scratch file in {}: {TRIES} random names were taken or removed at once",
            parent_path.display()
        ))
        .hint("another program interferes there; choose another directory"))
    }

    /// Locks a new directory; `None` if another run takes it for a left-over in the instant before the lock.
    fn locked(parent: &OwnedFd, parent_path: &Path, name: &str) -> Result<Option<Self>> {
        let Some(mut made) = Self::open(parent, parent_path, name)? else {
            return Ok(None);
        };
        if entries(&made.dir).is_none_or(|names| !names.is_empty()) {
            return match stands_for(&made.parent, &made.name, &made.stat) {
                true => Err(made.is_anothers()),
                false => Ok(None),
            };
        }
        let lock = match create_in(&made.dir, LOCK) {
            Err(Errno::NOENT) => return Ok(None),
            lock => lock.map_err(|errno| cannot_create(parent_path, errno))?,
        };
        made.lock = Mutex::new(Some(lock));
        Ok(made.lock_it()?.then_some(made))
    }

    /// Marks and locks the directory by its new lock file; false if another run has removed it, or will.
    fn lock_it(&self) -> Result<bool> {
        let held = held(&self.lock);
        let Some(lock) = held.as_ref() else {
            return Ok(false);
        };
        let path = self.path.join(LOCK);
        let stat = rustix::fs::fstat(lock).map_err(|e| errno::on_path("look at", &path, e))?;
        if self.stat.st_uid != stat.st_uid {
            return Err(self.is_anothers());
        }
        mark(lock, &path, false)?;
        // On a file system without locks, left-overs are never recognised, which is safe.
        let locked = rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive);
        // Synced before anything else, so that a crash leaves a directory that the next run recognises.
        lock.sync_all()
            .map_err(|error| errno::on_sync(&path, errno::of_std(&error)))?;
        Ok(locked != Err(Errno::WOULDBLOCK)
            && stands_for(&self.dir, LOCK, &stat)
            && stands_for(&self.parent, &self.name, &self.stat))
    }

    /// Notes in the lock file that programs run in the directory.
    fn open_to_programs(&self) -> Result<()> {
        if !self.is_for_programs.swap(true, Ordering::Relaxed)
            && let Some(lock) = held(&self.lock).as_ref()
        {
            mark(lock, &self.path.join(LOCK), true)?;
        }
        Ok(())
    }

    fn is_anothers(&self) -> Error {
        Error::refused(format!(
            "refusing to use {}: another process has put a directory of its own there",
            self.path.display()
        ))
        .hint("choose a directory that no other user can write to")
    }

    /// Opens a directory by its name, without the duty to remove it; `None` if it is gone.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(parent: &OwnedFd, parent_path: &Path, name: &str) -> Result<Option<Self>> {
        let path = parent_path.join(name);
        let dir = match open_dir(parent, name) {
            Err(Errno::NOENT) => return Ok(None),
            dir => dir.map_err(|errno| errno::on_path("open", &path, errno))?,
        };
        let stat = rustix::fs::fstat(&dir).map_err(|e| errno::on_path("look at", &path, e))?;
        let parent = rustix::io::fcntl_dupfd_cloexec(parent, 0)
            .map_err(|errno| errno::on_path("hold the directory of", &path, errno))?;
        Ok(Some(Self {
            parent,
            name: name.to_owned(),
            path,
            dir,
            stat,
            lock: Mutex::new(None),
            made: AtomicU64::new(0),
            is_for_programs: AtomicBool::new(false),
        }))
    }

    /// Creates a file for exactly `bytes` bytes.
    ///
    /// # Errors
    /// The file cannot be made, or cannot have that size.
    fn file(self: &Arc<Self>, name: String, bytes: u64) -> Result<(Scratch, File)> {
        check_process_limit(bytes)?;
        let path = self.path.join(&name);
        let file = create_in(&self.dir, &name).map_err(|e| errno::on_path("create", &path, e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| errno::on_path("look at", &path, e))?;
        let scratch = Scratch {
            dir: Arc::clone(self),
            own: Mutex::new(Some(Arc::clone(self))),
            name,
            path,
            stat,
        };
        Ok((scratch, file))
    }

    /// Removes the directory; does nothing if another process does that.
    ///
    /// # Errors
    /// The directory is not empty, its name now stands for something else, or it cannot be removed.
    fn remove(&self) -> Result<()> {
        let Some(lock) = held(&self.lock).take() else {
            return Ok(());
        };
        match rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            // Removed, and not renamed.
            Err(Errno::NOENT)
                if rustix::fs::fstat(&self.dir).is_ok_and(|now| now.st_nlink == 0) =>
            {
                return Ok(());
            }
            Err(Errno::NOENT) => return Err(replaced(&self.path, "directory")),
            Ok(now) if !same_inode(&now, &self.stat) => {
                return Err(replaced(&self.path, "directory"));
            }
            _ => {}
        }
        let stat = rustix::fs::fstat(&lock);
        match remove_emptied(&self.parent, &self.name, &self.dir, lock) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                // No later run takes the rest for its left-over.
                if stat.is_ok_and(|stat| stands_for(&self.dir, LOCK, &stat)) {
                    let _ = rustix::fs::unlinkat(&self.dir, LOCK, AtFlags::empty());
                }
                Err(Error::failed(format!(
                    "{} holds what iolab has not made and was left alone",
                    self.path.display()
                ))
                .hint("look into it and delete it by hand; have the program write elsewhere"))
            }
            done => done.map_err(|errno| cannot_remove(&self.path, errno)),
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // No one is left to report to; [`Target::remove`] reports errors.
        let _ = self.remove();
    }
}

/// Name of a file in a scratch directory, and the duty to remove it.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: Arc<ScratchDir>,
    /// Directory for further files: `dir`, unless that is another process's; made there for the first of them.
    own: Mutex<Option<Arc<ScratchDir>>>,
    name: String,
    path: PathBuf,
    stat: Stat,
}

impl Scratch {
    /// Opens the file in the scratch directory that process 0 of a run made at `path`, with `region` usable bytes.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) for any other file; of kind
    /// [`Usage`](iolab_workload::Kind::Usage) when it is out of reach.
    pub(super) fn join(parent: &OwnedFd, path: &Path, region: u64) -> Result<(Self, File)> {
        let not_ours = || {
            Error::refused(format!(
                "refusing to use {}: it is not the scratch file of this run",
                path.display()
            ))
            .hint("another program interferes there; choose another directory")
        };
        let out_of_reach = |error: Error| {
            error.hint(
                "all ranks use one scratch file: give a directory on a file system that all hosts share",
            )
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| leftovers::is_scratch_name(name));
        let name = name.ok_or_else(not_ours)?;
        let parent_path = path.parent().unwrap_or(Path::new(""));
        let dir = ScratchDir::open(parent, parent_path, name).map_err(out_of_reach)?;
        let gone = || out_of_reach(errno::on_path("open", path, Errno::NOENT));
        let dir = dir.ok_or_else(gone)?;
        let path = dir.path.join(REGION);
        let file = open_in(&dir.dir, REGION);
        let file = file.map_err(|errno| out_of_reach(errno::on_path("open", &path, errno)))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| errno::on_path("look at", &path, e))?;
        let lock = open_in(&dir.dir, LOCK).ok();
        let is_ours = leftovers::could_be_ours;
        let lock = lock.filter(|lock| rustix::fs::fstat(lock).is_ok_and(|stat| is_ours(&stat)));
        let maker = lock.and_then(|lock| leftovers::maker_in(&lock));
        let is_region = is_ours(&stat) && u64::try_from(stat.st_size) == Ok(region);
        if maker.is_none() || !is_region || !leftovers::is_own(&dir.stat) {
            return Err(not_ours());
        }
        let scratch = Self {
            dir: Arc::new(dir),
            own: Mutex::new(None),
            name: REGION.to_owned(),
            path,
            stat,
        };
        Ok((scratch, file))
    }

    /// Creates a scratch directory with a file of `region` bytes.
    ///
    /// # Errors
    /// The directory is not writable, or the file cannot have that size.
    pub(super) fn create(parent: &OwnedFd, path: &Path, region: u64) -> Result<(Self, File)> {
        check_process_limit(region)?;
        procfs::check(0, 0)?;
        let (scratch, file) = ScratchDir::create(parent, path)?.file(REGION.to_owned(), region)?;
        file.set_len(region).map_err(|error| {
            let errno = errno::of_std(&error);
            errno::on_transfer("ftruncate", region, 0, &scratch.path, errno)
        })?;
        Ok((scratch, file))
    }

    /// Checks that no other user can change a name in the directory, so that a name given to a program stays
    /// with the file that iolab made. File systems without permissions let all users read it.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused).
    pub(super) fn check_private(&self) -> Result<()> {
        let stat = &self.dir.stat;
        if stat.st_mode & 0o022 == 0 && leftovers::is_own(stat) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "refusing to give programs a file in {}: its file system does not keep other users from changing names in iolab's own directory there",
            self.dir.path.parent().unwrap_or(Path::new("")).display()
        ))
        .hint("choose another directory, run iolab as the user to whom new files there belong, or mount the file system so that only you can write (vfat, exfat, ntfs, cifs: umask=022 or dir_mode=0755)"))
    }

    /// Creates an empty file for programs, for exactly `bytes` bytes; no other file there has that size.
    ///
    /// # Errors
    /// The file cannot be made, or cannot have that size.
    pub(super) fn sized_beside(&self, bytes: u64) -> Result<(Self, File)> {
        let own = self.own()?;
        own.open_to_programs()?;
        own.file(name_within(bytes), bytes)
    }

    /// Creates an empty file that belongs to this one, for exactly `bytes` bytes.
    ///
    /// # Errors
    /// The file cannot be made, or cannot have that size.
    pub(super) fn numbered_beside(&self, bytes: u64) -> Result<(Self, File)> {
        let own = self.own()?;
        let number = own.made.fetch_add(1, Ordering::Relaxed);
        own.file(number.to_string(), bytes)
    }

    fn own(&self) -> Result<Arc<ScratchDir>> {
        let mut own = held(&self.own);
        if let Some(own) = own.as_ref() {
            return Ok(Arc::clone(own));
        }
        let parent_path = self.dir.path.parent().unwrap_or(Path::new(""));
        let made = ScratchDir::create(&self.dir.parent, parent_path)?;
        *own = Some(Arc::clone(&made));
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Directory that it is in.
    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir.dir
    }

    /// Path of that directory.
    pub(super) fn dir_path(&self) -> &Path {
        &self.dir.path
    }

    /// Handle that removes the directory while others use it; `None` if another process made it.
    pub(super) fn remover(&self) -> Option<ScratchRemover> {
        (!self.is_anothers()).then(|| ScratchRemover(Arc::downgrade(&self.dir)))
    }

    /// Removes what programs have made in the directory, except these files, if it is for programs.
    pub(super) fn sweep(&self, kept: &[Stat]) {
        if self.dir.is_for_programs.load(Ordering::Relaxed) {
            leftovers::sweep(&self.dir.dir, kept, true);
        }
    }

    /// Removes the file, if its name still stands for it; with the region's file, the directory too.
    ///
    /// # Errors
    /// The name now stands for another file, or the file cannot be removed.
    pub(super) fn remove(&self) -> Result<()> {
        let removed = match self.is_anothers() {
            true => Ok(()),
            false => self.unlink(),
        };
        match self.name == REGION {
            true => {
                let own = held(&self.own).clone();
                removed.and(own.map_or(Ok(()), |own| own.remove()))
            }
            false => removed,
        }
    }

    /// Whether another process made the file, and removes it.
    fn is_anothers(&self) -> bool {
        let own = held(&self.own);
        !own.as_ref().is_some_and(|own| Arc::ptr_eq(&self.dir, own))
    }

    fn unlink(&self) -> Result<()> {
        match rustix::fs::statat(&self.dir.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Ok(now) if same_inode(&now, &self.stat) => {
                rustix::fs::unlinkat(&self.dir.dir, &*self.name, AtFlags::empty())
                    .map_err(|errno| cannot_remove(&self.path, errno))
            }
            Ok(_) => Err(replaced(&self.path, "file")),
            Err(errno) => Err(cannot_remove(&self.path, errno)),
        }
    }

    /// Whether the path leads to this file, in the directory in which it was made. Names made by iolab are
    /// looked up step by step: the path may be longer than a system call accepts.
    pub(super) fn is_at_its_path(&self) -> bool {
        let ScratchDir {
            parent,
            name,
            path,
            dir,
            stat,
            ..
        } = &*self.dir;
        let place = rustix::fs::stat(path.parent().unwrap_or(Path::new("")));
        let is_parent = |held: Stat| place.is_ok_and(|now| same_inode(&now, &held));
        rustix::fs::fstat(parent).is_ok_and(is_parent)
            && stands_for(parent, name, stat)
            && stands_for(dir, &self.name, &self.stat)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // No one is left to report to; [`Target::remove`] reports errors.
        if !self.is_anothers() {
            let _ = self.unlink();
        }
    }
}

/// Remover of a scratch directory whose target cannot be dropped, because its threads wait for storage.
#[derive(Debug)]
pub struct ScratchRemover(Weak<ScratchDir>);

impl ScratchRemover {
    /// Removes the directory with its files. True if it is gone. It stays if its name now stands for another
    /// one, or a file from elsewhere is in it. Blocks without end if the storage does not answer.
    pub fn remove(&self) -> bool {
        let Some(dir) = self.0.upgrade() else {
            return true;
        };
        if !stands_for(&dir.parent, &dir.name, &dir.stat) {
            return false;
        }
        leftovers::sweep(&dir.dir, &[], dir.is_for_programs.load(Ordering::Relaxed));
        dir.remove().is_ok()
    }
}

/// Removes a directory with nothing but its lock file in it.
///
/// # Errors
/// `ENOTEMPTY` if it holds something else, be it under the name of the lock file; errors of unlinkat(2).
fn remove_emptied(
    parent: impl AsFd,
    name: &str,
    dir: &OwnedFd,
    lock: File,
) -> std::result::Result<(), Errno> {
    let stat = rustix::fs::fstat(&lock)?;
    // NFS keeps the removed name of an open file.
    drop(lock);
    let is_lock = |name: &String| name == LOCK && stands_for(dir, LOCK, &stat);
    if entries(dir).is_none_or(|names| !names.iter().all(is_lock)) {
        return Err(Errno::NOTEMPTY);
    }
    for (dir, name, flags) in [
        (dir.as_fd(), LOCK, AtFlags::empty()),
        (parent.as_fd(), name, AtFlags::REMOVEDIR),
    ] {
        match rustix::fs::unlinkat(dir, name, flags) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn held<T>(lock: &Mutex<Option<T>>) -> std::sync::MutexGuard<'_, Option<T>> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the text of a lock file, at `path`.
fn mark(lock: &File, path: &Path, is_for_programs: bool) -> Result<()> {
    let text = leftovers::mark(is_for_programs);
    lock.write_all_at(text.as_bytes(), 0).map_err(|error| {
        errno::on_transfer("pwrite", text.len() as u64, 0, path, errno::of_std(&error))
    })
}

/// Name of a file for programs.
pub(super) fn name_within(bytes: u64) -> String {
    bytes.to_string()
}

/// Whether a name stands for this inode.
fn stands_for(dir: impl AsFd, name: &str, stat: &Stat) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|now| same_inode(&now, stat))
}

fn create_in(dir: &OwnedFd, name: &str) -> std::result::Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(MODE)).map(File::from)
}

fn open_in(dir: &OwnedFd, name: &str) -> std::result::Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map(File::from)
}

fn open_dir(parent: impl AsFd, name: &str) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Names in a directory, in order; `None` when it cannot be read. Needs no descriptor more: a run that lacks them has
/// to remove its files all the same.
fn entries(dir: &OwnedFd) -> Option<Vec<String>> {
    rustix::fs::seek(dir, SeekFrom::Start(0)).ok()?;
    let mut buffer = Vec::with_capacity(4096);
    let mut list = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = list.next() {
        let entry = entry.ok()?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    Some(names)
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

/// Error for a name that another process has taken.
fn replaced(path: &Path, what: &str) -> Error {
    Error::failed(format!(
        "{} is no longer iolab's scratch {what} and was left alone",
        path.display()
    ))
    .hint(format!(
        "another process replaced it; find the scratch {what} and delete it by hand"
    ))
}
