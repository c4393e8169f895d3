//! Server that answers the kernel's requests with the configured behaviour.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Errno, FileHandle, FopenFlags, ReplyData, ReplyEmpty, ReplyWrite};
use iolab_models::serve::one_file::ServedFile;

use super::{Answers, Credits, RequestContext, Shared};

/// Sleeping is less precise than this; busy-waits for the rest of a delay.
const AWAKE: Duration = Duration::from_micros(200);
/// Delay beyond the configured one and a twentieth, above which a request counts as late.
const LATE: Duration = Duration::from_micros(50);

/// State of an open file.
#[derive(Debug, Default)]
struct Open {
    /// Number among the open files that were read or written.
    number: Option<u64>,
    requests: u64,
}

#[derive(Debug)]
pub(super) struct Server {
    shared: Arc<Shared>,
    opens: Mutex<HashMap<u64, Open>>,
    handles: AtomicU64,
    reads: AtomicU64,
    written: AtomicU64,
    kept: Mutex<Kept>,
    of_reads: Option<Bucket>,
    of_writes: Option<Bucket>,
    stalled_until: Mutex<Instant>,
}

/// Credits left in a token bucket.
#[derive(Debug)]
struct Bucket {
    credits: Credits,
    left: Mutex<Left>,
}

/// Credits at a moment; debts are negative.
#[derive(Debug, Clone, Copy)]
struct Left {
    bytes: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    fn new(credits: Credits) -> Self {
        let left = Left {
            bytes: credits.full as f64,
            at: Instant::now(),
        };
        Self {
            credits,
            left: Mutex::new(left),
        }
    }

    /// Time that a request of `size` bytes waits for its credits.
    fn lacks(&self, size: usize) -> Duration {
        let Credits { full, refill } = self.credits;
        let now = Instant::now();
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(left.at);
        let had = (full as f64).min(left.bytes + refill * passed.as_secs_f64());
        let bytes = had - size as f64;
        *left = Left { bytes, at: now };
        Duration::from_secs_f64((-bytes / refill).max(0.0))
    }
}

/// Time that a request waits for credits; zero without a bucket.
fn lacks(bucket: Option<&Bucket>, size: usize) -> Duration {
    bucket.map_or(Duration::ZERO, |bucket| bucket.lacks(size))
}

/// State of the cache of reads.
#[derive(Debug, Default)]
struct Kept {
    /// Cached chunks, the most recently read one last.
    chunks: Vec<u64>,
    /// End of the last fetch, if fetches are serial.
    fetched: Option<Instant>,
}

/// A request being delayed; dropping it ends that.
struct Held<'a> {
    shared: &'a Shared,
    arrived: Instant,
}

impl<'a> Held<'a> {
    fn new(shared: &'a Shared) -> Self {
        let mut ledger = shared.ledger();
        ledger.at_once += 1;
        ledger.most_at_once = ledger.most_at_once.max(ledger.at_once);
        Self {
            shared,
            arrived: Instant::now(),
        }
    }

    /// Waits until the answer is due, and records the request.
    fn until(self, delay: Duration, open: u64, bytes: usize) {
        wait_until(self.arrived + delay);
        let mut ledger = self.shared.ledger();
        ledger.at_once -= 1;
        let held = self.arrived.elapsed();
        ledger.late += u64::from(held > delay + delay / 20 + LATE);
        ledger.meant += delay;
        ledger.held.push(held);
        if let Some(answers) = ledger.opens.get_mut(open as usize) {
            answers.number += 1;
            answers.bytes += bytes as u64;
        }
    }
}

/// Sleeps, and watches the clock at the end.
fn wait_until(answer_at: Instant) {
    std::thread::sleep(
        answer_at
            .saturating_duration_since(Instant::now())
            .saturating_sub(AWAKE),
    );
    while Instant::now() < answer_at {
        std::hint::spin_loop();
    }
}

