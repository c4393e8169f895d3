//! A file system with one file, `data`, and configured behaviour, so that the truth of every request is known.

mod server;
pub mod view;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use fuser::{BackgroundSession, MountOption, Session};
use iolab_models::serve::one_file::OneFile;
use needs::Need;

use crate::cleanup::Cleanup;
use crate::files::fill_with_noise;
use crate::system::{Made, Unmade, lacks, warn};

/// The position of a request in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestContext {
    /// Number of the open file among those that were read or written, from 0. iolab opens one per worker and trial.
    pub open: u64,
    /// Number of the request within that open file, from 0.
    pub request: u64,
    /// Bytes written before it, through any open file.
    pub written: u64,
}

/// A silent error in one write. Offsets are bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// Inverts the byte at this offset, every time.
    Change(u64),
    /// Stores the write that begins at an offset this many bytes before it, every time.
    Shift {
        /// Offset of the write.
        at: u64,
        /// Distance in bytes.
        back: u64,
    },
    /// Never stores the write that begins here.
    Drop(u64),
    /// Stores the write that begins here only the first time.
    DropLater(u64),
    /// Stores only the first half of the write that begins here, every time.
    Half(u64),
}

/// The behaviour of the file system.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// Length of the file.
    pub bytes: u64,
    /// The delay of a request, from arrival to answer.
    pub delay: fn(RequestContext) -> Duration,
    /// The delay of a sync, from its number (from 0) and the bytes written before it.
    pub sync_delay: fn(u64, u64) -> Duration,
    /// Whether requests are served one at a time.
    pub serial: bool,
    /// One of this many reads is answered by half of the requested bytes.
    pub cut_every: Option<u64>,
    /// Most bytes in the answer to a read.
    pub answer_most: Option<u32>,
    /// Reads and writes that reach this byte fail (EIO).
    pub fail_at: Option<u64>,
    /// Total of bytes after which writes fail (ENOSPC).
    pub full_after: Option<u64>,
    /// Whether a crash loses written data that was not synced.
    pub volatile: bool,
    /// Whether the kernel may keep it in the page cache.
    pub cached: bool,
    /// A silent error in one write.
    pub harm: Option<WriteFault>,
    /// A cache of reads, in front of something slower.
    pub cache: Option<ChunkCache>,
    /// Credits of reads, after which reads are slower.
    pub credits: Option<Credits>,
    /// Credits of writes, likewise: a cache that writes fill, and that drains all the time.
    pub write_credits: Option<Credits>,
    /// Stalls of all reads.
    pub stall: Option<Stall>,
}

/// A token bucket. Requests are fast until it is empty, and then as fast as it is refilled.
#[derive(Debug, Clone, Copy)]
pub struct Credits {
    /// Capacity, bytes; the bucket is full at first.
    pub full: u64,
    /// Refill rate, bytes per second.
    pub refill: f64,
}

/// A periodic stall: one of `every` reads waits, and so do all that arrive meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// Period in reads, over all open files.
    pub every: u64,
    /// Length of the stall.
    pub time: Duration,
}

/// A cache of the most recently read chunks.
#[derive(Debug, Clone, Copy)]
pub struct ChunkCache {
    /// Size of a chunk, which is fetched as a whole, bytes.
    pub chunk: u64,
    /// Capacity, chunks.
    pub holds: usize,
    /// Additional time of a request that has to fetch a chunk.
    pub fetch: Duration,
    /// Whether chunks are fetched one at a time.
    pub serial: bool,
}

impl Default for Behaviour {
    /// 32 MiB, without delays or errors.
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            delay: |_| Duration::ZERO,
            sync_delay: |_, _| Duration::ZERO,
            serial: false,
            cut_every: None,
            answer_most: None,
            fail_at: None,
            full_after: None,
            volatile: false,
            cached: false,
            harm: None,
            cache: None,
            credits: None,
            write_credits: None,
            stall: None,
        }
    }
}

/// Observations of the file system: the truth for comparison.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// Time from arrival to answer of each read or write.
    pub held: Vec<Duration>,
    /// Number of requests delayed by more than a twentieth and 50 us beyond the configured delay, because others had the CPU.
    pub late: u64,
    /// Sum of the configured delays.
    pub meant: Duration,
    /// Most requests served at the same time.
    pub most_at_once: u32,
    /// Number of `fsync` and `fdatasync` requests.
    pub syncs: u64,
    /// Time from arrival to answer of each sync.
    pub held_syncs: Vec<Duration>,
    /// Answers to each open file, in the order of first requests.
    pub opens: Vec<Answers>,
    at_once: u32,
}

/// Answers to the reads and writes of an open file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Number of answers.
    pub number: u64,
    /// Bytes in the answers.
    pub bytes: u64,
}

impl Ledger {
    /// Answers to the last open files, which belong to the trials of a run.
    pub fn last(&self, opens: usize) -> Answers {
        let last = self.opens.iter().rev().take(opens);
        last.fold(Answers::default(), |sum, open| Answers {
            number: sum.number + open.number,
            bytes: sum.bytes + open.bytes,
        })
    }

    /// Share of the requests that were delayed too long.
    pub fn share_late(&self) -> f64 {
        self.late as f64 / self.held.len().max(1) as f64
    }

