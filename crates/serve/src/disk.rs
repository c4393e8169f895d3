//! The served file: as long as the modelled disk, and with the behaviour of a block device.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileHandle, FopenFlags, ReplyData, ReplyEmpty, ReplyWrite};
use iolab_diskmodel::Request as Asked;

use crate::one_file::ServedFile;
use crate::timer::Timer;
use crate::wake_events::Wake;
use crate::written_content::Content;

/// The only file.
pub(crate) const FILE: &str = "disk";
/// Longest request that the kernel passes on in one piece.
const REQUEST_MAX: u32 = 1 << 20;

/// An answer to a request, with the reply object that takes it to the kernel.
#[derive(Debug)]
pub(crate) enum Answer {
    Read(ReplyData, Bytes),
    Write(ReplyWrite, u32),
    Done(ReplyEmpty),
}

/// Bytes that answer a read.
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

/// State that the file system shares with the thread that mounted it.
pub(crate) struct Shared {
    pub(crate) timer: Timer<Answer>,
    /// Written data; `None` when no data is kept.
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

/// The file.
pub(crate) struct Disk {
    shared: Arc<Shared>,
    bytes: u64,
    zeros: Arc<[u8]>,
    bell: UnixStream,
}

impl Disk {
    /// A disk of `bytes` bytes; events go to `bell`.
    pub(crate) fn new(shared: Arc<Shared>, bytes: u64, bell: UnixStream) -> Self {
        Self {
            shared,
            bytes,
            zeros: vec![0; REQUEST_MAX as usize].into(),
            bell,
        }
    }

    /// Number of bytes of the range that lie on the disk.
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

impl ServedFile for Disk {
    const NAME: &'static str = FILE;
    const DEPTH: u16 = 4096;
    const REQUEST_MAX: Option<u32> = Some(REQUEST_MAX);
    const MODES: (u16, u16) = (0o700, 0o600);

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn open(&self) -> (FileHandle, FopenFlags) {
        // Tools reach the disk without a page cache, and writes do not wait for each other's lock.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        (FileHandle(0), flags)
    }

    fn read(&self, asker: u32, _: FileHandle, offset: u64, size: u32, reply: ReplyData) {
        let stamp = self.shared.timer.now();
        let len = self.inside(offset, u64::from(size));
        if len == 0 {
            return reply.data(&[]);
        }
        let bytes = self.read_bytes(offset, len as usize);
        let answer = Answer::Read(reply, bytes);
        if asker == self.shared.prober.load(Ordering::Relaxed) {
            return answer.give();
        }
        let timer = &self.shared.timer;
        timer.arrive(stamp, Asked::read(offset, len), answer);
    }

    fn write(&self, _: FileHandle, offset: u64, data: &[u8], reply: ReplyWrite) {
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

    fn fsync(&self, reply: ReplyEmpty) {
        let timer = &self.shared.timer;
        timer.arrive(timer.now(), Asked::flush(), Answer::Done(reply));
    }

    /// A TRIM punches a hole. The file has all its blocks already, so that plain allocation has nothing to do.
    fn fallocate(&self, offset: u64, length: u64, mode: i32, reply: ReplyEmpty) {
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

    fn unmounted(&self) {
        Wake::Unmounted.ring(&self.bell);
    }
}
