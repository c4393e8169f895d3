//! The thread that answers each request when its time has come.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iolab_diskmodel::{Ns, Request};

use crate::playback::{Due, Playback};

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
    pub(crate) fn arrive(&self, stamp: Ns, request: Request, answer: T) {
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
    pub(crate) fn run(&self, mut give: impl FnMut(Due<T>)) -> usize {
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