    /// Mean excess of the delay, as a share.
    pub fn excess(&self) -> f64 {
        let held: Duration = self.held.iter().sum();
        held.as_secs_f64() / self.meant.as_secs_f64().max(1e-9) - 1.0
    }

    /// Quantile of the delays of syncs, ms.
    pub fn sync_quantile_ms(&self, q: f64) -> f64 {
        let mut held = self.held_syncs.clone();
        held.sort_unstable();
        let rank = (held.len() as f64 * q) as usize;
        let at = held.get(rank.min(held.len().saturating_sub(1)));
        at.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    /// Mean time that a request was held, ns.
    pub fn mean_held_ns(&self) -> f64 {
        let sum: Duration = self.held.iter().sum();
        sum.as_nanos() as f64 / self.held.len().max(1) as f64
    }

    /// Median time that a request was held, ns.
    pub fn median_held_ns(&self) -> f64 {
        let mut held = self.held.clone();
        held.sort_unstable();
        held.get(held.len() / 2)
            .map_or(0.0, |time| time.as_nanos() as f64)
    }
}

/// Content of the file.
#[derive(Debug)]
struct Store {
    /// Content that reads return.
    visible: Vec<u8>,
    /// Content that remains after a crash.
    durable: Option<Vec<u8>>,
    /// Whether the write to be dropped was stored once.
    was_stored: bool,
}

impl Store {
    /// Stores a write, with the configured error.
    fn write(&mut self, offset: u64, data: &[u8], harm: Option<WriteFault>) {
        let mut put = |offset: u64, data: &[u8]| {
            self.visible[offset as usize..][..data.len()].copy_from_slice(data);
        };
        match harm {
            Some(WriteFault::Drop(at)) if at == offset => {}
            Some(WriteFault::DropLater(at)) if at == offset => {
                if !std::mem::replace(&mut self.was_stored, true) {
                    put(offset, data);
                }
            }
            Some(WriteFault::Shift { at, back }) if at == offset => put(offset - back, data),
            Some(WriteFault::Half(at)) if at == offset => put(offset, &data[..data.len() / 2]),
            Some(WriteFault::Change(at)) if (offset..offset + data.len() as u64).contains(&at) => {
                put(offset, data);
                self.visible[at as usize] ^= 0xff;
            }
            _ => put(offset, data),
        }
    }
}

#[derive(Debug)]
struct Shared {
    behaviour: Behaviour,
    store: RwLock<Store>,
    ledger: Mutex<Ledger>,
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mounted file system; dropping it unmounts.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
    shared: Arc<Shared>,
    session: Option<BackgroundSession>,
}

/// Unmounts without privileges if necessary.
const UNMOUNT: &str = "umount \"$0\" || fusermount3 -u \"$0\" || fusermount -u \"$0\"";

/// Number of concurrent requests, unless serial.
const HANDS: usize = 16;

impl Mounted {
    /// Mounts it on an empty folder.
    ///
    /// # Errors
    ///
    /// No `/dev/fuse`, or no permission to mount.
    pub fn new(keeper: &Cleanup, at: &Path, behaviour: Behaviour) -> Made<Self> {
        let mut visible = vec![0; behaviour.bytes as usize];
        fill_with_noise(&mut visible, &mut 0x2545_f491_4f6c_dd1d);
        let durable = behaviour.volatile.then(|| visible.clone());
        let shared = Arc::new(Shared {
            behaviour,
            store: RwLock::new(Store {
                visible,
                durable,
                was_stored: false,
            }),
            ledger: Mutex::default(),
        });
        let mut mounted = Self {
            at: at.to_owned(),
            shared,
            session: None,
        };
        mounted.mount(keeper)?;
        Ok(mounted)
    }

    fn mount(&mut self, keeper: &Cleanup) -> Made<()> {
        if !Path::new("/dev/fuse").exists() {
            return Err(Unmade::Missing(Need::Fuse, "no /dev/fuse".to_owned()));
        }
        let mut config = fuser::Config::default();
        config.mount_options = vec![MountOption::FSName("iolab-truth".to_owned())];
        config.n_threads = Some(if self.shared.behaviour.serial {
            1
        } else {
            HANDS
        });
        let server = server::Server::new(Arc::clone(&self.shared));
        let session = Session::new(OneFile(server), &self.at, &config)
            .and_then(Session::spawn)
            .map_err(lacks(Need::Fuse, "cannot mount FUSE"))?;
        self.session = Some(session);
        keeper.finally(&["sh", "-c", UNMOUNT, &self.at.display().to_string()]);
        Ok(())
    }

    /// The mounted file.
    pub fn file(&self) -> PathBuf {
        self.at.join("data")
    }

    /// Observations so far.
    pub fn ledger(&self) -> Ledger {
        self.shared.ledger().clone()
    }

    /// Whether any written byte is not durable.
    pub fn owes(&self) -> bool {
        let store = self
            .shared
            .store
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        store
            .durable
            .as_ref()
            .is_some_and(|durable| *durable != store.visible)
    }
}

/// Ends the server of a mount.
fn unmount(session: Option<BackgroundSession>, at: &Path) {
    let Some(session) = session else {
        return;
    };
    // Usually the cleanup process has already unmounted it and removed the folder.
    match session.umount_and_join() {
        Err(error) if at.exists() => {
            warn(&format!("unmounting {}: {error}", at.display()));
        }
        Err(_) | Ok(()) => {}
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(self.session.take(), &self.at);
    }
}
