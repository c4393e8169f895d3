//! Opening of existing files and block devices, with protection of their data.
//!
//! The system's own names for block devices: symlinks below `/dev` that only root can make (`/dev/mapper/*`,
//! `/dev/VG/LV`, `/dev/disk/by-id/*`). Kernel names may change with every boot; these do not. Names by content
//! (`/dev/disk/by-label/*`, `by-uuid`) do not count: a copy of the disk has them too.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FileType, FlockOperation, OFlags, SeekFrom};
use rustix::io::Errno;

use super::path_lookup::NamedObject;
use super::space_sources::Sources;
use super::sysfs::{Number, number_of};
use super::target_size::check_process_limit;
use super::users::{self, Users};
use super::{Consent, Need, Target, TargetKind, device_stack, errno, lasting_identity, mounts};
use iolab_workload::{Error, Result};

/// Opens an existing regular file or block device, read-only unless it is to be written.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when data could be lost, of kind
/// [`Usage`](iolab_workload::Kind::Usage) when it cannot serve as wanted.
pub(super) fn open(
    found: &NamedObject,
    sources: Option<&Sources>,
    need: &Need,
    mut notes: Vec<String>,
) -> Result<Target> {
    let number = number_of(&found.stat);
    let kind = match number {
        Some(_) => TargetKind::BlockDevice,
        None => TargetKind::File,
    };
    let (file, claims, users) = match need.write {
        false => {
            let opened = found.open(OFlags::RDONLY);
            let file = opened.map_err(|errno| errno::on_path("open", &found.path, errno))?;
            (file, Vec::new(), None)
        }
        true => {
            let mut users = check_users(found, need, number)?;
            let (file, claims) = open_for_writing(found, sources, need, number, &mut users)?;
            (file, claims, Some(users))
        }
    };
    let (size, more) = size_of(found, need, &file, users)?;
    notes.extend(more);
    Ok(Target {
        _claims: claims,
        writable: need.write,
        shown: number.map(lasting_identity::shown_parts),
        ..Target::of(found.path.clone(), kind, size, file, notes)
    })
}

/// Checks an existing file or device as [`open`] does, without opening it for writing.
///
/// # Errors
/// As [`open`], but for what only opening it shows.
pub(super) fn check(found: &NamedObject, need: &Need) -> Result<()> {
    let number = number_of(&found.stat);
    let writes = need.write.then(|| check_users(found, need, number));
    let users = writes.transpose()?;
    let opened = found.open(OFlags::RDONLY | OFlags::NONBLOCK);
    let file = opened.map_err(|errno| errno::on_path("open", &found.path, errno))?;
    size_of(found, need, &file, users).map(drop)
}

/// The usable bytes of an opened file or device, with notes; `users` are those of one that is to be written.
fn size_of(
    found: &NamedObject,
    need: &Need,
    file: &File,
    users: Option<Users>,
) -> Result<(u64, Vec<String>)> {
    let number = number_of(&found.stat);
    let length = length(file).map_err(|errno| errno::on_path("size", &found.path, errno))?;
    let (size, note) = need.size.of_existing(length, &found.path)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    if let Some(users) = users {
        if number.is_none() {
            check_process_limit(size)?;
        }
        let signatures = users.signatures(found, file, length, number)?;
        signatures.check(found, &need.consent)?;
        notes.extend(users.into_notes());
    }
    Ok((size, notes))
}

fn length(file: &File) -> std::result::Result<u64, Errno> {
    let length = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    Ok(length)
}

fn refused(found: &NamedObject, why: &str) -> Error {
    Error::refused(format!(
        "refusing to write to {}: {why}",
        found.path.display()
    ))
}

/// Other users of a file or device that is to be written, if none of them hinders that. A use is reported before the missing consent,
/// which could not help there.
fn check_users(found: &NamedObject, need: &Need, number: Option<Number>) -> Result<Users> {
    let is_systems = |link: &PathBuf| number.is_some_and(|number| leads_to(link, number));
    if let Some(link) = found.link.as_ref().filter(|link| !is_systems(link)) {
        return Err(Error::refused(format!(
            "refusing to write through the symlink {}",
            link.display()
        ))
        .hint(format!(
            "if you mean it, name {} itself",
            found.path.display()
        )));
    }
    let mut users = Users::read()?;
    match number {
        Some(number) => check_device(found, number, &mut users)?,
        None => check_file(found, &mut users)?,
    }
    match need.consent {
        Consent::Destroy | Consent::DestroySignature(_) => Ok(users),
        Consent::No => Err(refused(found, "its data would be destroyed").hint(
            "give a directory, where iolab makes its own scratch file; or add --destroy-data if the data on this target is no longer needed",
        )),
    }
}

