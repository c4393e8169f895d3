//! One folder of files shown by several mounts, as by clients of a file server: each has its own page cache,
//! which other clients' writes do not reach.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{
    BackgroundSession, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session,
    TimeOrNow, WriteFlags,
};
use iolab_models::serve::one_file::{self, BLOCK};
use needs::Need;

use super::{HANDS, UNMOUNT};
use crate::cleanup::Cleanup;
use crate::system::{Made, lacks};

/// Time for which the kernel may rely on an answer: another client may change the file at once.
const NOT_KEPT: Duration = Duration::ZERO;

#[derive(Debug)]
struct Content {
    number: u64,
    /// `None` for a folder.
    bytes: Option<Vec<u8>>,
}

/// Files and folders by the number of their folder and their name, and the last number.
type Files = (u64, BTreeMap<(u64, String), Content>);

/// Files and folders by name.
#[derive(Debug, Clone, Default)]
pub struct Store(Arc<Mutex<Files>>);

impl Store {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object; its attributes.
    fn add(&self, folder: INodeNo, name: &str, bytes: Option<Vec<u8>>) -> FileAttr {
        let mut files = self.files();
        files.0 += 1;
        let number = INodeNo::ROOT.0 + files.0;
        let own = Content { number, bytes };
        let attributes = own.attributes();
        files.1.insert((folder.0, name.to_owned()), own);
        attributes
    }

    /// Removes a name.
    fn remove(&self, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_string_lossy().into_owned();
        match self.files().1.remove(&(folder.0, name)) {
            Some(_) => reply.ok(),
            None => reply.error(Errno::ENOENT),
        }
    }
}

impl Content {
    fn attributes(&self) -> FileAttr {
        attributes(self.number, self.bytes.as_ref().map(Vec::len))
    }
}

/// A request that the server can leave unanswered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Look-up of a name or its attributes.
    Look,
    /// Query for free space.
    Room,
    /// Creation of a file.
    Create,
    /// Allocation of blocks.
    Allocate,
    /// Write to a file.
    Write,
    /// Sync of a file.
    Sync,
    /// Removal of a file.
    Unlink,
}

/// Durations of writes.
#[derive(Debug, Clone, Copy, Default)]
struct WriteTimes {
    /// Duration of every write.
    any: Duration,
    /// Additional duration of a first write to space.
    first: Duration,
}

impl WriteTimes {
    fn of(self, is_first: bool) -> Duration {
        match is_first {
            true => self.any + self.first,
            false => self.any,
        }
    }
}

/// Call that is left unanswered, and with it all later ones.
#[derive(Debug, Default)]
struct Silence {
    at: Mutex<Option<Call>>,
    changed: Condvar,
}

impl Silence {
    fn set(&self, at: Option<Call>) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = at;
        self.changed.notify_all();
    }

    /// Waits as long as this call is left unanswered.
    fn keep(&self, call: Call) {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(at, |at| *at == Some(call)));
    }
}

/// A mount that shows a store; dropping it unmounts.
#[derive(Debug)]
pub struct View {
    at: PathBuf,
    fetched: Arc<AtomicU64>,
    silence: Arc<Silence>,
    session: Option<BackgroundSession>,
}

impl View {
    /// Mounts it on an empty folder.
    ///
    /// # Errors
    /// Without `/dev/fuse` or the right to mount.
    pub fn new(keeper: &Cleanup, at: &Path, store: &Store) -> Made<Self> {
        Self::mounted(keeper, at, store, WriteTimes::default(), 1)
    }

    /// As [`Self::new`], with this duration for each write, several at once.
    ///
    /// # Errors
    /// Without `/dev/fuse` or the right to mount.
    pub fn with_slow_writes(
        keeper: &Cleanup,
        at: &Path,
        store: &Store,
        write_time: Duration,
    ) -> Made<Self> {
        let times = WriteTimes {
            any: write_time,
            ..WriteTimes::default()
        };
        Self::mounted(keeper, at, store, times, HANDS)
    }

    /// As [`Self::new`], with this duration only for first writes to space.
    ///
    /// # Errors
    /// Without `/dev/fuse` or the right to mount.
    pub fn with_slow_allocation(
        keeper: &Cleanup,
        at: &Path,
        store: &Store,
        allocation_time: Duration,
    ) -> Made<Self> {
        let times = WriteTimes {
            first: allocation_time,
            ..WriteTimes::default()
        };
        Self::mounted(keeper, at, store, times, HANDS)
    }

    fn mounted(
        keeper: &Cleanup,
        at: &Path,
        store: &Store,
        write_times: WriteTimes,
        hands: usize,
    ) -> Made<Self> {
        let fetched = Arc::new(AtomicU64::new(0));
        let silence = Arc::new(Silence::default());
        let client = Client {
            store: store.clone(),
            fetched: Arc::clone(&fetched),
            silence: Arc::clone(&silence),
            write_times,
        };
        let mut config = fuser::Config::default();
        config.n_threads = Some(hands);
        config.mount_options = vec![MountOption::FSName("iolab-truth".to_owned())];
        let session = Session::new(client, at, &config)
            .and_then(Session::spawn)
            .map_err(lacks(Need::Fuse, "cannot mount FUSE"))?;
        keeper.finally(&["sh", "-c", UNMOUNT, &at.display().to_string()]);
        Ok(Self {
            at: at.to_owned(),
            fetched,
            silence,
            session: Some(session),
        })
    }

