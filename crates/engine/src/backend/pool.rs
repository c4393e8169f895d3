//! `pool`: `pread` and `pwrite` on threads of its own, as programs do that have blocking calls alone and want several
//! requests at once: libuv, PostgreSQL's I/O workers, RocksDB's MultiRead without io_uring.
//!
//! One lock guards the waiting and the finished requests. A worker hands over all its requests at once and sleeps until
//! enough have completed. This backend shows what that costs compared with `io_uring`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::synchronous::{Calls, PositionedCalls, carry_out};
use super::{Opened, TrimCall};
use crate::buffer::Slot;
use crate::request::{Action, Backend, Completion, Queue, Request, SystemFailure};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Bytes of a thread's stack: it makes system calls and nothing else.
const STACK: usize = 64 << 10;

/// As many threads as requests can be outstanding.
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
    pub(super) fn new(opened: O, spec: &TrialSpec) -> Result<Self> {
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

    fn complete(
        &mut self,
        wait: u32,
        done: &mut Vec<Completion>,
    ) -> std::result::Result<(), SystemFailure> {
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
    ) -> std::result::Result<(), SystemFailure> {
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
