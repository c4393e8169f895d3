//! The scratch file: a file of our own in the user's directory, and the left-overs of dead runs.
//!
//! Layout: the usable region, then a footer of [`FOOTER_LEN`] bytes that tells a left-over from
//! anybody else's file. A run holds an exclusive `flock` as long as it lives, so a lock that can
//! be had means that the run is dead.
//!
//! Other files belong to it, and are left-overs when it is one: those that a worker has for itself, and fresh ones. They have
//! exactly the size asked for and bear its name, a dot, their size, a dot and a number. Those of programs, which read a file to
//! its end and must not meet a footer, lie in a folder of their own beside it (`private.rs`) and are named by their size.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::memory_limits;
use iolab_spec::{Error, Result};

use super::errno;
use super::lookup::same_inode;
use super::private::{self, Left, Private};
use super::size::{check_process_limit, human};

/// Bytes after the usable region.
pub(super) const FOOTER_LEN: u64 = 4096;
const PREFIX: &str = ".iolab-scratch-";
const DIGITS: usize = 16;
const MAGIC: &[u8] =
    b"iolab scratch file: holds no data, safe to delete when no iolab is running\n";
const MODE: u32 = 0o600;
/// Names are random: a second try is for the run that was raced, more would hide a fault.
const TRIES: u32 = 8;

/// The name of a scratch file, and the duty to remove it.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: OwnedFd,
    /// The directory in which `dir` was made for it, under this name; `None` where `dir` was there before.
    above: Option<(OwnedFd, String)>,
    name: String,
    path: PathBuf,
    stat: Stat,
    removed: bool,
    /// Files with a number that were made beside it.
    made: AtomicU64,
}

impl Scratch {
    /// Opens the file that process 0 of a run made, with `region` usable bytes; `rank` keeps apart what the processes make
    /// beside it.
    ///
    /// # Errors
    /// Of kind refused when it is anything else; of kind usage when it is out of reach.
    pub(super) fn join(dir: OwnedFd, path: &Path, region: u64, rank: u32) -> Result<(Self, File)> {
        let not_ours = || {
            Error::refused(format!(
                "refusing to use {}: it is not the scratch file of this run",
                path.display()
            ))
            .hint("another program interferes there; choose another directory")
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| is_scratch_name(name));
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
        if !could_be_ours(&stat)
            || length != region.checked_add(FOOTER_LEN)
            || !carries_footer(&file, region + FOOTER_LEN)
        {
            return Err(not_ours());
        }
        let scratch = Self {
            dir,
            above: None,
            name,
            path: path.to_owned(),
            stat,
            // Another process made it, and removes it.
            removed: true,
            made: AtomicU64::new(u64::from(rank) << 32),
        };
        Ok((scratch, file))
    }

    /// Creates, locks and marks a file with a usable region of `region` bytes.
    ///
    /// # Errors
    /// When the directory is not writable or the file cannot have that size.
    pub(super) fn create(dir: OwnedFd, dir_path: &Path, region: u64) -> Result<(Self, File)> {
        check_process_limit(region + FOOTER_LEN)?;
        memory_limits::check(0)?;
        for _ in 0..TRIES {
            let name = format!("{PREFIX}{:016x}", random()?);
            let handle = hold(&dir, dir_path)?;
            let flags =
                OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(MODE);
            let file = match rustix::fs::openat(&dir, &*name, flags, mode) {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(cannot_create(dir_path, errno)),
            };
            if !lock(&file) {
                // Another run took it for a left-over in the instant before the lock; it will remove it.
                continue;
            }
            let path = dir_path.join(&name);
            let stat = rustix::fs::fstat(&file).map_err(|e| errno::on_path("look at", &path, e))?;
            let scratch = Self {
                dir: handle,
                above: None,
                name,
                path,
                stat,
                removed: false,
                made: AtomicU64::new(0),
            };
            if !scratch.name_is_ours() {
                continue;
            }
            mark(&file, &scratch.path, region)?;
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
        let parent = self.path.parent().unwrap_or(Path::new(""));
        Private::create(
            hold(&self.dir, parent)?,
            parent,
            &self.name,
            self.stat.st_uid,
        )
    }

    /// Creates a file of programs in that folder, for exactly `bytes` bytes, which no other has; it is still empty.
    ///
    /// # Errors
    /// When the file cannot be made or cannot have that size.
    pub(super) fn within(folder: &Private, bytes: u64) -> Result<(Self, File)> {
        let name = name_within(bytes);
        let (mut scratch, file) = Self::new_file(folder.dir(), folder.path(), name, bytes)?;
        let (parent, name) = folder.place();
        scratch.above = Some((hold(parent, folder.path())?, name.to_owned()));
        Ok((scratch, file))
    }

    /// Creates a file that belongs to this one, for exactly `bytes` bytes; it is still empty.
    ///
    /// # Errors
    /// When the file cannot be made or cannot have that size.
    pub(super) fn numbered_beside(&self, bytes: u64) -> Result<(Self, File)> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let parent = self.path.parent().unwrap_or(Path::new(""));
        let name = format!("{}.{bytes}.{number}", self.name);
        Self::new_file(&self.dir, parent, name, bytes)
    }

