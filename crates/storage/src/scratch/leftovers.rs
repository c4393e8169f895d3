//! Files left by killed runs: those known to be iolab's are removed, the others stay and are reported.

use std::collections::BTreeSet;
use std::fs::{DirEntry, File};
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};

use super::super::path_lookup::{self, same_inode};
use super::super::private_folder::{self, Left};
use super::super::target_size::human;
use super::footer::{self, ListedFile, Maker};
use super::{DIGITS, MODE, PREFIX};
use crate::device_stack;

/// Most names in a note.
const NAMED: usize = 3;

/// Finding for a file with the name of a main file.
enum Main {
    /// A file that a run uses, or that is not iolab's: left alone.
    Other,
    /// A left-over, removed with the files that it listed; with the bytes of all.
    Removed(u64),
    /// A likely left-over, without proof.
    Unknown,
    /// A left-over that stays with its folder, because a file from elsewhere is in it: a later run tries again.
    Kept,
}

/// Bytes of the files in a directory with names of scratch files, and of those in folders with such names.
/// Upper bound of the space that removing left-overs frees. 0 for other paths, unreadable directories, and ones
/// on a suspended device.
pub fn leftover_bytes(dir: &Path) -> u64 {
    let is_awake = |found| device_stack::check_awake(&found).is_ok();
    if !path_lookup::find(dir).is_ok_and(is_awake) {
        return 0;
    }
    let entries = |dir: &Path| dir.read_dir().into_iter().flatten().flatten();
    let is_ours = |entry: &DirEntry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
    };
    let bytes = |entry: DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => entries(&entry.path())
            .filter_map(|entry| entry.metadata().ok())
            .map(|found| found.len())
            .fold(0, u64::saturating_add),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    let own = entries(dir).filter(is_ours).map(bytes);
    own.fold(0, u64::saturating_add)
}

/// Removes scratch files of dead runs from a directory, with a note for each. The files `live` are left alone: their locks may not
/// be visible here.
///
/// Files that are not certainly iolab's left-overs stay, and so do unreadable ones.
pub(in super::super) fn remove_leftovers(
    dir: impl AsFd,
    path: &Path,
    live: &[String],
) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(list) =
        rustix::fs::openat(&dir, c".", flags, Mode::empty()).and_then(rustix::fs::Dir::new)
    else {
        return Vec::new();
    };
    let names = list
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    // A folder lists its entries in any order.
    let names: BTreeSet<String> = names.collect();
    let (mains, others): (Vec<String>, Vec<String>) = names
        .into_iter()
        .filter(|name| name.starts_with(PREFIX))
        .partition(|name| is_scratch_name(name));
    let (mut notes, mut unknown) = (Vec::new(), Vec::new());
    let mut others_mains = live.to_vec();
    for name in mains {
        if live.contains(&name) {
            continue;
        }
        match remove_if_dead(&dir, &name, &others) {
            Main::Other => others_mains.push(name),
            Main::Removed(length) => notes.push(format!(
                "removed {}, a scratch file of {} left by a run that was killed",
                path.join(name).display(),
                human(length)
            )),
            Main::Unknown => unknown.push(name),
            Main::Kept => {
                notes.push(format!(
                    "left {} of a run that was killed: it holds what iolab has not made; look into it and remove it by hand",
                    path.join(private_folder::name_of(&name)).display()
                ));
                others_mains.push(name);
            }
        }
    }
    let look = |name: &str| look_at(&dir, name).is_some_and(|stat| is_own(&stat));
    unknown.extend(others.into_iter().filter(|name| {
        let of = name.get(..PREFIX.len() + DIGITS).unwrap_or_default();
        is_scratch_name(of)
            && (size_beside(name, of).is_some() || *name == private_folder::name_of(of))
            && !others_mains.iter().any(|main| main == of)
            && look(name)
    }));
    notes.extend(left(&mut unknown, path));
    notes
}

/// Note on the files that stay.
fn left(names: &mut [String], path: &Path) -> Option<String> {
    names.sort_unstable();
    let (named, more) = names.split_at(names.len().min(NAMED));
    if named.is_empty() {
        return None;
    }
    let more = match more.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "left alone in {}: {}{more}: named like scratch files, but not known to be iolab's; remove by hand what you do not need",
        path.display(),
        named.join(", ")
    ))
}

