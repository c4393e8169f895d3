//! Facts about files that Linux always reports, and the files that SQLite keeps next to a database.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use iolab_workload::{Error, Result};

/// Number of names (hard links) of a file; 1 if the system does not report it.
fn name_count(metadata: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(metadata);
    #[cfg(not(unix))]
    {
        let _ = metadata;
        1
    }
}

/// Device and number of a file, whatever its name; `None` if the system does not report it.
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

/// Opens a file for reading, if the path is its own: no link is followed, and a pipe is not waited for.
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

/// An open folder, in which files are created, found and removed by their names, whatever has the name of the folder by then.
#[derive(Debug)]
pub(super) struct OpenFolder {
    #[cfg(unix)]
    folder: File,
    #[cfg(not(unix))]
    folder: PathBuf,
}

#[cfg(unix)]
impl OpenFolder {
    /// Opens it; the error is `NotFound` if another process is about to remove it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{CWD, Mode, OFlags, openat};
        let follows = match path.is_symlink() {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | follows;
        let open = |flags| openat(CWD, path, flags, Mode::empty()).map(File::from);
        let folder = open(flags | OFlags::RDONLY);
        // For a folder that can be written and not read.
        #[cfg(target_os = "linux")]
        let folder = folder.or_else(|_| open(flags | OFlags::PATH));
        let folder = folder?;
        let is_being_removed = || {
            matches!(
                folder.try_lock_shared(),
                Err(std::fs::TryLockError::WouldBlock)
            )
        };
        let is_it = identity(&folder.metadata()?) == identity(&path.metadata()?);
        match is_it && !is_being_removed() {
            true => Ok(Self { folder }),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Whether no other process has it open to use it; then none opens it any more.
    pub(super) fn is_ours_alone(&self) -> bool {
        !matches!(
            self.folder.try_lock(),
            Err(std::fs::TryLockError::WouldBlock)
        )
    }

    pub(super) fn create_new(&self, name: &OsStr) -> io::Result<File> {
        use rustix::fs::OFlags;
        self.make(name, OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW)
    }

    /// A file without a name (`O_TMPFILE`).
    pub(super) fn unnamed(&self) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        return self.make(OsStr::new("."), rustix::fs::OFlags::TMPFILE);
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }

    fn make(&self, name: &OsStr, flags: rustix::fs::OFlags) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(openat(&self.folder, name, flags, mode)?.into())
    }

    /// Gives an unnamed file a name that is free.
    pub(super) fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{AtFlags, CWD, linkat};
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(
            CWD,
            nameless,
            &self.folder,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }

    pub(super) fn has(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&self.folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file, if there is one.
    pub(super) fn remove(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.folder, name, rustix::fs::AtFlags::empty());
    }
}

/// Other systems write no run files in place of another user's: the path suffices.
#[cfg(not(unix))]
impl OpenFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        path.metadata()?;
        Ok(Self {
            folder: path.to_owned(),
        })
    }

    pub(super) fn is_ours_alone(&self) -> bool {
        true
    }

    pub(super) fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        options.open(self.folder.join(name))
    }

    pub(super) fn unnamed(&self) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn link(&self, _: &File, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn has(&self, name: &OsStr) -> bool {
        self.folder.join(name).symlink_metadata().is_ok()
    }

    pub(super) fn remove(&self, name: &OsStr) {
        let _ = std::fs::remove_file(self.folder.join(name));
    }
}

/// The folder that a path is in; the working directory for a bare name.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether a path is a link of another user in a folder in which every user makes names (sticky, as `/tmp`). Linux itself follows none if
/// `fs.protected_symlinks` is set.
pub(super) fn is_foreign_link(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        const OF_ALL: u32 = 0o1002;
        let parent = folder_of(path).metadata();
        let (Ok(link), Ok(parent)) = (path.symlink_metadata(), parent) else {
            return false;
        };
        let own = rustix::process::geteuid().as_raw();
        let is_trusted = [own, parent.uid()].contains(&link.uid());
        link.is_symlink() && parent.mode() & OF_ALL == OF_ALL && !is_trusted
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// The path of an open file without links, for SQLite; `None` if the system does not report it, or if it leads elsewhere.
pub(super) fn path_without_links(file: &File) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let is_it = identity(&path.metadata().ok()?) == identity(&file.metadata().ok()?);
        is_it.then_some(path)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

/// Larger than run files and their logs become, bytes.
#[cfg(unix)]
const RUN_FILE_MAX: u64 = 4 << 30;

/// Whether this process may not make files as large as run files can become (`ulimit -f`); false if the system does not
/// report it.
pub(super) fn limits_file_size() -> bool {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Fsize)
        .current
        .is_some_and(|bytes| bytes < RUN_FILE_MAX);
    #[cfg(not(unix))]
    false
}

/// Suffixes of files that SQLite keeps next to a database: its log, the journal and the index of the log.
pub(crate) const SIDE_FILES: [&str; 3] = ["-wal", "-journal", "-shm"];

/// Refuses files next to a run file that SQLite did not write: it opens, changes and removes them by name only.
///
/// # Errors
///
/// Of kind [`Refused`](iolab_workload::Kind::Refused), with the name of the file.
pub(crate) fn check_side_files(path: &Path) -> Result<()> {
    for ending in SIDE_FILES {
        let name = beside(path, ending);
        let Ok(there) = name.symlink_metadata() else {
            continue;
        };
        if !there.is_file() || name_count(&there) > 1 || !is_sqlites(&name, ending) {
            return Err(Error::refused(format!(
                "{} does not belong to {}, and would be taken for a part of it",
                name.display(),
                path.display()
            ))
            .hint("move one of the two to another name"));
        }
    }
    Ok(())
}

/// Whether a file next to a database begins like SQLite's, or with zeros, which a power failure leaves.
fn is_sqlites(name: &Path, ending: &str) -> bool {
    // https://sqlite.org/fileformat2.html, sections 3 and 4; https://sqlite.org/walformat.html, section 2.
    const WAL: [u8; 3] = [0x37, 0x7f, 0x06];
    const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SHARED: u32 = 3_007_000;
    let mut first = Vec::new();
    let read = File::open(name).and_then(|file| file.take(8).read_to_end(&mut first));
    let begins = match ending {
        "-wal" => first.starts_with(&WAL),
        "-journal" => first.starts_with(&JOURNAL),
        _ => first.starts_with(&SHARED.to_ne_bytes()),
    };
    // An unreadable file is not writable either; SQLite reports it.
    read.is_err() || begins || first.iter().all(|byte| *byte == 0)
}

/// The path of a file that SQLite keeps next to a run file.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(crate) fn has_wal(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}
