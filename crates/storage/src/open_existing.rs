//! Opening of existing files and block devices, with protection of their data.

use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::{FileType, FlockOperation, OFlags, SeekFrom};
use rustix::io::Errno;

use iolab_workload::{Error, Result};

use super::device::{Number, number_of};
use super::path_lookup::NamedObject;
use super::space_sources::Sources;
use super::target_size::check_process_limit;
use super::users::{self, Users};
use super::{Consent, Need, TargetKind, device_links, device_state, errno};

/// An existing file or device, opened as `need` allows.
pub(super) struct Existing {
    pub(super) file: File,
    pub(super) kind: TargetKind,
    pub(super) size: u64,
    pub(super) notes: Vec<String>,
    /// Other paths to a writable device, claimed.
    pub(super) claims: Vec<File>,
}

/// Opens an existing regular file or block device, read-only unless it is to be written.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused) when data could be lost, of kind
/// [`Usage`](iolab_workload::Kind::Usage) when it cannot serve as wanted.
pub(super) fn open(
    found: &NamedObject,
    sources: Option<&Sources>,
    need: &Need,
) -> Result<Existing> {
    let number = number_of(&found.stat);
    let kind = match number {
        Some(_) => TargetKind::BlockDevice,
        None => TargetKind::File,
    };
    let (opened, users) = match need.write {
        false => {
            let opened = found.open(OFlags::RDONLY);
            let file = opened.map_err(|errno| errno::on_path("open", &found.path, errno))?;
            (Opened::alone(file), None)
        }
        true => {
            let mut users = check_users(found, need, number)?;
            let opened = open_for_writing(found, sources, need, number, &mut users)?;
            (opened, Some(users))
        }
    };
    let Opened { file, claims } = opened;
    let length = length(&file).map_err(|errno| errno::on_path("size", &found.path, errno))?;
    let (size, note) = need.size.of_existing(length, &found.path)?;
    let mut notes = Vec::from_iter(note);
    if let Some(users) = users {
        if number.is_none() {
            check_process_limit(size)?;
        }
        let signatures = users.signatures(found, &file, length, number)?;
        signatures.check(found, &need.consent)?;
        notes.extend(users.into_notes());
    }
    Ok(Existing {
        file,
        kind,
        size,
        notes,
        claims,
    })
}

/// Checks an existing file or device as [`open`] does before it writes, without opening it for writing.
///
/// # Errors
/// As [`open`], but for what only opening it shows.
pub(super) fn check(found: &NamedObject, need: &Need) -> Result<()> {
    let number = number_of(&found.stat);
    let users = check_users(found, need, number)?;
    let opened = found.open(OFlags::RDONLY | OFlags::NONBLOCK);
    let file = opened.map_err(|errno| errno::on_path("open", &found.path, errno))?;
    let length = length(&file).map_err(|errno| errno::on_path("size", &found.path, errno))?;
    let signatures = users.signatures(found, &file, length, number)?;
    signatures.check(found, &need.consent)
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

/// A file or device, and the claims on other paths to it.
struct Opened {
    file: File,
    claims: Vec<File>,
}

impl Opened {
    fn alone(file: File) -> Self {
        Self {
            file,
            claims: Vec::new(),
        }
    }
}

/// Other users of a file or device that is to be written, if none of them hinders that. A use is reported before the missing consent,
/// which could not help there.
fn check_users(found: &NamedObject, need: &Need, number: Option<Number>) -> Result<Users> {
    let is_systems =
        |link: &PathBuf| number.is_some_and(|number| device_links::leads_to(link, number));
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

fn open_for_writing(
    found: &NamedObject,
    sources: Option<&Sources>,
    need: &Need,
    number: Option<Number>,
    users: &mut Users,
) -> Result<Opened> {
    // Checked before the opening, at which an overlay copies a file of a lower layer.
    if let Some(sources) = sources {
        sources.check(need.bytes_of(found), &found.path)?;
    }
    let opened = match number {
        Some(number) => open_device(found, number, users)?,
        None => Opened::alone(
            found
                .open(OFlags::RDWR)
                .map_err(|errno| errno::on_path("open for writing", &found.path, errno))?,
        ),
    };
    check_locks(&opened.file, found)?;
    Ok(opened)
}

fn check_device(found: &NamedObject, number: Number, users: &mut Users) -> Result<()> {
    if users.is_read_only(number) {
        return Err(
            Error::usage(format!("{} is set read-only", found.path.display()))
                .hint("choose another target, or a workload that only reads"),
        );
    }
    device_state::check_not_zoned(&found.path, number)?;
    users.check_device(found, number)
}

fn open_device(found: &NamedObject, number: Number, users: &mut Users) -> Result<Opened> {
    // O_EXCL without O_CREAT claims a block device: mounts and other claims fail while it is open.
    let file = match found.open(OFlags::RDWR | OFlags::EXCL) {
        Err(Errno::BUSY) => Err(refused(
            found,
            "it is in use: the kernel holds a claim on it (O_EXCL: EBUSY)",
        )
        .hint("see `lsblk`; stop that use first, or choose another target")),
        opened => opened.map_err(|errno| errno::on_path("open for writing", &found.path, errno)),
    }?;
    let claims = users.claim_other_paths(found, number)?;
    Ok(Opened { file, claims })
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
