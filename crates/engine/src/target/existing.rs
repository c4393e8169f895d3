//! Opens what was there before, a file or a block device, and guards its data.

use std::fs::File;

use rustix::fs::{FileType, FlockOperation, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::error::{Error, Result};

use super::device::{Kernel, number_of};
use super::lookup::Found;
use super::size::check_process_limit;
use super::{Consent, Need, TargetKind, errno, signature};

/// An existing file or device, opened as `need` allows.
pub(super) struct Existing {
    pub(super) file: File,
    pub(super) kind: TargetKind,
    pub(super) size: u64,
    pub(super) note: Option<String>,
}

/// Opens an existing regular file or block device, read-only unless it is to be written.
///
/// # Errors
/// Of kind refused when data could be lost, of kind usage when it cannot serve as wanted.
pub(super) fn open(found: &Found, need: &Need) -> Result<Existing> {
    let number = number_of(&found.stat);
    let kind = match number {
        Some(_) => TargetKind::BlockDevice,
        None => TargetKind::File,
    };
    let file = match need.write {
        false => found
            .open(OFlags::RDONLY)
            .map_err(|errno| errno::on_path("open", &found.path, errno))?,
        true => open_for_writing(found, &need.consent, number)?,
    };
    let length = length(&file).map_err(|errno| errno::on_path("size", &found.path, errno))?;
    let (size, note) = need.size.of_existing(length, &found.path)?;
    if need.write {
        if number.is_none() {
            check_process_limit(size)?;
        }
        check_signatures(&file, length, found, &need.consent, number)?;
    }
    Ok(Existing {
        file,
        kind,
        size,
        note,
    })
}

fn length(file: &File) -> std::result::Result<u64, Errno> {
    let length = rustix::fs::seek(file, SeekFrom::End(0))?;
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    Ok(length)
}

fn refused(found: &Found, why: &str) -> Error {
    Error::refused(format!(
        "refusing to write to {}: {why}",
        found.path.display()
    ))
}

fn open_for_writing(found: &Found, consent: &Consent, number: Option<(u32, u32)>) -> Result<File> {
    if let Some(link) = &found.link {
        return Err(Error::refused(format!(
            "refusing to write through the symlink {}",
            link.display()
        ))
        .hint(format!(
            "if you mean it, name {} itself",
            found.path.display()
        )));
    }
    if *consent == Consent::No {
        return Err(refused(found, "what it holds would be destroyed").hint(
            "give a directory, where iolab makes a scratch file of its own; \
             or add --destroy-data if nothing on this target is needed any more",
        ));
    }
    let file = match number {
        Some(number) => open_device(found, number)?,
        None => open_file(found)?,
    };
    check_locks(&file, found)?;
    Ok(file)
}

fn open_device(found: &Found, number: (u32, u32)) -> Result<File> {
    let kernel = Kernel::read()?;
    if kernel.is_read_only(number) {
        return Err(
            Error::usage(format!("{} is set read-only", found.path.display()))
                .hint("choose another target, or a workload that only reads"),
        );
    }
    const HINT: &str = "see `lsblk`; stop what uses it first, or choose another target";
    if let Some(why) = kernel.device_use(number)? {
        return Err(refused(found, &why).hint(HINT));
    }
    // O_EXCL without O_CREAT claims a block device: mounts and other claims fail while it is open.
    match found.open(OFlags::RDWR | OFlags::EXCL) {
        Err(Errno::BUSY) => {
            Err(refused(found, "the kernel says that it is in use (O_EXCL: EBUSY)").hint(HINT))
        }
        opened => opened.map_err(|errno| errno::on_path("open for writing", &found.path, errno)),
    }
}

fn open_file(found: &Found) -> Result<File> {
    if found.stat.st_nlink > 1 {
        return Err(refused(
            found,
            &format!(
                "{} names (hard links) stand for this file, and all would lose their data",
                found.stat.st_nlink
            ),
        )
        .hint("make a copy and name that, or choose a directory"));
    }
    if let Some(why) = Kernel::read()?.file_use(&found.stat) {
        return Err(
            refused(found, &why).hint("see `losetup -a` and `swapon --show`; stop that use first")
        );
    }
    found
        .open(OFlags::RDWR)
        .map_err(|errno| errno::on_path("open for writing", &found.path, errno))
}

/// Refuses what another process has locked: a virtual machine's image, a database, another iolab.
/// The lock taken here stays for the life of the descriptor.
fn check_locks(file: &File, found: &Found) -> Result<()> {
    let busy = || {
        refused(found, "another process holds a lock on it")
            .hint("see `lslocks` and `fuser -v`; stop that process, or choose another target")
    };
    if rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(busy());
    }
    if FileType::from_raw_mode(found.stat.st_mode) == FileType::RegularFile
        && record_lock_of_others(file)
    {
        return Err(busy());
    }
    Ok(())
}

/// Whether anybody holds a POSIX or open-file-description lock, see fcntl_locking(2).
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

fn check_signatures(
    file: &File,
    length: u64,
    found: &Found,
    consent: &Consent,
    number: Option<(u32, u32)>,
) -> Result<()> {
    let unreadable = |(offset, errno): (u64, Errno)| {
        let why = format!(
            "cannot see what it holds: pread at offset {offset} failed: {}",
            errno::reason(errno)
        );
        errno::remedied(refused(found, &why), errno)
    };
    let mut names = signature::detect(file, 0, length).map_err(unreadable)?;
    let mut places: Vec<String> = names
        .iter()
        .map(|name| format!("it holds {name}"))
        .collect();
    if let Some(number) = number {
        for (partition, start, bytes) in Kernel::read()?.partitions(number)? {
            for name in signature::detect(file, start, bytes).map_err(unreadable)? {
                places.push(format!("its partition {partition} holds {name}"));
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    if names.iter().all(|name| consent.names(name)) {
        return Ok(());
    }
    Err(refused(found, &places.join(", ")).hint(format!(
        "if nothing of that is needed any more, say so: --destroy-data={}",
        names.join(",")
    )))
}

impl Consent {
    /// Whether the user named this signature; several may be named, separated by commas.
    fn names(&self, signature: &str) -> bool {
        match self {
            Consent::DestroySignature(named) => named
                .split(',')
                .any(|name| name.trim().eq_ignore_ascii_case(signature)),
            Consent::No | Consent::Destroy => false,
        }
    }
}