    fn new_file(dir: &OwnedFd, parent: &Path, name: String, bytes: u64) -> Result<(Self, File)> {
        check_process_limit(bytes)?;
        let path = parent.join(&name);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(MODE);
        let file = rustix::fs::openat(dir, &*name, flags, mode)
            .map(File::from)
            .map_err(|errno| errno::on_path("create", &path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| errno::on_path("look at", &path, e))?;
        let scratch = Self {
            dir: hold(dir, parent)?,
            above: None,
            name,
            path,
            stat,
            removed: false,
            made: AtomicU64::new(0),
        };
        Ok((scratch, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that it is in.
    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Removes the file, after making sure that its name still stands for it.
    ///
    /// # Errors
    /// When the name stands for something else by now, or the file cannot be removed.
    pub(super) fn remove(&mut self) -> Result<()> {
        if self.removed {
            return Ok(());
        }
        match rustix::fs::statat(&self.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(now) if same_inode(&now, &self.stat) => {
                rustix::fs::unlinkat(&self.dir, &*self.name, AtFlags::empty())
                    .map_err(|errno| errno::on_path("remove", &self.path, errno))?;
            }
            Ok(_) => {
                return Err(Error::failed(format!(
                    "{} is no longer iolab's scratch file and was left alone",
                    self.path.display()
                ))
                .hint("another process replaced it; find the scratch file and delete it by hand"));
            }
            Err(errno) => return Err(errno::on_path("remove", &self.path, errno)),
        }
        self.removed = true;
        Ok(())
    }

    /// Whether its path leads to it, in the directory in which it was made. What iolab has made itself is looked up step by
    /// step: the path may be longer than a system call takes.
    pub(super) fn is_at_its_path(&self) -> bool {
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        let is = |now: std::result::Result<Stat, Errno>, held: &OwnedFd| {
            let held = rustix::fs::fstat(held);
            now.is_ok_and(|now| held.is_ok_and(|held| same_inode(&now, &held)))
        };
        let own = parent(&self.path);
        let leads_to_dir = match &self.above {
            None => is(rustix::fs::stat(&own), &self.dir),
            Some((above, name)) => {
                let now = rustix::fs::statat(above, &**name, AtFlags::SYMLINK_NOFOLLOW);
                is(now, &self.dir) && is(rustix::fs::stat(parent(&own)), above)
            }
        };
        leads_to_dir && self.name_is_ours()
    }

    fn name_is_ours(&self) -> bool {
        rustix::fs::statat(&self.dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|now| same_inode(&now, &self.stat))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is left to report to; `Target::remove` is for those who want to know.
        let _ = self.remove();
    }
}

/// A further descriptor of a directory.
fn hold(dir: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(dir, 0).map_err(|errno| errno::on_path("hold", path, errno))
}

/// A number from the kernel, which needs no `/dev` for it.
fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    let given = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty());
    match given {
        Ok(count) if count == bytes.len() => Ok(u64::from_ne_bytes(bytes)),
        other => Err(Error::failed(format!(
            "the kernel gives no random number for the name of a scratch file: {}",
            other.err().unwrap_or(Errno::IO)
        ))
        .hint("give an existing file as the target, or allow the system call getrandom")),
    }
}

/// Checks that files can be made in a directory, before its free space is talked about.
///
/// # Errors
/// When the file system is read-only or the permissions are lacking.
pub(super) fn check_writable(dir: impl AsFd, path: &Path) -> Result<()> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(dir, c".", access, AtFlags::EACCESS) {
        Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(cannot_create(path, errno)),
        // A kernel that cannot tell lets the creation tell.
        Ok(()) | Err(_) => Ok(()),
    }
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
        // A file system without locks: its left-overs are never recognised, which is the safe side.
        Ok(()) | Err(_) => true,
    }
}