/// The file or device, and the claims on other paths to it.
fn open_for_writing(
    found: &NamedObject,
    sources: Option<&Sources>,
    need: &Need,
    number: Option<Number>,
    users: &mut Users,
) -> Result<(File, Vec<File>)> {
    // Checked before the opening, at which an overlay copies a file of a lower layer.
    if let Some(sources) = sources {
        sources.check(need.bytes_of(found), &found.path)?;
    }
    // O_EXCL without O_CREAT claims a block device: mounts and other claims fail while it is open.
    let claim = number.map_or(OFlags::empty(), |_| OFlags::EXCL);
    let file = match found.open(OFlags::RDWR | claim) {
        Err(Errno::BUSY) if number.is_some() => Err(refused(
            found,
            "it is in use: the kernel holds a claim on it (O_EXCL: EBUSY)",
        )
        .hint("see `lsblk`; stop that use first, or choose another target")),
        opened => opened.map_err(|errno| errno::on_path("open for writing", &found.path, errno)),
    }?;
    let claims = match number {
        Some(number) => users.claim_other_paths(found, number)?,
        None => Vec::new(),
    };
    check_locks(&file, found)?;
    Ok((file, claims))
}

fn check_device(found: &NamedObject, number: Number, users: &mut Users) -> Result<()> {
    if users.is_read_only(number) {
        return Err(
            Error::usage(format!("{} is set read-only", found.path.display()))
                .hint("choose another target, or a workload that only reads"),
        );
    }
    device_stack::check_not_zoned(&found.path, number)?;
    users.check_device(found, number)
}

fn check_file(found: &NamedObject, users: &mut Users) -> Result<()> {
    if found.stat.st_nlink > 1 {
        return Err(refused(
            found,
            &format!(
                "this file has {} names (hard links), and all would lose their data",
                found.stat.st_nlink
            ),
        )
        .hint("make a copy and name that, or choose a directory"));
    }
    // The holder of a lock has the file open, too, but the lock says more. This lock is released with the
    // descriptor.
    if let Ok(file) = found.open(OFlags::RDONLY | OFlags::NONBLOCK) {
        check_locks(&file, found)?;
    }
    users.check_file(found)
}

/// Refuses a file locked by another process: a virtual machine's image, a database, another iolab. The lock
/// taken here stays for the life of the descriptor.
fn check_locks(file: &File, found: &NamedObject) -> Result<()> {
    let is_file = FileType::from_raw_mode(found.stat.st_mode) == FileType::RegularFile;
    let is_locked = || {
        let flock = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
        flock == Err(Errno::WOULDBLOCK) || is_file && record_lock_of_others(file)
    };
    // udev locks a device while it examines a change there.
    let deadline = Instant::now() + users::TIMEOUT;
    while is_locked() {
        if Instant::now() >= deadline {
            return Err(refused(found, "another process holds a lock on it").hint(
                "see `lslocks` and `fuser -v`; stop that process, or choose another target",
            ));
        }
        std::thread::sleep(users::PAUSE);
    }
    Ok(())
}

/// Whether another process holds a POSIX or open-file-description lock; see fcntl_locking(2).
fn record_lock_of_others(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: F_OFD_GETLK reads and writes one `flock` structure, which lives on this stack.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    // A file system without record locks has none to respect.
    answer == 0 && i32::from(lock.l_type) != libc::F_UNLCK
}

impl Consent {
    /// Whether the user named this signature; several names are separated by commas.
    pub(super) fn names(&self, signature: &str) -> bool {
        match self {
            Consent::DestroySignature(named) => named
                .split(',')
                .any(|name| name.trim().eq_ignore_ascii_case(signature)),
            Consent::No | Consent::Destroy => false,
        }
    }
}

/// Most links that are followed; the kernel has the same limit.
const LINKS_MAX: usize = 40;