/// Size in the name of a file that belongs to the scratch file `of`.
fn size_beside(name: &str, of: &str) -> Option<u64> {
    let rest = name.strip_prefix(of)?.strip_prefix('.')?;
    let (size, number) = rest.split_once('.')?;
    canonical(number)?;
    size_within(size)
}

/// Size in the name of a file in the folder of programs.
fn size_within(name: &str) -> Option<u64> {
    canonical(name).filter(|bytes| *bytes > 0)
}

/// A number in the form that this module writes.
fn canonical(digits: &str) -> Option<u64> {
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Whether this is the name of a main file.
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

/// Removes one file if it is a left-over, after the files among `others` that it lists.
fn remove_if_dead(dir: impl AsFd, name: &str, others: &[String]) -> Main {
    let Some(before) = look_at(&dir, name).filter(is_own_file) else {
        return Main::Other;
    };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(&dir, name, flags, Mode::empty()).map(File::from) else {
        return Main::Other;
    };
    // Without locks, use by a run cannot be excluded.
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Main::Other;
    }
    // All checks are repeated under the lock: a live run may have gone on since.
    let Some(stat) = rustix::fs::fstat(&file).ok() else {
        return Main::Other;
    };
    if !look_at(&dir, name).is_some_and(|now| same_inode(&now, &stat) && same_inode(&before, &now))
    {
        return Main::Other;
    }
    let length = u64::try_from(stat.st_size).unwrap_or_default();
    let Some(footer) = footer::read(&file, length).filter(|_| could_be_ours(&stat)) else {
        return Main::Unknown;
    };
    if footer.maker.is_some_and(Maker::lives_elsewhere) {
        return Main::Other;
    }
    let listed = footer.listed;
    let beside: u64 = others
        .iter()
        .filter_map(|other| remove_beside(&dir, other, size_beside(other, name)?, &listed))
        .sum();
    let within = private_folder::remove_left(&dir, name, &listed, |folder, name| {
        remove_beside(folder, name, size_within(name)?, &listed)
    });
    let Left::Gone(within) = within else {
        return Main::Kept;
    };
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) => Main::Removed(length + beside + within),
        Err(_) => Main::Unknown,
    }
}

/// Removes a file listed by a left-over; a kill may have come before it had its full size.
fn remove_beside(dir: impl AsFd, name: &str, bytes: u64, listed: &[ListedFile]) -> Option<u64> {
    let stat = look_at(&dir, name)?;
    let length = u64::try_from(stat.st_size).ok()?;
    let entry = ListedFile::of(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !could_be_ours(&stat) || !listed.contains(&entry) || length > bytes {
        return None;
    }
    rustix::fs::unlinkat(&dir, name, AtFlags::empty()).ok()?;
    Some(length)
}

/// Whether a file is a regular one of this user.
fn is_own_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && is_own(stat)
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Whether a file has the properties of iolab's own files.
pub(super) fn could_be_ours(stat: &Stat) -> bool {
    is_own_file(stat) && stat.st_mode & 0o7777 == MODE && stat.st_nlink == 1
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
    fn only_exact_names_belong_to_a_file() {
        let of = ".iolab-scratch-0123456789abcdef";
        for rest in [".4096.0", ".4096.17"] {
            assert_eq!(size_beside(&format!("{of}{rest}"), of), Some(4096));
        }
        for rest in [
            "", ".", ".4096", ".0.0", ".01.0", ".+1.0", ".-1.0", ".1x.0",
            ".99999999999999999999999.0", "0.1.0", ".1.", ".1.01", ".1.x", ".1.1.1",
        ] {
            assert_eq!(size_beside(&format!("{of}{rest}"), of), None, "{rest}");
        }
        assert_eq!(size_beside(".iolab-scratch-0123456789abcdee.1.0", of), None);
        for (name, size) in [("1", Some(1)), ("0", None), ("01", None), ("1.zst", None)] {
            assert_eq!(size_within(name), size, "{name}");
        }
    }
}