/// The footer, for a region of this many bytes.
fn footer(region: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&region.to_le_bytes());
    bytes.resize(FOOTER_LEN as usize, 0);
    bytes
}

fn mark(file: &File, path: &Path, region: u64) -> Result<()> {
    let fail = |error: &std::io::Error| {
        errno::on_transfer("pwrite", FOOTER_LEN, region, path, errno::of_std(error))
    };
    file.write_all_at(&footer(region), region)
        .map_err(|error| fail(&error))?;
    // On disk before anything else, so that a crash leaves a file that the next run knows.
    file.sync_all().map_err(|error| {
        let errno = errno::of_std(&error);
        errno::remedied(
            Error::failed(format!(
                "fsync of {} failed: {}",
                path.display(),
                errno::reason(errno)
            )),
            errno,
        )
    })
}

/// Removes scratch files of dead runs from a directory; a note for each.
///
/// What is not beyond doubt a left-over of ours stays, and so does what cannot be read.
pub(super) fn remove_leftovers(dir: impl AsFd, path: &Path) -> Vec<String> {
    remove_leftovers_but(dir, path, &[])
}

/// As [`remove_leftovers`], but leaves these files alone: they are live, and their locks may not be seen from here.
pub(super) fn remove_leftovers_but(dir: impl AsFd, path: &Path, live: &[String]) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(list) =
        rustix::fs::openat(&dir, c".", flags, Mode::empty()).and_then(rustix::fs::Dir::new)
    else {
        return Vec::new();
    };
    let names: Vec<String> = list
        .filter_map(std::result::Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    names
        .iter()
        .filter(|name| is_scratch_name(name) && !live.contains(name))
        .filter_map(|name| match remove_if_dead(&dir, name, &names)? {
            Left::Gone(length) => Some(format!(
                "removed {}, a scratch file of {} left by a run that was killed",
                path.join(name).display(),
                human(length)
            )),
            Left::Kept(folder) => Some(format!(
                "{} was left by a run that was killed and holds what iolab has not made; look into it and delete it by hand",
                path.join(folder).display()
            )),
        })
        .collect()
}

/// The size that the name of a file gives that belongs to the scratch file `of`.
fn size_beside(name: &str, of: &str) -> Option<u64> {
    let rest = name.strip_prefix(of)?.strip_prefix('.')?;
    let (size, number) = rest.split_once('.')?;
    canonical(number)?;
    size_within(size)
}

/// The name of a file in the folder of programs.
pub(super) fn name_within(bytes: u64) -> String {
    bytes.to_string()
}

/// The size that such a name gives.
fn size_within(name: &str) -> Option<u64> {
    canonical(name).filter(|bytes| *bytes > 0)
}

