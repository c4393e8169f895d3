//! Scratch directories left by killed runs: those known to be iolab's are removed, the others stay and are
//! reported.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, Statx, StatxFlags};
use rustix::io::Errno;

use super::super::path_lookup::{self, same_inode};
use super::super::target_size::human;
use super::{DIGITS, LOCK, MODE, PREFIX, REGION, entries, open_dir, open_in, remove_emptied};
use crate::procfs::{self, ProcessStat};
use crate::{device_stack, sysfs};

/// First line of a lock file.
const SIGNATURE: &str =
    "iolab scratch directory: holds no data, safe to delete when no iolab is running\n";
/// Last line of the lock file of a directory in which programs run.
const FOR_PROGRAMS: &str = "\nprograms write here\n";

/// Finding for a name of a scratch directory.
enum Found {
    /// A directory that a run uses, or something that is not iolab's: left alone.
    Other,
    /// A left-over, removed with the bytes of its files.
    Removed(u64),
    /// A likely left-over, without proof.
    Unknown,
    /// A left-over that stays, because a file from elsewhere is in it: a later run tries again.
    Kept,
}

/// Content of the lock file of this process.
pub(super) fn mark(is_for_programs: bool) -> String {
    let maker = maker(std::process::id()).unwrap_or_default();
    let programs = if is_for_programs { FOR_PROGRAMS } else { "" };
    format!("{SIGNATURE}{maker}{programs}")
}

/// A live process in words: boot of its machine, number, start in ticks since boot; `None` for a killed one, even if its end
/// was not collected, and where the kernel reports too little.
fn maker(process: u32) -> Option<String> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let stat = ProcessStat::parse(&stat).filter(|stat| !stat.has_ended())?;
    Some(format!(
        "{} {process} {}",
        procfs::boot_id()?,
        stat.number(22)?
    ))
}

/// The process that a lock file names, empty if it names none; `None` if the file is not a lock file of iolab.
pub(super) fn maker_in(lock: &File) -> Option<String> {
    let mut text = [0; 256];
    let length = lock.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.strip_prefix(SIGNATURE).map(str::to_owned)
}

/// Whether the maker is another live process on this machine. The maker's lock may not be visible here: locks do
/// not pass an overlay, or an NFS mount without locks.
fn lives_elsewhere(named: &str) -> bool {
    let number = named
        .split(' ')
        .nth(1)
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number| {
        number != std::process::id() && maker(number).is_some_and(|maker| maker == named)
    })
}

/// Bytes of the files in a directory's directories with names of scratch directories. Upper bound of the space
/// that removing left-overs frees. 0 for other paths, unreadable directories, and ones on a suspended device.
pub fn leftover_bytes(dir: &Path) -> u64 {
    let is_awake = |found| device_stack::check_awake(&found).is_ok();
    if !path_lookup::find(dir).is_ok_and(is_awake) {
        return 0;
    }
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(PREFIX.as_bytes()) && path.symlink_metadata().is_ok_and(|it| it.is_dir())
    };
    let own = sysfs::paths_in(dir).into_iter().filter(is_ours);
    let files = own.flat_map(sysfs::paths_in);
    let bytes = files.filter_map(|file| Some(file.symlink_metadata().ok()?.len()));
    bytes.fold(0, u64::saturating_add)
}

/// Removes scratch directories of dead runs from a directory, with a note for each. The directories `live` are left alone:
/// their locks may not be visible here.
///
/// Directories that are not certainly iolab's left-overs stay, and so do unreadable ones.
pub(in super::super) fn remove_leftovers(
    dir: impl AsFd,
    path: &Path,
    live: &[String],
) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let list = rustix::fs::openat(&dir, c".", flags, Mode::empty());
    let Some(names) = list.ok().and_then(|list| entries(&list)) else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let names = names.into_iter().filter(|name| is_scratch_name(name));
    for name in names.filter(|name| !live.contains(name)) {
        let place = path.join(&name);
        let place = place.display();
        match remove_if_dead(&dir, &name) {
            Found::Other => {}
            Found::Removed(bytes) => notes.push(format!(
                "removed {place}, a scratch directory of {} left by a run that was killed",
                human(bytes)
            )),
            Found::Unknown => notes.push(format!(
                "left {place} alone: named like a scratch directory, but not known to be iolab's; remove it by hand if you do not need it"
            )),
            Found::Kept => notes.push(format!(
                "left {place} of a run that was killed: it holds what iolab has not made or cannot remove; look into it and remove it by hand"
            )),
        }
    }
    notes
}

/// Whether this is the name of a scratch directory.
pub(super) fn is_scratch_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS
            && digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

