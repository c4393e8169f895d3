//! Files of Linux that have no name until they are complete (`O_TMPFILE`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, OFlags, linkat};

use super::NewFile;

/// Creates the file without a name, and gives it one when its content is complete.
pub(super) fn linked(place: NewFile<'_>, content: &[u8]) -> io::Result<(PathBuf, File)> {
    let file = unnamed(place.folder(), content)?;
    let (path, ()) = place.first_free(|path| link(&file, path))?;
    // Nothing may fail after this, since the file has its name.
    Ok((path, file))
}

/// A file with this content and without a name, which disappears unless it gets one.
fn unnamed(folder: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::TMPFILE.bits() as i32)
        .open(folder)?;
    file.write_all(content)?;
    file.sync_all()?;
    // Without locks in the file system, the run file stays unlocked, like its writer's.
    let _ = file.try_lock();
    Ok(file)
}

/// Gives an unnamed file a name that is free.
pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}