/// A number as this module writes it.
fn canonical(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn is_scratch_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Removes one file when it is a left-over, after those of `names` and the folder that belong to it; tells the length they had.
/// Where the folder stays, so does the file: a later run tries again.
fn remove_if_dead(dir: impl AsFd, name: &str, names: &[String]) -> Option<Left> {
    let look = || rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let before = look().filter(could_be_ours)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&dir, name, flags, Mode::empty()).ok()?);
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Everything anew under the lock: a live run may have gone on since.
    let stat = rustix::fs::fstat(&file).ok()?;
    let length = u64::try_from(stat.st_size).ok()?;
    let genuine = same_inode(&before, &stat)
        && could_be_ours(&stat)
        && (length == 0 || carries_footer(&file, length))
        && look().is_some_and(|now| same_inode(&now, &stat));
    if !genuine {
        return None;
    }
    let beside: u64 = names
        .iter()
        .filter_map(|other| remove_beside(&dir, other, size_beside(other, name)?))
        .sum();
    let within = private::remove_left(&dir, name, stat.st_uid, |folder, name| {
        remove_beside(folder, name, size_within(name)?)
    });
    let Left::Gone(within) = within else {
        return Some(within);
    };
    rustix::fs::unlinkat(&dir, name, AtFlags::empty()).ok()?;
    Some(Left::Gone(length + beside + within))
}

/// Removes a file that belongs to a left-over; it may have been killed before it had its full size.
fn remove_beside(dir: impl AsFd, name: &str, bytes: u64) -> Option<u64> {
    let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let length = u64::try_from(stat.st_size).ok()?;
    if !could_be_ours(&stat) || length > bytes {
        return None;
    }
    rustix::fs::unlinkat(&dir, name, AtFlags::empty()).ok()?;
    Some(length)
}

fn could_be_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_mode & 0o7777 == MODE
        && stat.st_nlink == 1
        && stat.st_uid == rustix::process::geteuid().as_raw()
}

fn carries_footer(file: &File, length: u64) -> bool {
    let Some(region) = length.checked_sub(FOOTER_LEN) else {
        return false;
    };
    let mut found = vec![0; FOOTER_LEN as usize];
    file.read_exact_at(&mut found, region).is_ok() && found == footer(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_looked_at() {
        assert!(is_scratch_name(".iolab-scratch-0123456789abcdef"));
        for name in [
            "iolab-scratch-0123456789abcdef",
            ".iolab-scratch-0123456789abcde",
            ".iolab-scratch-0123456789abcdef0",
            ".iolab-scratch-0123456789ABCDEF",
            ".iolab-scratch-0123456789abcdeg",
            ".iolab-scratch-",
        ] {
            assert!(!is_scratch_name(name), "{name}");
        }
    }

    #[test]
    fn only_what_bears_its_name_belongs_to_a_file() {
        let of = ".iolab-scratch-0123456789abcdef";
        for rest in [".4096.0", ".4096.17"] {
            assert_eq!(size_beside(&format!("{of}{rest}"), of), Some(4096));
        }
        for rest in [
            "",
            ".",
            ".4096",
            ".0.0",
            ".01.0",
            ".+1.0",
            ".-1.0",
            ".1x.0",
            ".99999999999999999999999.0",
            "0.1.0",
            ".1.",
            ".1.01",
            ".1.x",
            ".1.1.1",
        ] {
            assert_eq!(size_beside(&format!("{of}{rest}"), of), None, "{rest}");
        }
        assert_eq!(size_beside(".iolab-scratch-0123456789abcdee.1.0", of), None);
        for (name, size) in [("1", Some(1)), ("0", None), ("01", None), ("1.zst", None)] {
            assert_eq!(size_within(name), size, "{name}");
        }
    }

    #[test]
    fn a_name_that_changed_hands_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let handle = OwnedFd::from(File::open(dir.path()).unwrap());
        let (mut scratch, _file) = Scratch::create(handle, dir.path(), 8192).unwrap();
        let moved = dir.path().join("moved");
        std::fs::rename(scratch.path(), &moved).unwrap();
        std::fs::write(scratch.path(), "somebody's data").unwrap();
        let error = scratch.remove().unwrap_err();
        assert!(error.message().contains("left alone"), "{error}");
        drop(scratch);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
