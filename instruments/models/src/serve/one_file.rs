//! A FUSE file system that holds one file: all answers but those about its bytes.
//!
//! The folder that the disk is mounted on: empty before, and empty afterwards.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};

use iolab_host::program::Program;
use iolab_storage::file_systems;
use iolab_workload::{Error, Result};

/// The number of the file.
const FILE: INodeNo = INodeNo(2);

/// How long the kernel may keep the file's metadata: it never changes, and asking for it takes no part in the
/// timing.
const FOREVER: Duration = Duration::from_secs(3600);

/// Block size that files are said to have, bytes.
pub const BLOCK: u32 = 4096;

/// The only file, and where requests for its bytes go. It has its full length from the beginning.
pub trait ServedFile: Send + Sync + 'static {
    /// Name of the file.
    const NAME: &'static str;
    /// Asynchronous requests that the kernel passes on at a time.
    const DEPTH: u16;
    /// Longest request that the kernel passes on in one piece, bytes; `None` for the kernel's default.
    const REQUEST_MAX: Option<u32> = None;
    /// Who may use the folder and the file.
    const MODES: (u16, u16);

    /// Length of the file, bytes.
    fn bytes(&self) -> u64;

    /// The number of a new open file, and the flags that tell the kernel what it may do with it.
    fn open(&self) -> (FileHandle, FopenFlags);

    /// Answers a read.
    fn read(&self, asker: u32, file: FileHandle, offset: u64, size: u32, reply: ReplyData);

    /// Answers a write.
    fn write(&self, file: FileHandle, offset: u64, data: &[u8], reply: ReplyWrite);

    /// Answers a sync.
    fn fsync(&self, reply: ReplyEmpty);

    /// Answers the allocation of blocks, or the removal of some.
    fn fallocate(&self, _offset: u64, _length: u64, _mode: i32, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    /// Called when the file system is unmounted.
    fn unmounted(&self) {}
}

/// The file system.
#[derive(Debug)]
pub struct OneFile<T>(pub T);

/// The attributes that `stat` shows, of a file of this process's user.
pub fn attributes(ino: INodeNo, kind: FileType, perm: u16, size: u64) -> FileAttr {
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

impl<T: ServedFile> OneFile<T> {
    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (folder, file) = T::MODES;
        match ino {
            INodeNo::ROOT => Some(attributes(ino, FileType::Directory, folder, 0)),
            FILE => Some(attributes(ino, FileType::RegularFile, file, self.0.bytes())),
            _ => None,
        }
    }
}

impl<T: ServedFile> Filesystem for OneFile<T> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel without these features, or with lower limits, sends requests one at a time or smaller.
        // Submissions of io_uring then wait for answers.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        if let Some(most) = T::REQUEST_MAX {
            let _ = config.set_max_write(most);
        }
        let _ = config.set_max_background(T::DEPTH);
        let _ = config.set_congestion_threshold(T::DEPTH);
        Ok(())
    }

    fn destroy(&mut self) {
        self.0.unmounted();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attributes) if parent == INodeNo::ROOT && name == T::NAME => {
                reply.entry(&FOREVER, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Setting times and length has no effect: tools open their target with `O_TRUNC`, as they would a device.
    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.getattr(request, ino, handle, reply);
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, T::NAME),
        ];
        for ((ino, kind, name), next) in entries.into_iter().zip(1..).skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.0.bytes().div_ceil(u64::from(BLOCK));
        reply.statfs(blocks, 0, 0, 1, 0, BLOCK, 255, BLOCK);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if ino != FILE {
            return reply.error(Errno::ENOENT);
        }
        let (handle, flags) = self.0.open();
        reply.opened(handle, flags);
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.read(request.pid(), handle, offset, size, reply);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.write(handle, offset, data, reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.fsync(reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.0.fallocate(offset, length, mode, reply);
    }
}

/// Prefix of our sources in the table of mounts; the number of the process follows.
const SOURCE: &str = "iolab-serve-";

/// Threads that take requests from the kernel. One copies data while the other takes the next request.
const TAKERS: usize = 2;

const DEVICE: &str = "/dev/fuse";

/// A folder that a disk can be mounted on.
#[derive(Debug)]
pub(crate) struct MountFolder {
    path: PathBuf,
    /// Whether a disk whose process was killed was still mounted there.
    pub(crate) had_leftover: bool,
}

impl MountFolder {
    /// Checks a folder, and whether this process may mount. Removes a mount that a killed process of ours left
    /// there.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused) for a folder that is not empty or serves a disk
    /// already. Of kind [`Usage`](iolab_workload::Kind::Usage) for anything but a folder. Of kind failed
    /// without `/dev/fuse` or the right to mount.
    pub(crate) fn new(at: &Path) -> Result<Self> {
        let path = resolved(at)?;
        let mut had_leftover = false;
        let source = source_at(&path).unwrap_or_default();
        if let Some(server) = source.strip_prefix(SOURCE) {
            if !is_dead(&path, server) {
                return Err(
                    Error::refused(format!("{} serves a model already", path.display())).hint(
                        format!("end that server first, or: umount {}", path.display()),
                    ),
                );
            }
            remove(&path).map_err(|error| {
                Error::failed(format!(
                    "cannot unmount what a killed iolab serve left at {}: {error}",
                    path.display()
                ))
                .hint(format!("umount -l {}", path.display()))
            })?;
            had_leftover = true;
        }
        let mut entries = fs::read_dir(&path).map_err(|error| unusable(&path, &error))?;
        if entries.next().is_some() {
            return Err(Error::refused(format!("{} is not empty", path.display()))
                .hint("a mount would hide what it holds; name an empty directory"));
        }
        may_mount(&path)?;
        Ok(Self { path, had_leftover })
    }

