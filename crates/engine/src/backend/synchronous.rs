//! Backends that make one blocking call a request: in the worker (`sync`, `psync`, `pvsync2`), or on threads of their own
//! (`pool`).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use iolab_workload::Error;
use iolab_workload::outcome::Effective;
use iolab_workload::trial::TrialSpec;
use rustix::fs::SeekFrom;
use rustix::io::{Errno, ReadWriteFlags};

use super::{Opened, TrimCall};
use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Queue, Request, SystemFailure};

/// Translation of a data request into system calls.
pub(crate) trait Calls {
    /// Names of the read and the write call.
    const NAMES: (&'static str, &'static str);

    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno>;
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno>;

    /// Whether the calls poll for their completion.
    fn polls(&self) -> bool {
        false
    }

    /// Name of the system call that carries an action out, for messages.
    fn name(action: Action, trim: TrimCall) -> &'static str {
        match action {
            Action::Read => Self::NAMES.0,
            Action::Write => Self::NAMES.1,
            Action::Trim => trim.name(),
            Action::Fsync => "fsync",
            Action::Fdatasync => "fdatasync",
        }
    }
}

/// `lseek` if the position is not already right, then `read` or `write`.
///
/// If other workers use the open file description too (`SHARED`), its position is theirs as well, so that a lock has to be held across the
/// two calls: else one would read where another has just been sent. This is what makes a program with one descriptor serialise itself.
pub(crate) struct SeekCalls<'a, const SHARED: bool> {
    /// Position of the file if known; never of a shared one.
    position: Option<u64>,
    lock: &'a Mutex<()>,
}

impl<'a, const SHARED: bool> SeekCalls<'a, SHARED> {
    /// The calls for a file that has just been opened; `lock` is held across calls to a shared one.
    pub(crate) fn new(lock: &'a Mutex<()>) -> Self {
        Self {
            position: (!SHARED).then_some(0),
            lock,
        }
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        file: &File,
        offset: u64,
        len: usize,
        call: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        // Nothing that it guards can be left half done.
        let lock = || self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _held = SHARED.then(lock);
        if self.position != Some(offset) {
            rustix::fs::seek(file, SeekFrom::Start(offset))?;
        }
        // Unknown from here on, unless the whole request is transferred.
        self.position = None;
        let moved = call()?;
        if moved == len && !SHARED {
            self.position = Some(offset + len as u64);
        }
        Ok(moved)
    }
}

impl<const SHARED: bool> Calls for SeekCalls<'_, SHARED> {
    const NAMES: (&'static str, &'static str) = ("read", "write");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let len = buffer.len();
        self.transfer(file, offset, len, || rustix::io::read(file, buffer))
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        let len = buffer.len();
        self.transfer(file, offset, len, || rustix::io::write(file, buffer))
    }
}

/// `pread` and `pwrite`.
pub(crate) struct PositionedCalls;

impl Calls for PositionedCalls {
    const NAMES: (&'static str, &'static str) = ("pread", "pwrite");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pread(file, buffer, offset)
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pwrite(file, buffer, offset)
    }
}

/// `preadv2` and `pwritev2` with one vector.
pub(crate) struct VectoredCalls {
    read: ReadWriteFlags,
    write: ReadWriteFlags,
}

impl VectoredCalls {
    /// The calls with the flags of a trial.
    pub(crate) fn new(spec: &TrialSpec) -> Self {
        let polled = match spec.iopoll {
            true => ReadWriteFlags::HIPRI,
            false => ReadWriteFlags::empty(),
        };
        let own = ReadWriteFlags::from_bits_retain(super::write_flags(spec).cast_unsigned());
        Self {
            read: polled,
            write: polled | own,
        }
    }
}

impl Calls for VectoredCalls {
    const NAMES: (&'static str, &'static str) = ("preadv2", "pwritev2");

    #[inline(always)]
    fn read(&mut self, file: &File, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], offset, self.read)
    }

    #[inline(always)]
    fn write(&mut self, file: &File, buffer: &[u8], offset: u64) -> Result<usize, Errno> {
        rustix::io::pwritev2(file, &[IoSlice::new(buffer)], offset, self.write)
    }

    fn polls(&self) -> bool {
        self.read.contains(ReadWriteFlags::HIPRI)
    }
}

/// The synchronous backend over one kind of calls. A request is issued when its completion is asked for.
pub(crate) struct Synchronous<C, O> {
    opened: O,
    calls: C,
    trim: TrimCall,
    queued: Option<(Slot, Request)>,
}

impl<C: Calls, O: Opened> Synchronous<C, O> {
    pub(crate) fn new(opened: O, calls: C) -> Self {
        Self {
            trim: TrimCall::of(&opened.files()[0]),
            opened,
            calls,
            queued: None,
        }
    }

