//! The served file: as long as the modelled disk, and with the behaviour of a block device.
//!
//! Events that wake the serving process.
//!
//! Written data, in memory.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileHandle, FopenFlags, ReplyData, ReplyEmpty, ReplyWrite};

use crate::one_file::ServedFile;
use crate::playback::Timer;
use iolab_diskmodel::Request as Asked;

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

/// Reason to wake the serving process: one byte through a socket, so that the process can wait for it and for
/// signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Data was written for which there was no memory, for the first time.
    Full = b'f' as isize,
    /// The disk was unmounted, or can no longer serve.
    Unmounted = b'u' as isize,
}

impl Wake {
    /// The event that a byte stands for; `None` for a byte that is not one of ours.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let all = [Wake::Full, Wake::Unmounted];
        all.into_iter().find(|wake| *wake as u8 == byte)
    }

    pub(crate) fn ring(self, mut bell: &UnixStream) {
        // A closed receiver means that the process is already ending.
        let _ = bell.write_all(&[self as u8]);
    }
}

/// Bytes of a page, the unit that memory is taken in.
pub const PAGE: usize = 4096;

/// Sparse bytes with a bound on their memory: bytes that were never written, or found no room, read as zeros.
/// Offsets are below 2^63, as in files.
#[derive(Debug)]
pub struct Content {
    pages: HashMap<u64, Box<[u8; PAGE]>>,
    /// Most pages that are kept.
    room: usize,
    lost: u64,
}

impl Content {
    /// Empty content that may take `memory` bytes.
    pub fn new(memory: u64) -> Self {
        Self {
            pages: HashMap::new(),
            room: usize::try_from(memory / PAGE as u64).unwrap_or(usize::MAX),
            lost: 0,
        }
    }

    /// Keeps data; a page that finds no room is left out.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut rest = data;
        for (page, from, len) in pieces(offset, data.len() as u64) {
            let (piece, after) = rest.split_at(len);
            rest = after;
            if self.pages.len() >= self.room && !self.pages.contains_key(&page) {
                self.lost += len as u64;
                continue;
            }
            let kept = self.pages.entry(page);
            kept.or_insert_with(|| Box::new([0; PAGE]))[from..from + len].copy_from_slice(piece);
        }
    }

    /// The bytes of a range; `None` when all of them are zeros that were never written.
    pub fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut pieces = pieces(offset, len as u64);
        if !pieces.any(|(page, ..)| self.pages.contains_key(&page)) {
            return None;
        }
        let mut data = vec![0; len];
        let mut rest = data.as_mut_slice();
        for (page, from, len) in self::pieces(offset, len as u64) {
            let (piece, after) = rest.split_at_mut(len);
            rest = after;
            if let Some(kept) = self.pages.get(&page) {
                piece.copy_from_slice(&kept[from..from + len]);
            }
        }
        Some(data)
    }

    /// Forgets the bytes of a range: they read as zeros.
    pub fn discard(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let whole = offset.div_ceil(PAGE as u64)..end / PAGE as u64;
        // A range may be far longer than the data that is kept.
        if whole.end.saturating_sub(whole.start) > self.pages.len() as u64 {
            self.pages.retain(|page, _| !whole.contains(page));
        } else {
            for page in whole {
                self.pages.remove(&page);
            }
        }
        let first = offset / PAGE as u64;
        let last = end / PAGE as u64;
        for page in [first, last] {
            let start = page * PAGE as u64;
            let from = offset.clamp(start, start + PAGE as u64) - start;
            let to = end.clamp(start, start + PAGE as u64) - start;
            if let Some(kept) = self.pages.get_mut(&page) {
                kept[from as usize..to as usize].fill(0);
            }
        }
    }

    /// Bytes of writes that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The pages of a range: each with the first of its bytes and their number.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, from) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let len = (end - at).min((PAGE - from) as u64) as usize;
            at += len as u64;
            (page, from, len)
        })
    })
}
