//! A FUSE file system that holds one file: all answers but those about its bytes.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

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
