//! The file system: one file as long as the modelled disk, which behaves as a block device does.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use iolab_model::Request as Asked;

use crate::content::Content;
use crate::timer::Timer;
use crate::wake::Wake;

/// The only file.
pub(crate) const FILE: &str = "disk";
const DISK: INodeNo = INodeNo(2);
/// Nothing about the file ever changes.
const FOREVER: Duration = Duration::from_secs(3600);
/// Longest request that the kernel passes on in one piece.
const REQUEST_MAX: u32 = 1 << 20;
/// Asynchronous requests that the kernel passes on at a time.
const DEPTH: u16 = 4096;

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    Read(ReplyData, Bytes),
    Write(ReplyWrite, u32),
    Done(ReplyEmpty),
}

/// Bytes that were read.
#[derive(Debug)]
pub(crate) enum Bytes {
    Zeros(Arc<[u8]>, usize),
    Written(Vec<u8>),
}

impl Answer {
    /// Gives the answer to the kernel.
    pub(crate) fn give(self) {
        match self {
            Answer::Read(reply, Bytes::Zeros(zeros, len)) => reply.data(&zeros[..len]),
            Answer::Read(reply, Bytes::Written(data)) => reply.data(&data),
            Answer::Write(reply, len) => reply.written(len),
            Answer::Done(reply) => reply.ok(),
        }
    }
}

/// What the file system shares with whoever mounted it.
pub(crate) struct Shared {
    pub(crate) timer: Timer<Answer>,
    /// What was written; `None` when nothing of it is kept.
    pub(crate) content: Option<Mutex<Content>>,
    /// The thread whose reads are answered at once, without the model: they measure the way through the kernel.
    pub(crate) prober: AtomicU32,
}

impl Shared {
    pub(crate) fn content(&self) -> Option<MutexGuard<'_, Content>> {
        let content = self.content.as_ref()?;
        Some(content.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The file system.
pub(crate) struct Disk {
    shared: Arc<Shared>,
    bytes: u64,
    zeros: Arc<[u8]>,
    bell: UnixStream,
    uid: u32,
    gid: u32,
}

impl Disk {
    /// A disk of so many bytes; events go to `bell`.
    pub(crate) fn new(shared: Arc<Shared>, bytes: u64, bell: UnixStream) -> Self {
        Self {
            shared,
            bytes,
            zeros: vec![0; REQUEST_MAX as usize].into(),
            bell,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.bytes),
            _ => return None,
        };
        Some(FileAttr {
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
            uid: self.uid,
            gid: self.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// How many of so many bytes at an offset lie on the disk.
    fn inside(&self, offset: u64, len: u64) -> u64 {
        len.min(self.bytes.saturating_sub(offset))
    }

    fn read_bytes(&self, offset: u64, len: usize) -> Bytes {
        let content = self.shared.content();
        match content.and_then(|content| content.read(offset, len)) {
            Some(data) => Bytes::Written(data),
            None if len <= self.zeros.len() => Bytes::Zeros(Arc::clone(&self.zeros), len),
            None => Bytes::Written(vec![0; len]),
        }
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel has no such thing or less of it, requests come one at a time or smaller, and the ledger shows it.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(REQUEST_MAX);
        let _ = config.set_max_background(DEPTH);
        let _ = config.set_congestion_threshold(DEPTH);
        Ok(())
    }

    fn destroy(&mut self) {
        Wake::Unmounted.ring(&self.bell);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK) {
            Some(attributes) if parent == INodeNo::ROOT && name == FILE => {
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

    /// Times and length may be set, to no effect: tools open their target with `O_TRUNC`, as they would a device.
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
            (DISK, FileType::RegularFile, FILE),
        ];
        for ((ino, kind, name), next) in entries.into_iter().zip(1..).skip(offset as usize) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(self.bytes.div_ceil(4096), 0, 0, 1, 0, 4096, 255, 4096);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if ino != DISK {
            return reply.error(Errno::ENOENT);
        }
        // Nothing may stand between a tool and the disk: no page cache, and no lock that has writes wait for each other.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let stamp = self.shared.timer.now();
        let len = self.inside(offset, u64::from(size));
        if len == 0 {
            return reply.data(&[]);
        }
        let bytes = self.read_bytes(offset, len as usize);
        let answer = Answer::Read(reply, bytes);
        if request.pid() == self.shared.prober.load(Ordering::Relaxed) {
            return answer.give();
        }
        let timer = &self.shared.timer;
        timer.arrive(stamp, Asked::read(offset, len), answer);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let stamp = self.shared.timer.now();
        let len = self.inside(offset, data.len() as u64);
        if len == 0 {
            return reply.error(Errno::ENOSPC);
        }
        if let Some(mut content) = self.shared.content() {
            let lost = content.lost();
            content.write(offset, &data[..len as usize]);
            if lost == 0 && content.lost() > 0 {
                Wake::Full.ring(&self.bell);
            }
        }
        let answer = Answer::Write(reply, len as u32);
        let timer = &self.shared.timer;
        timer.arrive(stamp, Asked::write(offset, len), answer);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let timer = &self.shared.timer;
        timer.arrive(timer.now(), Asked::flush(), Answer::Done(reply));
    }

    /// A hole is a TRIM. The file has all its blocks already, so that plain allocation has nothing to do.
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
        const KEEP_SIZE: i32 = 1;
        const PUNCH_HOLE: i32 = 2;
        let stamp = self.shared.timer.now();
        let len = self.inside(offset, length);
        match mode {
            _ if len == 0 => reply.error(Errno::ENOSPC),
            0 | KEEP_SIZE if len == length => reply.ok(),
            0 | KEEP_SIZE => reply.error(Errno::ENOSPC),
            mode if mode == KEEP_SIZE | PUNCH_HOLE => {
                if let Some(mut content) = self.shared.content() {
                    content.discard(offset, len);
                }
                let timer = &self.shared.timer;
                timer.arrive(stamp, Asked::trim(offset, len), Answer::Done(reply));
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
