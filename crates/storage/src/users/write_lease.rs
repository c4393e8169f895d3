//! Detection of other openers of a file by the kernel: a write lease (`F_SETLEASE`, see fcntl(2)) is granted
//! only to the single opener of a file. It covers processes in other namespaces, shared and private mappings,
//! and loop devices.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// `F_SETSIG` of linux/fcntl.h.
const F_SETSIG: libc::c_int = 10;

/// Other openers of a file, as shown by taking a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// The file is not open anywhere else.
    None,
    /// The file is open elsewhere, for reading or executing.
    Read,
    /// The file is open elsewhere, for writing too.
    Write,
    /// The file is on another machine, which granted no delegation, whether or not others use the file.
    Undelegated,
    /// The file system has no leases, or grants them only to the owner.
    Unknown(Errno),
}

/// Asks with a read-only descriptor: a read lease is refused if there are writers.
pub(super) fn others(file: &File) -> Others {
    // When another process opens the file during the lease, the kernel sends a signal. The default one would
    // end the process. This one is ignored unless a process waits for it, and the lease is given back at once
    // anyway.
    if let Err(errno) = set(file, F_SETSIG, libc::SIGURG) {
        return Others::Unknown(errno);
    }
    match taken(file, libc::F_WRLCK) {
        Ok(()) => Others::None,
        Err(Errno::AGAIN) if needs_delegation(file) => Others::Undelegated,
        Err(Errno::AGAIN) => match taken(file, libc::F_RDLCK) {
            Ok(()) => Others::Read,
            Err(Errno::AGAIN) => Others::Write,
            Err(errno) => Others::Unknown(errno),
        },
        Err(errno) => Others::Unknown(errno),
    }
}

/// Whether the client of a file system grants a lease only with a delegation (NFSv4) or an oplock (SMB) of the
/// server. Then a lease means that no other machine uses the file, and a refusal means nothing.
fn needs_delegation(file: &File) -> bool {
    /// Magic numbers of linux/magic.h.
    const NFS_AND_SMB: [u32; 3] = [0x0000_6969, 0xff53_4d42, 0xfe53_4d42];
    rustix::fs::fstatfs(file).is_ok_and(|stat| NFS_AND_SMB.contains(&(stat.f_type as u32)))
}

/// Takes a lease and gives it back.
fn taken(file: &File, lease: libc::c_int) -> Result<(), Errno> {
    set(file, libc::F_SETLEASE, lease)?;
    set(file, libc::F_SETLEASE, libc::F_UNLCK)
}

fn set(file: &File, command: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    // SAFETY: both commands take an integer and touch no memory of this process.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    match answer {
        0 => Ok(()),
        _ => Err(super::super::errno::of_std(&std::io::Error::last_os_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(path: &std::path::Path) -> File {
        File::open(path).unwrap()
    }

    #[test]
    fn a_lease_tells_readers_from_writers() {
        // In a test process another thread may be starting a program, which has a copy of all descriptors until
        // it runs. So the answer is awaited.
        let settles = |file: &File, wanted: Others| {
            for _ in 0..10_000 {
                let others = others(file);
                match others {
                    Others::Unknown(errno) => {
                        return needs::skip(needs::Need::Leases, errno);
                    }
                    _ if others == wanted => return,
                    _ => std::thread::yield_now(),
                }
            }
            panic!("{:?} and not {wanted:?}", others(file));
        };
        let place = tempfile::NamedTempFile::new().unwrap();
        let path = place.path().to_owned();
        let (_, path) = (place.as_file().set_len(4096), path);
        let ours = reader(&path);
        settles(&ours, Others::Write);
        let (writer, kept) = place.into_parts();
        drop(writer);
        settles(&ours, Others::None);
        let other = reader(&path);
        settles(&ours, Others::Read);
        drop(other);
        settles(&ours, Others::None);
        // A handle that only names the file does not keep it open.
        let named = crate::Opened::named(&path).unwrap();
        settles(&ours, Others::None);
        assert_eq!(named.bytes(), Some(4096));
        drop(kept);
    }
}
