//! What systems tell of files, and Linux does as a matter of course. iolab writes run files on Linux; elsewhere it reads them.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// How many names (hard links) a file has; 1 where the system does not tell.
pub(super) fn name_count(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(metadata);
    #[cfg(not(unix))]
    {
        let _ = metadata;
        1
    }
}

/// Device and number of a file, whatever its name; `None` where the system does not tell.
pub(super) fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// Opens a file for reading, where the path is its own: no link is followed, and a pipe is not waited for.
pub(super) fn open_itself(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        File::options()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
    }
    #[cfg(not(unix))]
    {
        if path.symlink_metadata()?.is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        File::open(path)
    }
}

/// Larger than run files and their logs become, bytes.
#[cfg(unix)]
const RUN_FILE_MAX: u64 = 4 << 30;

/// Whether this process may not make files as large as run files can become (`ulimit -f`); false where the system does not tell.
pub(super) fn limits_file_size() -> bool {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Fsize)
        .current
        .is_some_and(|bytes| bytes < RUN_FILE_MAX);
    #[cfg(not(unix))]
    false
}
