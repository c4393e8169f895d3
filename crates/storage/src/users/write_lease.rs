//! Who else has a file open, asked of the kernel: a write lease (`F_SETLEASE`, see fcntl(2)) is given only to the single
//! opener of a file. It knows of processes in other namespaces, of shared and private mappings, and of loop devices.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// `F_SETSIG` of linux/fcntl.h.
const F_SETSIG: libc::c_int = 10;

/// What taking a lease shows about other openers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// The file is not open anywhere else.
    None,
    /// It is open elsewhere, for reading or executing.
    Read,
    /// It is open elsewhere, for writing too.
    Write,
    /// The file is one of another machine, which gave no delegation of it, with or without others that use it.
    Undelegated,
    /// The file system has no leases, or leases are for its owner alone.
    Unknown(Errno),
}

/// Asks with a descriptor that was opened for reading alone: a lease for readers is refused to writers.
pub(super) fn others(file: &File) -> Others {
    // When another process opens the file while we have the lease, the kernel sends a signal. The usual one would end the process;
    // this one is ignored unless a process waits for it, and giving the lease back is what it asks for.
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

/// Whether the client of a file system gives a lease only where the server has given it a delegation (NFSv4) or an oplock (SMB):
/// then a lease says that no other machine uses the file, and its refusal says nothing.
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
        // In a process of tests another thread may be starting a program, which has a copy of our descriptors until it
        // runs: so the answer is awaited.
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
        // Who only names a file does not have it open.
        let named = crate::Opened::named(&path).unwrap();
        settles(&ours, Others::None);
        assert_eq!(named.bytes(), Some(4096));
        drop(kept);
    }
}
