//! Words for a failed system call: reason, name and remedy.

use std::path::Path;

use rustix::io::Errno;

use iolab_workload::{Error, Result};

struct Words {
    errno: Errno,
    name: &'static str,
    reason: &'static str,
    remedy: &'static str,
}

/// Table of failures with number, name, reason and remedy, in one or two lines each. rustfmt would use six.
macro_rules! failures {
    ($($errno:ident $name:literal: $reason:literal, $remedy:literal;)+) => {
        &[$(Words { errno: Errno::$errno, name: $name, reason: $reason, remedy: $remedy }),+]
    };
}

/// Failures with a remedy.
const KNOWN: &[Words] = failures! {
    ACCESS "EACCES": "permission denied",
        "check the permissions of it and of every directory above it (`namei -l PATH`), or run as a user with access";
    PERM "EPERM": "operation not permitted",
        "it may be immutable or append-only (`lsattr PATH`), or blocked by a security policy; choose another target";
    NOENT "ENOENT": "no such file or directory",
        "give an existing directory, file or block device; in a directory iolab makes its own scratch file";
    NOTDIR "ENOTDIR": "a part of the path is not a directory", "correct the path";
    LOOP "ELOOP": "too many symbolic links", "the link leads back to itself; give the real path";
    NAMETOOLONG "ENAMETOOLONG": "the name is too long", "give a shorter path, for example relative to its directory";
    ROFS "EROFS": "the file system is read-only", "choose a target on a writable file system";
    NOSPC "ENOSPC": "no space left", "free some space there, choose a smaller --size, or another directory";
    DQUOT "EDQUOT": "the disk quota is used up", "free some of your files there, choose a smaller --size, or another directory";
    FBIG "EFBIG": "the file would be larger than allowed", "choose a smaller --size, or raise `ulimit -f`";
    IO "EIO": "the storage reported an error", "look into `dmesg` and check the device before trusting it with data";
    BUSY "EBUSY": "it is in use", "stop what uses it (`lsblk` and `fuser -v PATH` show it), or choose another target";
    TXTBSY "ETXTBSY": "it is being executed or used as swap", "choose another target";
    NXIO "ENXIO": "there is no device at this path", "choose another target";
    NODEV "ENODEV": "there is no device at this path", "choose another target";
    NOMEDIUM "ENOMEDIUM": "there is no medium in the drive", "insert one, or choose another target";
    MFILE "EMFILE": "too many open files", "raise `ulimit -n` or use fewer threads or files";
    NFILE "ENFILE": "too many open files in the system", "raise fs.file-max or close other programs";
    STALE "ESTALE": "the file is gone from the server", "mount the file system again";
};

fn known(errno: Errno) -> Option<&'static Words> {
    KNOWN.iter().find(|words| words.errno == errno)
}

/// Reason and name of an error: `no space left (ENOSPC)`.
pub(super) fn reason(errno: Errno) -> String {
    match known(errno) {
        Some(words) => format!("{} ({})", words.reason, words.name),
        None => std::io::Error::from(errno).to_string(),
    }
}

/// Adds the remedy for `errno`, if there is one.
pub(super) fn remedied(error: Error, errno: Errno) -> Error {
    match known(errno) {
        Some(words) => error.hint(words.remedy),
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
