//! The served file: as long as the modelled disk, and with the behaviour of a block device.
//!
//! Events that wake the serving process.
//!
//! Written data, in memory.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Errno, FileHandle, FopenFlags, ReplyData, ReplyEmpty, ReplyWrite};

use crate::serve::one_file::ServedFile;
use iolab_workload::virtual_disk::{Completion, Model, Ns, Request, ServedFrom};

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
        timer.arrive(stamp, Request::read(offset, len), answer);
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
        timer.arrive(stamp, Request::write(offset, len), answer);
    }

    fn fsync(&self, reply: ReplyEmpty) {
        let timer = &self.shared.timer;
        timer.arrive(timer.now(), Request::flush(), Answer::Done(reply));
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
                timer.arrive(stamp, Request::trim(offset, len), Answer::Done(reply));
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
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wake {
    /// Data was written for which there was no memory, for the first time.
    Full = b'f' as isize,
    /// The disk was unmounted, or can no longer serve.
    Unmounted = b'u' as isize,
}

impl Wake {
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

/// A request whose answer is due. Real times, in ns since the start.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// When it arrived.
    pub arrived: Ns,
    /// The request itself.
    pub request: Request,
    /// Time at which the answer is due: never before the model completes the request.
    pub due: Ns,
    /// How the model served it.
    pub served: ServedFrom,
}

/// A model with the requests that it has.
pub struct Playback<T> {
    model: Box<dyn Model>,
    speed: Speed,
    /// Virtual time of the last call; the model takes no earlier one.
    reached: Ns,
    tag: u64,
    /// Requests that the model has: arrival time, request, and the answer that goes back.
    waiting: HashMap<u64, (Ns, Request, T)>,
    most: usize,
    finished: Vec<Completion>,
    due: VecDeque<(Due, T)>,
}

impl<T> Playback<T> {
    /// A model without requests, at time 0.
    pub fn new(model: Box<dyn Model>, speed: Speed) -> Self {
        Self {
            model,
            speed,
            reached: 0,
            tag: 0,
            waiting: HashMap::new(),
            most: 0,
            finished: Vec::new(),
            due: VecDeque::new(),
        }
    }

    /// Gives the model a request that arrived at `now`. If the model's time is past that already, the request
    /// counts from the model's time.
    pub fn arrive(&mut self, now: Ns, request: Request, answer: T) {
        self.advance(now);
        self.tag += 1;
        self.waiting.insert(self.tag, (now, request, answer));
        self.most = self.most.max(self.waiting.len());
        self.model.submit(self.reached, self.tag, &request);
        // Effects that the model has at once need no wake-up.
        self.advance(now);
    }

    /// The next time at which [`Self::take`] has something to do; `None` while the model has no request.
    pub fn next(&self) -> Option<Ns> {
        let due = self.due.front().map(|(due, _)| due.due);
        due.or_else(|| Some(self.speed.to_real(self.model.next_event()?)))
    }

    /// Takes the first request whose answer is due at `now`, and its answer.
    pub fn take(&mut self, now: Ns) -> Option<(Due, T)> {
        self.advance(now);
        self.due.pop_front_if(|(due, _)| due.due <= now)
    }

    /// Most requests that the model had at a time.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Drops all requests.
    pub fn abandon(&mut self) {
        self.waiting.clear();
        self.due.clear();
    }

    fn advance(&mut self, now: Ns) {
        self.reached = self.reached.max(self.speed.to_virtual(now));
        self.model.advance(self.reached, &mut self.finished);
        for completion in self.finished.drain(..) {
            let Some((arrived, request, answer)) = self.waiting.remove(&completion.tag) else {
                continue;
            };
            let due = Due {
                arrived,
                request,
                // An arrival is rounded down to virtual time.
                due: self.speed.to_real(completion.finished).max(arrived),
                served: completion.served,
            };
            self.due.push_back((due, answer));
        }
    }
}

/// The speed of real time, in the unit that speeds are counted in.
const MILLION: u128 = 1_000_000;

/// Seconds of virtual time per second of real time, exact to a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// Virtual time is real time.
    pub const REAL: Self = Self(1_000_000);

    /// A speed between 0.001 and 1000; `None` for any other.
    pub fn new(factor: f64) -> Option<Self> {
        (0.001..=1000.0)
            .contains(&factor)
            .then(|| Self((factor * 1e6).round() as u64))
    }

    /// Virtual over real time.
    pub fn factor(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The virtual time at a real time, both in ns since the start, rounded down.
    pub fn to_virtual(self, real: Ns) -> Ns {
        (u128::from(real) * u128::from(self.0) / MILLION) as Ns
    }

    /// The first real time at which virtual time has reached `time`.
    pub fn to_real(self, time: Ns) -> Ns {
        (u128::from(time) * MILLION).div_ceil(u128::from(self.0)) as Ns
    }
}

/// Typical lateness of a wake-up by the kernel; the remaining time is spent spinning.
const AWAKE: Ns = 200_000;

/// Time of the next action while no request is under way.
const NEVER: Ns = Ns::MAX;

/// A [`Playback`] on the clock.
pub(crate) struct Timer<T> {
    started: Instant,
    state: Mutex<State<T>>,
    changed: Condvar,
    /// Time at which the thread has to act next. Changed under the lock, read without it.
    next: AtomicU64,
}

struct State<T> {
    playback: Playback<T>,
    over: bool,
}

impl<T> Timer<T> {
    /// Time 0 is now.
    pub(crate) fn new(playback: Playback<T>) -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::new(State {
                playback,
                over: false,
            }),
            changed: Condvar::new(),
            next: AtomicU64::new(NEVER),
        }
    }

    /// Real time since the start.
    pub(crate) fn now(&self) -> Ns {
        self.started.elapsed().as_nanos() as Ns
    }

    /// Takes a request that arrived at `stamp`.
    fn arrive(&self, stamp: Ns, request: Request, answer: T) {
        let mut state = self.state();
        if state.over {
            return;
        }
        state.playback.arrive(stamp, request, answer);
        let next = state.playback.next().unwrap_or(NEVER);
        if next < self.next.load(Ordering::Relaxed) {
            self.next.store(next, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// Hands over each request at the time it is due, until [`Self::stop`]; returns the most requests at a time.
    pub(crate) fn run(&self, mut give: impl FnMut((Due, T))) -> usize {
        // The kernel may delay the end of a wait by this much, 50 us by default. If it refuses a smaller value,
        // the lateness shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut due = Vec::new();
        let mut state = self.state();
        while !state.over {
            let next = state.playback.next().unwrap_or(NEVER);
            self.next.store(next, Ordering::Relaxed);
            let ahead = next.saturating_sub(self.now());
            if next == NEVER {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else if ahead > AWAKE {
                let wait = Duration::from_nanos(ahead - AWAKE);
                let woken = self.changed.wait_timeout(state, wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(state);
                let mut now = self.now();
                // An arrival may bring this time forward.
                while now < self.next.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                    now = self.now();
                }
                state = self.state();
                while let Some(one) = state.playback.take(now) {
                    due.push(one);
                }
                drop(state);
                due.drain(..).for_each(&mut give);
                state = self.state();
            }
        }
        state.playback.most()
    }

    /// Ends [`Self::run`] and drops all requests, future ones too.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.over = true;
        state.playback.abandon();
        self.next.store(0, Ordering::Relaxed);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
