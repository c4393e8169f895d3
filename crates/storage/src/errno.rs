//! Words for a failed system call: reason and remedy.

use std::path::Path;

use rustix::io::Errno;

use iolab_workload::{Error, Result};

/// Failures with a remedy.
#[rustfmt::skip]
const REMEDIES: &[(Errno, &str)] = &[
    (Errno::ACCESS, "check the permissions of it and of every directory above it (`namei -l PATH`), or run as a user with access"),
    (Errno::PERM, "it may be immutable or append-only (`lsattr PATH`), or blocked by a security policy; choose another target"),
    (Errno::NOENT, "give an existing directory, file or block device; in a directory iolab makes its own scratch file"),
    (Errno::NOTDIR, "correct the path"),
    (Errno::LOOP, "the link leads back to itself; give the real path"),
    (Errno::NAMETOOLONG, "give a shorter path, for example relative to its directory"),
    (Errno::ROFS, "choose a target on a writable file system"),
    (Errno::NOSPC, "free some space there, choose a smaller --size, or another directory"),
    (Errno::DQUOT, "free some of your files there, choose a smaller --size, or another directory"),
    (Errno::FBIG, "choose a smaller --size, or raise `ulimit -f`"),
    (Errno::IO, "look into `dmesg` and check the device before trusting it with data"),
    (Errno::BUSY, "stop what uses it (`lsblk` and `fuser -v PATH` show it), or choose another target"),
    (Errno::TXTBSY, "choose another target"),
    (Errno::NXIO, "choose another target"),
    (Errno::NODEV, "choose another target"),
    (Errno::NOMEDIUM, "insert one, or choose another target"),
    (Errno::MFILE, "raise `ulimit -n` or use fewer threads or files"),
    (Errno::NFILE, "raise fs.file-max or close other programs"),
    (Errno::STALE, "mount the file system again"),
];

/// An error in words: `No space left on device (os error 28)`.
pub(super) fn reason(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

/// Adds the remedy for `errno`, if there is one.
pub(super) fn remedied(error: Error, errno: Errno) -> Error {
    match REMEDIES.iter().find(|(known, _)| *known == errno) {
        Some((_, remedy)) => error.hint(*remedy),
        None => error,
    }
}

/// Error `cannot VERB PATH: REASON`, of kind [`Failed`](iolab_workload::Kind::Failed) when the storage is at
/// fault, otherwise of kind [`Usage`](iolab_workload::Kind::Usage).
pub(super) fn on_path(verb: &str, path: &Path, errno: Errno) -> Error {
    let message = format!("cannot {verb} {}: {}", path.display(), reason(errno));
    let error = match errno {
        Errno::IO | Errno::STALE => Error::failed(message),
        _ => Error::usage(message),
    };
    remedied(error, errno)
}

/// Error `SYSCALL of N bytes at offset O of PATH failed: REASON`, of kind
/// [`Failed`](iolab_workload::Kind::Failed).
pub(super) fn on_transfer(
    syscall: &str,
    length: u64,
    offset: u64,
    path: &Path,
    errno: Errno,
) -> Error {
    let message = format!(
        "{syscall} of {length} bytes at offset {offset} of {} failed: {}",
        path.display(),
        reason(errno)
    );
    remedied(Error::failed(message), errno)
}

/// Error `fsync of PATH failed: REASON`, of kind [`Failed`](iolab_workload::Kind::Failed).
pub(super) fn on_sync(path: &Path, errno: Errno) -> Error {
    let message = format!("fsync of {} failed: {}", path.display(), reason(errno));
    remedied(Error::failed(message), errno)
}

/// Errno that an error of the standard library carries.
pub(super) fn of_std(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Content of a file of `/proc` or `/sys`; `None` if it does not exist.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): an unreadable file cannot rule out that the target is in
/// use.
pub(super) fn read_kernel_file(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::refused(format!(
            "cannot tell whether the target is in use: {}: {}",
            path.display(),
            reason(of_std(&error))
        ))
        .hint("run where /proc and /sys can be read, or choose a directory as the target")),
    }
}
