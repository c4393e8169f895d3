//! The answers of a model to requests in real time, as a pure function: every time is passed in.
//!
//! The speed at which virtual time passes.
//!
//! The thread that answers each request when its time has come.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iolab_diskmodel::{Completion, Model, Ns, Request, ServedFrom};

/// A request whose answer is due. Real times, in ns since the start.
#[derive(Debug)]
pub struct Due<T> {
    /// When it arrived.
    pub arrived: Ns,
    /// The request itself.
    pub request: Request,
    /// Time at which the answer is due: never before the model completes the request.
    pub due: Ns,
    /// How the model served it.
    pub served: ServedFrom,
    /// The reply.
    pub answer: T,
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
    due: VecDeque<Due<T>>,
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
        let due = self.due.front().map(|due| due.due);
        due.or_else(|| Some(self.speed.to_real(self.model.next_event()?)))
    }

    /// Takes the first request whose answer is due at `now`.
    pub fn take(&mut self, now: Ns) -> Option<Due<T>> {
        self.advance(now);
        self.due.pop_front_if(|due| due.due <= now)
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
            self.due.push_back(Due {
                arrived,
                request,
                // An arrival is rounded down to virtual time.
                due: self.speed.to_real(completion.finished).max(arrived),
                served: completion.served,
                answer,
            });
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