    /// Mount point.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Leaves the next such call unanswered, until [`answers`](Self::answers) is called.
    pub fn falls_silent_at(&self, call: Call) {
        self.silence.set(Some(call));
    }

    /// Answers all calls again.
    pub fn answers(&self) {
        self.silence.set(None);
    }

    /// Bytes fetched by its kernel so far because its page cache lacked them.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.answers();
        super::unmount(self.session.take(), &self.at);
    }
}

/// Server of one mount.
struct Client {
    store: Store,
    fetched: Arc<AtomicU64>,
    silence: Arc<Silence>,
    write_times: WriteTimes,
}

fn attributes(number: u64, bytes: Option<usize>) -> FileAttr {
    let size = bytes.unwrap_or(0) as u64;
    let (kind, perm) = match bytes {
        None => (FileType::Directory, 0o755),
        Some(_) => (FileType::RegularFile, 0o600),
    };
    one_file::attributes(INodeNo(number), kind, perm, size)
}

impl Client {
    /// Result of `change` on the content of a file; `ENOENT` where there is none.
    fn with<T>(&self, ino: INodeNo, change: impl FnOnce(&mut Vec<u8>) -> T) -> Result<T, Errno> {
        let mut files = self.store.files();
        let file = files.1.values_mut().find(|file| file.number == ino.0);
        let bytes = file.and_then(|file| file.bytes.as_mut());
        bytes.map(change).ok_or(Errno::ENOENT)
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        match ino {
            INodeNo::ROOT => Ok(attributes(INodeNo::ROOT.0, None)),
            _ => {
                let files = self.store.files();
                let own = files.1.values().find(|own| own.number == ino.0);
                own.map(Content::attributes).ok_or(Errno::ENOENT)
            }
        }
    }
}

impl Filesystem for Client {
    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.silence.keep(Call::Look);
        let files = self.store.files();
        let name = name.to_string_lossy().into_owned();
        match files.1.get(&(folder.0, name)) {
            Some(own) => reply.entry(&NOT_KEPT, &own.attributes(), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.silence.keep(Call::Look);
        match self.attributes(ino) {
            Ok(own) => reply.attr(&NOT_KEPT, &own),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let Some(size) = size {
            // The answer reports a missing file.
            let _ = self.with(ino, |bytes| bytes.resize(size as usize, 0));
        }
        self.getattr(request, ino, handle, reply);
    }

    fn create(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        self.silence.keep(Call::Create);
        let Some(name) = name.to_str() else {
            return reply.error(Errno::EINVAL);
        };
        reply.created(
            &NOT_KEPT,
            &self.store.add(folder, name, Some(Vec::new())),
            Generation(0),
            FileHandle(0),
            FopenFlags::FOPEN_KEEP_CACHE,
        );
    }

    fn mkdir(&self, _: &Request, folder: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let Some(name) = name.to_str() else {
            return reply.error(Errno::EINVAL);
        };
        self.silence.keep(Call::Create);
        let own = self.store.add(folder, name, None);
        reply.entry(&NOT_KEPT, &own, Generation(0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.with(ino, |bytes| {
            let from = (offset as usize).min(bytes.len());
            let end = (from + size as usize).min(bytes.len());
            bytes[from..end].to_vec()
        });
        match read {
            Ok(data) => {
                self.fetched.fetch_add(data.len() as u64, Ordering::Relaxed);
                reply.data(&data);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.silence.keep(Call::Write);
        let (from, end) = (offset as usize, offset as usize + data.len());
        let is_first = self.with(ino, |bytes| {
            let old = bytes.get(from..end.min(bytes.len()));
            // Written data is not zero.
            old.is_none_or(|old| old.iter().all(|byte| *byte == 0))
        });
        std::thread::sleep(self.write_times.of(is_first.unwrap_or_default()));
        let written = self.with(ino, |bytes| {
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[from..end].copy_from_slice(data);
        });
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.silence.keep(Call::Unlink);
        self.store.remove(folder, name, reply);
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.silence.keep(Call::Unlink);
        let files = self.store.files();
        let is = |own: &(u64, String)| own.0 == folder.0 && *own.1 == *name.to_string_lossy();
        let own = files.1.iter().find(|(key, _)| is(key));
        let is_full = own.is_some_and(|(_, own)| files.1.keys().any(|key| key.0 == own.number));
        drop(files);
        match is_full {
            true => reply.error(Errno::ENOTEMPTY),
            false => self.store.remove(folder, name, reply),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        folder: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let files = self.store.files();
        let own = files.1.iter().filter(|((of, _), _)| *of == folder.0);
        for (((_, name), own), next) in own.zip(1..).skip(offset as usize) {
            let kind = own.attributes().kind;
            if reply.add(INodeNo(own.number), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.silence.keep(Call::Room);
        const BLOCKS: u64 = 1 << 18;
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 1 << 10, 1 << 10, BLOCK, 255, BLOCK);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.silence.keep(Call::Sync);
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.silence.keep(Call::Allocate);
        // Only allocation is supported, not hole punching.
        if mode != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let end = (offset + length) as usize;
        match self.with(ino, |bytes| bytes.resize(bytes.len().max(end), 0)) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }
}
