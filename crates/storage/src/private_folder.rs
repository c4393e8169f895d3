//! A private folder of iolab next to a scratch file. No other user can change a name in it, so a name always
//! stays with the file that iolab made.

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use super::errno;
use super::path_lookup::same_inode;
use super::scratch::footer::{Listed, ListedFile};

/// Suffix after the name of the scratch file.
const SUFFIX: &str = ".files";
const MODE: u32 = 0o700;

/// The folder, and the duty to remove it once it is empty.
#[derive(Debug)]
pub(super) struct Private {
    parent: OwnedFd,
    name: String,
    path: PathBuf,
    dir: OwnedFd,
    stat: Stat,
    listed: Option<Listed>,
    removed: bool,
}

impl Private {
    /// Makes the folder for the scratch file `of` in a directory, given with its path. `owner` owns the scratch
    /// file, and `list` enters the folder in the scratch file's footer.
    ///
    /// # Errors
    /// The folder cannot be made; of kind [`Refused`](iolab_workload::Kind::Refused) when another process puts
    /// something else in its place.
    pub(super) fn create(
        (parent, path): (OwnedFd, &Path),
        of: &str,
        owner: u32,
        list: impl FnOnce(&OwnedFd, &Path) -> Result<Listed>,
    ) -> Result<Self> {
        let name = name_of(of);
        let path = path.join(&name);
        rustix::fs::mkdirat(&parent, &*name, Mode::from_raw_mode(MODE))
            .map_err(|errno| errno::on_path("make the directory", &path, errno))?;
        let dir = open(&parent, &name).map_err(|errno| errno::on_path("open", &path, errno))?;
        let stat = rustix::fs::fstat(&dir).map_err(|e| errno::on_path("look at", &path, e))?;
        let is_empty = entries(&dir).is_some_and(|names| names.is_empty());
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory
            || stat.st_uid != owner
            || !is_empty
        {
            return Err(Error::refused(format!(
                "refusing to use {}: another process has put a directory of its own there",
                path.display()
            ))
            .hint("choose a directory that no other user can write to"));
        }
        let mut private = Self {
            parent,
            name,
            path,
            dir,
            stat,
            listed: None,
            removed: false,
        };
        if !is_private(&private.stat) {
            return Err(Error::refused(format!(
                "refusing to give programs a file in {}: its file system does not keep other users from changing names in iolab's own directory there",
                private.path.parent().unwrap_or(Path::new("")).display()
            ))
            .hint("choose another directory, run iolab as the user to whom new files there belong, or mount the file system so that only you can write (vfat, exfat, ntfs, cifs: umask=022 or dir_mode=0755)"));
        }
        private.listed = Some(list(&private.dir, &private.path)?);
        Ok(private)
    }

    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Parent directory, and the folder's name there.
    pub(super) fn place(&self) -> (&OwnedFd, &str) {
        (&self.parent, &self.name)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes files, symlinks and empty folders that programs have made here, by any name, except `own` files,
    /// given with their names. Entries older than the folder came from elsewhere and stay.
    pub(super) fn sweep(&self, own: &[(String, Stat)]) {
        sweep(&self.dir, |name| {
            let found = rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_it = |stat| found.as_ref().is_ok_and(|found| same_inode(found, stat));
            own.iter().any(|(own, stat)| own == name && is_it(stat))
        });
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// The folder is not empty, or its name now stands for something else.
    pub(super) fn remove(&mut self) -> Result<()> {
        if self.removed {
            return Ok(());
        }
        let left =
            |why: &str| Error::failed(format!("{} {why} and was left alone", self.path.display()));
        match rustix::fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(now) if same_inode(&now, &self.stat) => {
                match rustix::fs::unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::NOTEMPTY | Errno::EXIST) => {
                        return Err(left("holds what iolab has not made").hint(
                            "look into it and delete it by hand; have the program write elsewhere",
                        ));
                    }
                    Err(errno) => return Err(errno::on_path("remove", &self.path, errno)),
                }
            }
            Ok(_) => {
                return Err(left("is no longer iolab's directory").hint(
                    "another process replaced it; find the directory and delete it by hand",
                ));
            }
            Err(errno) => return Err(errno::on_path("remove", &self.path, errno)),
        }
        self.removed = true;
        if let Some(listed) = self.listed.take() {
            listed.leave();
        }
        Ok(())
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // No one is left to report to.
        let _ = self.remove();
    }
}

/// Result of removing a left-over folder.
pub(super) enum Left {
    /// The folder is gone, or the left-over lists none; with the bytes of its files.
    Gone(u64),
    /// The folder stays, because something is in it.
    Kept,
}

/// Removes the folder listed by the left-over `of`, with everything made in it. `remove` deletes iolab's own
/// files and returns their bytes.
pub(super) fn remove_left(
    parent: impl AsFd,
    of: &str,
    listed: &[ListedFile],
    remove: impl Fn(&OwnedFd, &str) -> Option<u64>,
) -> Left {
    let name = name_of(of);
    let Ok(dir) = open(&parent, &name) else {
        return Left::Gone(0);
    };
    let entry = ListedFile::of(&dir, c"", AtFlags::EMPTY_PATH);
    let is_ours = entry.is_ok_and(|entry| listed.contains(&entry))
        && rustix::fs::fstat(&dir).is_ok_and(|stat| is_private(&stat));
    if !is_ours {
        return Left::Gone(0);
    }
    let names = entries(&dir).unwrap_or_default();
    let bytes = names.iter().filter_map(|name| remove(&dir, name)).sum();
    sweep(&dir, |_| false);
    match rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR) {
        Ok(()) => Left::Gone(bytes),
        Err(_) => Left::Kept,
    }
}

/// Name of the folder of a scratch file.
pub(super) fn name_of(scratch: &str) -> String {
    format!("{scratch}{SUFFIX}")
}

fn open(parent: impl AsFd, name: &str) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Whether this user owns the folder, and no other one can change names in it. File systems without permissions
/// let all users read it.
fn is_private(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && stat.st_mode & 0o022 == 0
        && stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Removes everything made in a folder since its creation, except names that are `kept`.
fn sweep(dir: &OwnedFd, kept: impl Fn(&str) -> bool) {
    let Some((born, _)) = birth(dir, "") else {
        return;
    };
    for name in entries(dir).unwrap_or_default() {
        let flags = match birth(dir, &name) {
            Some((made, _)) if made <= born || kept(&name) => continue,
            Some((_, FileType::Directory)) => AtFlags::REMOVEDIR,
            Some((_, FileType::RegularFile | FileType::Symlink)) => AtFlags::empty(),
            _ => continue,
        };
        // A folder whose content cannot be removed stays, and is reported.
        let _ = rustix::fs::unlinkat(dir, &*name, flags);
    }
}

/// Names in a folder that are text; `None` when it cannot be read.
fn entries(dir: &OwnedFd) -> Option<Vec<String>> {
    let list = rustix::fs::Dir::read_from(dir).ok()?;
    let names = list.filter_map(std::result::Result::ok);
    let names = names.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    Some(names.filter(|name| name != "." && name != "..").collect())
}

/// Seconds and nanoseconds since 1970.
type Moment = (i64, u32);

/// Creation time of an inode where the file system records it, and its type.
fn birth(dir: &OwnedFd, name: &str) -> Option<(Moment, FileType)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let wanted = StatxFlags::BTIME | StatxFlags::TYPE;
    let stat = rustix::fs::statx(dir, name, flags, wanted).ok()?;
    let is_known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let kind = FileType::from_raw_mode(stat.stx_mode.into());
    is_known.then_some(((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec), kind))
}