impl Server {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let behaviour = &shared.behaviour;
        Self {
            of_reads: behaviour.credits.map(Bucket::new),
            of_writes: behaviour.write_credits.map(Bucket::new),
            shared,
            opens: Mutex::default(),
            handles: AtomicU64::new(1),
            reads: AtomicU64::new(0),
            written: AtomicU64::new(0),
            kept: Mutex::default(),
            stalled_until: Mutex::new(Instant::now()),
        }
    }

    /// Time of a read at an offset in addition to its delay.
    fn further_delay(&self, number: u64, offset: u64, size: u32) -> Duration {
        self.fetch(offset) + lacks(self.of_reads.as_ref(), size as usize) + self.stalls(number)
    }

    /// Time that a read, by its number, waits for the end of a stall.
    fn stalls(&self, number: u64) -> Duration {
        let Some(stall) = self.shared.behaviour.stall else {
            return Duration::ZERO;
        };
        let now = Instant::now();
        let mut until = self
            .stalled_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if number % stall.every == stall.every - 1 {
            *until = now.max(*until) + stall.time;
        }
        until.saturating_duration_since(now)
    }

    /// Time that the cache adds to a read at this offset.
    fn fetch(&self, offset: u64) -> Duration {
        let Some(cache) = self.shared.behaviour.cache else {
            return Duration::ZERO;
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { chunks, fetched } = &mut *kept;
        let chunk = offset / cache.chunk;
        let place = chunks.iter().position(|kept| *kept == chunk);
        let took = match place {
            Some(place) => {
                chunks.remove(place);
                Duration::ZERO
            }
            None if cache.serial => {
                let now = Instant::now();
                let ends = fetched.map_or(now, |before| before.max(now)) + cache.fetch;
                *fetched = Some(ends);
                ends - now
            }
            None => cache.fetch,
        };
        chunks.push(chunk);
        if chunks.len() > cache.holds {
            chunks.remove(0);
        }
        took
    }

    fn context(&self, handle: FileHandle) -> RequestContext {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        let open = opens.entry(handle.0).or_default();
        let number = *open.number.get_or_insert_with(|| {
            let mut ledger = self.shared.ledger();
            ledger.opens.push(Answers::default());
            ledger.opens.len() as u64 - 1
        });
        open.requests += 1;
        RequestContext {
            open: number,
            request: open.requests - 1,
            written: self.written.load(Ordering::Relaxed),
        }
    }

    fn fails(&self, offset: u64, size: usize) -> bool {
        let end = offset + size as u64;
        self.shared
            .behaviour
            .fail_at
            .is_some_and(|at| (offset..end).contains(&at))
    }

    /// Bytes in the answer to the read with this number.
    fn answer(&self, number: u64, offset: u64, size: u32) -> usize {
        let behaviour = &self.shared.behaviour;
        let mut size = u64::from(size).min(behaviour.bytes.saturating_sub(offset));
        if behaviour
            .cut_every
            .is_some_and(|every| number % every == every - 1)
        {
            size = size.div_ceil(2);
        }
        behaviour
            .answer_most
            .map_or(size, |most| size.min(u64::from(most))) as usize
    }
}

impl ServedFile for Server {
    const NAME: &'static str = "data";
    const DEPTH: u16 = 1024;
    const MODES: (u16, u16) = (0o755, 0o644);

    fn bytes(&self) -> u64 {
        self.shared.behaviour.bytes
    }

    fn open(&self) -> (FileHandle, FopenFlags) {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        let flags = match self.shared.behaviour.cached {
            true => FopenFlags::empty(),
            false => FopenFlags::FOPEN_DIRECT_IO,
        };
        (FileHandle(handle), flags)
    }

    fn read(&self, _: u32, handle: FileHandle, offset: u64, size: u32, reply: ReplyData) {
        let held = Held::new(&self.shared);
        let context = self.context(handle);
        let number = self.reads.fetch_add(1, Ordering::Relaxed);
        let delay =
            (self.shared.behaviour.delay)(context) + self.further_delay(number, offset, size);
        if self.fails(offset, size as usize) {
            held.until(delay, context.open, 0);
            return reply.error(Errno::EIO);
        }
        let size = self.answer(number, offset, size);
        held.until(delay, context.open, size);
        let store = self
            .shared
            .store
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let from = (offset as usize).min(store.visible.len());
        reply.data(&store.visible[from..from + size]);
    }

    fn write(&self, handle: FileHandle, offset: u64, data: &[u8], reply: ReplyWrite) {
        let held = Held::new(&self.shared);
        let context = self.context(handle);
        let delay =
            (self.shared.behaviour.delay)(context) + lacks(self.of_writes.as_ref(), data.len());
        self.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        let room = self
            .shared
            .behaviour
            .full_after
            .unwrap_or(u64::MAX)
            .saturating_sub(context.written);
        let beyond = offset + data.len() as u64 > self.shared.behaviour.bytes;
        if self.fails(offset, data.len()) || beyond || room < data.len() as u64 {
            held.until(delay, context.open, 0);
            let full = !self.fails(offset, data.len());
            return reply.error(if full { Errno::ENOSPC } else { Errno::EIO });
        }
        {
            let mut store = self
                .shared
                .store
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            store.write(offset, data, self.shared.behaviour.harm);
        }
        held.until(delay, context.open, data.len());
        reply.written(data.len() as u32);
    }

    fn fsync(&self, reply: ReplyEmpty) {
        let arrived = Instant::now();
        let mut store = self
            .shared
            .store
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if store.durable.is_some() {
            store.durable = Some(store.visible.clone());
        }
        drop(store);
        let number = self.shared.ledger().syncs;
        let written = self.written.load(Ordering::Relaxed);
        let delay = (self.shared.behaviour.sync_delay)(number, written);
        wait_until(arrived + delay);
        let mut ledger = self.shared.ledger();
        ledger.syncs += 1;
        ledger.held_syncs.push(arrived.elapsed());
        drop(ledger);
        reply.ok();
    }
}