    #[inline(always)]
    fn carry_out(&mut self, slot: &mut Slot, request: Request) -> i64 {
        let (number, request) = self.opened.resolve(request);
        let file = &self.opened.files()[number];
        carry_out(file, (&mut self.calls, self.trim), slot, request)
    }
}

/// Carries a request out, and again if a signal came before it moved anything: bytes transferred, or a negated error
/// number.
#[inline(always)]
pub(super) fn carry_out<C: Calls>(
    file: &File,
    (calls, trim): (&mut C, TrimCall),
    slot: &mut Slot,
    request: Request,
) -> i64 {
    loop {
        match issue(file, (&mut *calls, trim), slot, request) {
            Ok(bytes) => return bytes as i64,
            Err(Errno::INTR) => {}
            Err(errno) => return -i64::from(errno.raw_os_error()),
        }
    }
}

#[inline(always)]
fn issue<C: Calls>(
    file: &File,
    (calls, trim): (&mut C, TrimCall),
    slot: &mut Slot,
    request: Request,
) -> Result<usize, Errno> {
    let buffer = slot.part(request.at, request.len);
    match request.action {
        Action::Read => calls.read(file, buffer, request.offset),
        Action::Write => calls.write(file, buffer, request.offset),
        Action::Trim => {
            let len = u64::from(request.len);
            let trimmed = trim.carry_out(file, request.offset, len);
            trimmed.map(|()| request.len as usize)
        }
        Action::Fsync => rustix::fs::fsync(file).map(|()| 0),
        Action::Fdatasync => rustix::fs::fdatasync(file).map(|()| 0),
    }
}

impl<C: Calls, O: Opened> Queue for Synchronous<C, O> {
    #[inline(always)]
    fn queue(&mut self, slot: Slot, request: Request) {
        debug_assert!(self.queued.is_none());
        self.queued = Some((slot, request));
    }

    fn syscall(&self, action: Action) -> &'static str {
        C::name(action, self.trim)
    }
}

impl<C: Calls, O: Opened> Backend for Synchronous<C, O> {
    const VARIED_ONLY: bool = O::SEVERAL;

    #[inline(always)]
    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        if let Some((mut slot, request)) = self.queued.take() {
            let result = self.carry_out(&mut slot, request);
            done.push(Completion { slot, result });
        }
        Ok(())
    }

    #[inline(always)]
    fn transfer(&mut self, slot: &mut Slot, request: Request) -> Option<i64> {
        Some(self.carry_out(slot, request))
    }

    fn offset_in_each_file(&self) -> Vec<u64> {
        self.opened.offset_in_each()
    }

    fn effective(&self) -> Effective {
        Effective {
            polled: self.calls.polls(),
            ..Effective::default()
        }
    }
}

/// Bytes of a thread's stack: it makes system calls and nothing else.
const STACK: usize = 64 << 10;

/// `pread` and `pwrite` on as many threads as requests can be outstanding, as programs do that have blocking calls alone and want
/// several requests at once: libuv, PostgreSQL's I/O workers, RocksDB's MultiRead without io_uring.
///
/// One lock guards the waiting and the finished requests. A worker hands over all its requests at once and sleeps until
/// enough have completed. This backend shows what that costs compared with `io_uring`.
pub(super) struct Pool<O> {
    shared: Arc<Shared<O>>,
    threads: Vec<JoinHandle<()>>,
    queued: Vec<(Slot, Request)>,
}

/// A slot on its way between threads, with a request or its result.
struct SendSlot<T>(Slot, T);

// SAFETY: a slot is the only right to touch its buffer, whichever thread holds it, and the address that it points to is
// only read. The buffers free both when all their slots are back with the worker, and never before. The content that
// travels with the slot is `Send` itself.
unsafe impl<T: Send> Send for SendSlot<T> {}

fn completion(SendSlot(slot, result): SendSlot<i64>) -> Completion {
    Completion { slot, result }
}

struct Shared<O> {
    opened: O,
    trim: TrimCall,
    state: Mutex<State>,
    /// Something waits, or the pool closes.
    work: Condvar,
    /// Something is done.
    done: Condvar,
}

/// Both queues have room for all requests from the start.
struct State {
    waiting: VecDeque<SendSlot<Request>>,
    done: Vec<SendSlot<i64>>,
    closes: bool,
}