/// Write permission of the group and of all others.
const WRITABLE: u32 = 0o022;

/// Whether a symlink below `/dev` leads to this device by links and folders that only root can change.
fn leads_to(link: &Path, device: Number) -> bool {
    let root = Path::new("/dev");
    // In a user namespace, the owner may represent any user without a number there.
    let is_of_root = root.metadata().is_ok_and(|stat| stat.uid() == 0);
    is_of_root
        && leads_within(root, link).is_some_and(|end| mounts::block_device_at(&end) == Some(device))
}

/// Whether a folder below `root` names devices by something other than their identity: all of `disk` but
/// `by-id`.
fn names_content(root: &Path, folder: &Path) -> bool {
    let disk = root.join("disk");
    folder.starts_with(&disk) && !folder.starts_with(disk.join("by-id"))
}

/// End of a symlink below `root`; `None` where a step on the way leaves `root` or belongs to another user.
fn leads_within(root: &Path, link: &Path) -> Option<PathBuf> {
    let owner = root.metadata().ok()?.uid();
    let mut at = link.to_owned();
    for _ in 0..LINKS_MAX {
        let name = at.file_name()?.to_owned();
        let folder = std::fs::canonicalize(at.parent()?).ok()?;
        (is_guarded(root, &folder, owner) && !names_content(root, &folder)).then_some(())?;
        let path = folder.join(name);
        let stat = path.symlink_metadata().ok()?;
        if !stat.is_symlink() {
            return Some(path);
        }
        (stat.uid() == owner).then_some(())?;
        at = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// Whether a folder is on the file system of `root`, with one owner from there to `root` and no write
/// permission for others.
fn is_guarded(root: &Path, folder: &Path, owner: u32) -> bool {
    let Ok(within) = root.metadata() else {
        return false;
    };
    folder.starts_with(root)
        && folder
            .ancestors()
            .take_while(|above| above.starts_with(root))
            .all(|above| {
                above.metadata().is_ok_and(|stat| {
                    stat.dev() == within.dev() && stat.uid() == owner && stat.mode() & WRITABLE == 0
                })
            })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_lead_to_devices_by_guarded_steps_only() {
        let place = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(place.path()).expect("its path");
        for folder in [
            "mapper", "vg", "open", "disk", "disk/by-id", "disk/by-label",
        ] {
            let folder = root.join(folder);
            fs::create_dir(&folder).expect("created");
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("set");
        }
        fs::write(root.join("dm-0"), "").expect("written");
        symlink("../dm-0", root.join("mapper/vg-lv")).expect("linked");
        symlink("../mapper/vg-lv", root.join("vg/lv")).expect("linked");
        symlink(root.join("vg/lv"), root.join("open/lv")).expect("linked");
        let end = Some(root.join("dm-0"));
        for link in ["mapper/vg-lv", "vg/lv", "open/lv"] {
            assert_eq!(leads_within(&root, &root.join(link)), end, "{link}");
        }
        for (folder, end) in [("by-id", end.as_ref()), ("by-label", None)] {
            let link = root.join("disk").join(folder).join("scratch");
            symlink("../../dm-0", &link).expect("linked");
            assert_eq!(leads_within(&root, &link).as_ref(), end, "{folder}");
        }
        let open = |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(root.join("open"), mode).expect("set");
        };
        // Another user may replace the link.
        for mode in [0o777, 0o1777, 0o775] {
            open(mode);
            assert_eq!(leads_within(&root, &root.join("open/lv")), None);
        }
        // A step on the way may lead anywhere.
        symlink(root.join("open/lv"), root.join("vg/far")).expect("linked");
        assert_eq!(leads_within(&root, &root.join("vg/far")), None);
        open(0o755);
        assert_eq!(leads_within(&root, &root.join("vg/far")), end);
        symlink("/etc/passwd", root.join("vg/out")).expect("linked");
        symlink("round", root.join("vg/round")).expect("linked");
        for link in ["vg/out", "vg/round", "vg/none"] {
            assert_eq!(leads_within(&root, &root.join(link)), None, "{link}");
        }
        let outside = tempfile::tempdir().expect("a folder");
        let link = outside.path().join("lv");
        symlink(root.join("vg/lv"), &link).expect("linked");
        assert_eq!(leads_within(&root, &link), None);
    }
}