fn look_at(dir: impl AsFd, name: &str) -> Option<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Removes one directory if it is a left-over.
fn remove_if_dead(parent: impl AsFd, name: &str) -> Found {
    let Some(before) = look_at(&parent, name).filter(is_own) else {
        return Found::Other;
    };
    match FileType::from_raw_mode(before.st_mode) {
        FileType::Directory => {}
        FileType::RegularFile => return Found::Unknown,
        _ => return Found::Other,
    }
    let Ok(dir) = open_dir(&parent, name) else {
        return Found::Other;
    };
    let lock = match open_in(&dir, LOCK) {
        Ok(lock) => lock,
        // Its run was killed right after making it, or begins and then takes another name.
        Err(Errno::NOENT)
            if before.st_mode & 0o7777 == 0o700
                && entries(&dir).is_some_and(|names| names.is_empty()) =>
        {
            let removed = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
            return removed.map_or(Found::Unknown, |()| Found::Other);
        }
        Err(_) => return Found::Unknown,
    };
    // Without locks, use by a run cannot be excluded.
    if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Found::Other;
    }
    // All checks are repeated under the lock: a live run may have gone on since.
    let (Ok(stat), Ok(locked)) = (rustix::fs::fstat(&dir), rustix::fs::fstat(&lock)) else {
        return Found::Other;
    };
    let is_at = |now: Option<Stat>, stat| now.is_some_and(|now| same_inode(&now, stat));
    if !is_at(look_at(&parent, name), &stat)
        || !is_at(look_at(&dir, LOCK), &locked)
        || !same_inode(&before, &stat)
    {
        return Found::Other;
    }
    let text = maker_in(&lock).filter(|_| could_be_ours(&locked));
    let Some(text) = text else {
        // As right after making it.
        let is_new = could_be_ours(&locked) && locked.st_size == 0;
        let removed = is_new.then(|| remove_emptied(&parent, name, &dir, lock));
        return removed.map_or(Found::Unknown, |removed| {
            removed.map_or(Found::Unknown, |()| Found::Other)
        });
    };
    let (maker, is_for_programs) = match text.strip_suffix(FOR_PROGRAMS) {
        Some(maker) => (maker, true),
        None => (&*text, false),
    };
    if lives_elsewhere(maker) {
        return Found::Other;
    }
    let bytes = sweep(&dir, &[], is_for_programs);
    match remove_emptied(&parent, name, &dir, lock) {
        Ok(()) => Found::Removed(bytes),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Found::Kept,
        Err(_) => Found::Unknown,
    }
}

/// Removes files with the names and properties of iolab's own from a scratch directory, except those that are `kept`; returns
/// their bytes. Where programs run in it, also what else this user made there since it exists: files, symlinks and empty
/// folders. Older ones came from elsewhere. These stay where others can write to the directory, or the file system records no
/// times of creation.
pub(super) fn sweep(dir: &OwnedFd, kept: &[Stat], is_for_programs: bool) -> u64 {
    let look = |name: &str| {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        rustix::fs::statx(dir, name, flags, wanted).ok()
    };
    let born = look("").as_ref().and_then(birth);
    let is_private = rustix::fs::fstat(dir).is_ok_and(|stat| stat.st_mode & 0o022 == 0);
    let mut bytes = 0;
    for name in entries(dir).unwrap_or_default() {
        let (Some(found), Some(stat)) = (look(&name), look_at(dir, &name)) else {
            continue;
        };
        let is_known = is_own_name(&name) && could_be_ours(&stat);
        let is_of_programs = is_for_programs && is_private && is_own(&stat);
        let is_ours = match (born, birth(&found)) {
            // By a coarse clock, files from elsewhere may be as old as the directory; programs run later.
            (Some(born), Some(made)) => made >= born && is_known || made > born && is_of_programs,
            _ => is_known,
        };
        if !is_ours || name == LOCK || kept.iter().any(|kept| same_inode(kept, &stat)) {
            continue;
        }
        let flags = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => AtFlags::REMOVEDIR,
            FileType::RegularFile | FileType::Symlink => AtFlags::empty(),
            _ => continue,
        };
        // A folder whose content cannot be removed stays, and is reported.
        if rustix::fs::unlinkat(dir, &*name, flags).is_ok() {
            bytes += found.stx_size;
        }
    }
    bytes
}

/// Creation time of an inode where the file system records it, seconds and nanoseconds since 1970.
fn birth(found: &Statx) -> Option<(i64, u32)> {
    let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    is_known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

/// Whether a file in a scratch directory has a name that iolab gives.
fn is_own_name(name: &str) -> bool {
    let is_number = |name: &str| {
        name.parse()
            .is_ok_and(|number: u64| number.to_string() == name)
    };
    name == REGION || is_number(name)
}

pub(super) fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Whether a file has the properties of iolab's own files.
pub(super) fn could_be_ours(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && is_own(stat)
        && stat.st_mode & 0o7777 == MODE
        && stat.st_nlink == 1
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

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
        for name in ["data", "0", "4096"] {
            assert!(is_own_name(name), "{name}");
        }
        for name in [
            "", "lock", "01", "+1", "-1", "1x", "99999999999999999999999", "1.zst",
        ] {
            assert!(!is_own_name(name), "{name}");
        }
    }

    /// The number of an ended process, or one of another boot, means nothing.
    #[test]
    fn maker_is_known_while_it_lives() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep is everywhere");
        let of_child = maker(child.id()).expect("it is there");
        assert!(lives_elsewhere(&of_child));
        assert!(!lives_elsewhere(&format!("{of_child}0")));
        assert!(!lives_elsewhere(&format!("0{of_child}")));
        child.kill().expect("it runs");
        // The process stays in the list until its parent collects it.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), ended).expect("it ends");
        assert!(!lives_elsewhere(&of_child));
        child.wait().expect("it ends");
        assert!(!lives_elsewhere(&of_child));
        // Locks of this process belong to its own files.
        assert!(!lives_elsewhere(
            &maker(std::process::id()).expect("it is there")
        ));
        assert!(!lives_elsewhere(""));
        let lock = tempfile::tempfile().expect("a file");
        assert_eq!(maker_in(&lock), None);
        lock.write_all_at(mark(false).as_bytes(), 0)
            .expect("written");
        assert_eq!(maker_in(&lock), maker(std::process::id()));
    }
}