impl<O> Shared<O> {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that it guards can be left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: Opened> Shared<O> {
    /// A thread's life: one request after the other, until the pool closes.
    fn serve(&self) {
        let mut state = self.state();
        loop {
            if let Some(SendSlot(mut slot, request)) = state.waiting.pop_front() {
                drop(state);
                let (number, request) = self.opened.resolve(request);
                let file = &self.opened.files()[number];
                let calls = (&mut PositionedCalls, self.trim);
                let result = carry_out(file, calls, &mut slot, request);
                state = self.state();
                state.done.push(SendSlot(slot, result));
                self.done.notify_one();
            } else if state.closes {
                return;
            } else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<O: Opened> Pool<O> {
    /// Starts the threads; to be called by the worker, whose CPUs and descriptors they share.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a thread cannot be started, or hardware events are to be counted.
    /// The events would be counted for the worker's own thread, which does no I/O here.
    pub(super) fn new(opened: O, spec: &TrialSpec) -> iolab_workload::Result<Self> {
        if spec.hardware_counters {
            return Err(Error::usage("hardware_counters with backend pool").hint(
                "its threads are not counted; leave hardware_counters out, or set backend=psync",
            ));
        }
        let room = spec.depth as usize;
        let shared = Arc::new(Shared {
            trim: TrimCall::of(&opened.files()[0]),
            opened,
            state: Mutex::new(State {
                waiting: VecDeque::with_capacity(room),
                done: Vec::with_capacity(room),
                closes: false,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let mut pool = Self {
            shared,
            threads: Vec::with_capacity(room),
            queued: Vec::with_capacity(room),
        };
        for number in 1..=spec.depth {
            let shared = pool.shared.clone();
            let builder = Builder::new().stack_size(STACK);
            let thread = builder.spawn(move || shared.serve()).map_err(|error| {
                Error::usage(format!("thread {number} of a pool cannot start: {error}"))
                    .hint("use a smaller depth, or raise the limit of processes (ulimit -u)")
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Hands over the queued requests.
    fn submit(&mut self) {
        let count = self.queued.len();
        let handed = self
            .queued
            .drain(..)
            .map(|(slot, request)| SendSlot(slot, request));
        self.shared.state().waiting.extend(handed);
        for _ in 0..count {
            self.shared.work.notify_one();
        }
    }
}

impl<O: Opened> Queue for Pool<O> {
    fn queue(&mut self, slot: Slot, request: Request) {
        self.queued.push((slot, request));
    }

    fn syscall(&self, action: Action) -> &'static str {
        PositionedCalls::name(action, self.shared.trim)
    }
}

impl<O: Opened> Backend for Pool<O> {
    const VARIED_ONLY: bool = O::SEVERAL;

    fn complete(&mut self, wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        self.submit();
        let mut state = self.shared.state();
        while state.done.len() < wait as usize {
            state = self
                .shared
                .done
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        done.extend(state.done.drain(..).map(completion));
        Ok(())
    }

    fn complete_within(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), SystemFailure> {
        let deadline = Instant::now() + timeout;
        self.submit();
        let mut state = self.shared.state();
        while state.done.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        done.extend(state.done.drain(..).map(completion));
        Ok(())
    }

    fn offset_in_each_file(&self) -> Vec<u64> {
        self.shared.opened.offset_in_each()
    }
}

impl<O> Drop for Pool<O> {
    fn drop(&mut self) {
        self.shared.state().closes = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has been reported by its panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file() -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(b"0123456789").expect("written");
        rustix::fs::seek(&file, SeekFrom::Start(0)).expect("seeks");
        file
    }

    type Alone = SeekCalls<'static, false>;

    static UNUSED: Mutex<()> = Mutex::new(());

    fn read(calls: &mut Alone, file: &File, offset: u64, len: usize) -> Vec<u8> {
        let mut buffer = vec![0; len];
        let moved = calls.read(file, &mut buffer, offset).expect("reads");
        buffer.truncate(moved);
        buffer
    }

    #[test]
    fn requests_keep_their_offsets_after_any_other() {
        let (file, mut calls) = (file(), Alone::new(&UNUSED));
        for (offset, len, expected) in [
            (0, 2, &b"01"[..]),
            (2, 2, b"23"),
            (7, 2, b"78"),
            (0, 3, b"012"),
            (8, 4, b"89"),
            (8, 2, b"89"),
            (1, 1, b"1"),
        ] {
            assert_eq!(read(&mut calls, &file, offset, len), expected);
        }
        calls.write(&file, b"xy", 4).expect("writes");
        assert_eq!(read(&mut calls, &file, 6, 1), b"6");
        assert_eq!(read(&mut calls, &file, 3, 4), b"3xy6");
    }

    #[test]
    fn seeks_only_if_position_is_wrong_or_unknown() {
        let (file, mut calls) = (file(), Alone::new(&UNUSED));
        assert_eq!(read(&mut calls, &file, 0, 2), b"01");
        // Moved without its knowledge: the next read shows whether it seeks.
        rustix::fs::seek(&file, SeekFrom::Start(5)).expect("seeks");
        assert_eq!(read(&mut calls, &file, 2, 2), b"56");
        assert_eq!(read(&mut calls, &file, 9, 5), b"9", "a short transfer");
        rustix::fs::seek(&file, SeekFrom::Start(0)).expect("seeks");
        assert_eq!(read(&mut calls, &file, 10, 1), b"");
        assert_eq!(read(&mut calls, &file, 2, 1), b"2");
    }
}