    /// Mounts a file system there and serves it in the background.
    ///
    /// # Errors
    /// When the kernel or fusermount3 refuses.
    pub(crate) fn mount(self, files: impl Filesystem + 'static) -> Result<Mounted> {
        let source = format!("{SOURCE}{}", std::process::id());
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(source.clone())];
        config.n_threads = Some(TAKERS);
        let session = Session::new(files, &self.path, &config)
            .and_then(Session::spawn)
            .map_err(|error| {
                cannot_mount(&self.path, error.to_string().trim_end()).hint(format!(
                    "FUSE needs read and write access to {DEVICE}, and the folder has to belong to the user; as root \
                     it needs neither"
                ))
            })?;
        Ok(Mounted {
            path: self.path,
            source,
            session: Some(session),
        })
    }
}

/// A mounted file system; dropping it unmounts.
pub(crate) struct Mounted {
    /// The mount point.
    pub(crate) path: PathBuf,
    source: String,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Unmounts, also while files are open: programs that use them get errors.
    ///
    /// # Errors
    /// When it is still mounted afterwards.
    pub(crate) fn unmount(mut self) -> Result<()> {
        self.take_down().map_err(|error| {
            Error::failed(format!("cannot unmount {}: {error}", self.path.display()))
                .hint(format!("umount -l {}", self.path.display()))
        })
    }

    fn take_down(&mut self) -> io::Result<()> {
        // Dropping the session would unmount anything that is mounted there, and wait for open files.
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        std::mem::forget(session);
        // Another process may have unmounted ours and mounted something else.
        if source_at(&self.path).is_some_and(|source| source == self.source) {
            remove(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // This is the way out of a failure; the user sees that failure, not one of unmounting.
        let _ = self.take_down();
    }
}

fn may_mount(path: &Path) -> Result<()> {
    if !Path::new(DEVICE).exists() {
        return Err(cannot_mount(path, &format!("there is no {DEVICE}"))
            .hint("load the kernel's FUSE: modprobe fuse"));
    }
    if !rustix::process::geteuid().is_root() && helper().is_none() {
        let why = "only root mounts without fusermount3, which is not installed";
        return Err(cannot_mount(path, why).hint("apt-get install fuse3"));
    }
    Ok(())
}

fn cannot_mount(path: &Path, why: &str) -> Error {
    Error::failed(format!("cannot mount on {}: {why}", path.display()))
}

/// The absolute path of a folder, without a look into the mount on it, which may be dead.
fn resolved(at: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(at).map_err(|error| unusable(at, &error))?;
    let resolved = match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => fs::canonicalize(parent).map(|parent| parent.join(name)),
        _ => fs::canonicalize(&absolute),
    };
    let path = resolved.map_err(|error| unusable(at, &error))?;
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
        return fs::canonicalize(&path).map_err(|error| unusable(at, &error));
    }
    Ok(path)
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::usage(format!("cannot mount on {}: {error}", path.display()))
        .hint(format!("name an empty directory: mkdir {}", path.display()))
}

/// Source of the mount on a path; `None` without a mount.
fn source_at(path: &Path) -> Option<String> {
    let mut mounts = file_systems().into_iter();
    let last = mounts.rfind(|mount| mount.mount_point == path);
    last.map(|mount| mount.source)
}

/// Whether the process `server` that answered for a FUSE mount is gone. The kernel may still know the folder's
/// metadata, but refuses to list its content. To users other than the one who mounted it, root included, the
/// kernel says "permission denied" either way; `/proc` then tells.
fn is_dead(path: &Path, server: &str) -> bool {
    let error = fs::read_dir(path).err();
    match error.as_ref().and_then(rustix::io::Errno::from_io_error) {
        Some(rustix::io::Errno::NOTCONN) => true,
        Some(rustix::io::Errno::ACCESS) => !Path::new("/proc").join(server).exists(),
        _ => false,
    }
}

/// Unmounts at once, and lets the kernel free the mount when its last user is gone.
fn remove(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        Err(rustix::io::Errno::PERM) => {}
        done => return Ok(done?),
    }
    let helper = helper().ok_or(io::Error::from(rustix::io::Errno::PERM))?;
    let output = Command::new(helper)
        .args(["-u", "-z", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let words = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(words.trim().to_owned()))
        }
    }
}

/// The program that mounts and unmounts for ordinary users.
fn helper() -> Option<PathBuf> {
    let mut names = ["fusermount3", "fusermount"].into_iter();
    names.find_map(|name| Program::find(Path::new(name)).ok())
}
