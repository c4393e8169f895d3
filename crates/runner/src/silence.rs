//! Storage that does not answer: a file server that is gone, a device that is suspended. Its requests wait in the kernel without end, and
//! so would the run.
//!
//! Storage that is slow is not silent: each request that completes wakes a thread. So what is looked at is whether any thread ran at all,
//! and never while a trial has time left: a trial that ends in time is not disturbed.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use iolab_cluster::timeouts::{Timeouts, moving};
use iolab_storage::Target;
use iolab_workload::Error;
use iolab_workload::quantity::exact_duration;
use iolab_workload::trial::{CacheState, TrialSpec};

use crate::ranks::ANSWER;

/// Time between two looks at the threads.
const STEP: Duration = Duration::from_secs(15);

/// Prints an error and ends the process, whose threads cannot end by themselves.
pub type EndProcess = fn(Error);

/// A watch over a run, until it is dropped.
pub(super) struct Watch {
    allowance: Arc<Mutex<Allowance>>,
    _over: Sender<()>,
}

/// What is waited for.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// When the trial in progress should be over; a moment that has passed between trials.
    due: Instant,
    /// How long the threads may stand still.
    patience: Duration,
}

impl Watch {
    /// Watches over a run on these targets by the thread that calls this and those that measure (`iolab-N`). Where all of them stand
    /// still for longer than they may, `end` is called on another thread.
    pub(super) fn over(targets: &[&Target], end: EndProcess) -> Self {
        let allowance = Arc::new(Mutex::new(Allowance {
            due: Instant::now(),
            patience: ANSWER,
        }));
        let (over, is_over) = mpsc::channel();
        let places: Vec<String> = targets.iter().map(|target| place(target)).collect();
        let caller = rustix::thread::gettid().as_raw_nonzero().to_string();
        let shared = Arc::clone(&allowance);
        let look = move || {
            let (mut before, mut still) = (Threads::default(), Duration::ZERO);
            loop {
                let began = Instant::now();
                if is_over.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let Allowance { due, patience } = *locked(&shared);
                if Instant::now() < due {
                    (before, still) = (Threads::default(), Duration::ZERO);
                    continue;
                }
                let now = Threads::seen(&caller);
                // Where the process itself was stopped meanwhile, its threads could not run.
                let was_stopped = began.elapsed() > STEP * 2;
                let is_still = now.waits && now.counts == before.counts && !was_stopped;
                still = if is_still {
                    still + STEP
                } else {
                    Duration::ZERO
                };
                if still >= patience {
                    return end(unanswered(&places, patience));
                }
                before = now;
            }
        };
        // Where the thread cannot be started, there is no limit.
        let _ = thread::Builder::new().spawn(look);
        Self {
            allowance,
            _over: over,
        }
    }

    /// Lets a trial of these groups take its time, until what this returns is dropped.
    pub(super) fn during<'a>(
        &self,
        trials: impl Iterator<Item = &'a TrialSpec> + Clone,
    ) -> Trial<'_> {
        let longest = trials.clone().map(due).max().unwrap_or_default();
        let patience = trials.map(patience).max().unwrap_or(ANSWER);
        let now = Instant::now();
        *locked(&self.allowance) = Allowance {
            due: now.checked_add(longest).unwrap_or(now),
            patience,
        };
        Trial(self)
    }
}

/// A trial in progress.
pub(super) struct Trial<'a>(&'a Watch);

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        locked(&self.0.allowance).due = Instant::now();
    }
}

fn locked(allowance: &Mutex<Allowance>) -> MutexGuard<'_, Allowance> {
    allowance.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a trial should be over.
fn due(trial: &TrialSpec) -> Duration {
    let bounded = || Timeouts::of(trial, 1, Duration::ZERO).carrying;
    trial.limit.time.unwrap_or_else(bounded)
}

/// How long its threads may stand still: a sync may have all of the region to write, a trim all of it to give back.
fn patience(trial: &TrialSpec) -> Duration {
    let is_dirty = trial.writes_data() && trial.cache != CacheState::Direct;
    match is_dirty || trial.trims() {
        true => moving(trial.region, ANSWER),
        false => ANSWER,
    }
}

/// The threads that measure, and the one that prepares.
#[derive(Debug, Default)]
struct Threads {
    /// What the scheduler counts of each, by its number.
    counts: BTreeMap<String, String>,
    /// Whether they can be waiting for storage: one waits in the kernel and cannot be interrupted, or there are some that measure.
    /// Without that, the run waits for something else: another program, or a terminal.
    waits: bool,
}

impl Threads {
    fn seen(caller: &str) -> Self {
        let mut threads = Self::default();
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
        for task in tasks.flatten() {
            let text = |name: &str| fs::read_to_string(task.path().join(name)).ok();
            let Ok(number) = task.file_name().into_string() else {
                continue;
            };
            let measures = text("comm").is_some_and(|name| name.starts_with("iolab-"));
            if !measures && number != caller {
                continue;
            }
            // Some kernels do not tell.
            let Some(counts) = text("schedstat") else {
                continue;
            };
            let state = text("stat").is_some_and(|stat| stat.contains(") D "));
            threads.waits |= measures || state;
            threads.counts.insert(number, counts);
        }
        threads
    }
}

/// A target in words, with its server.
fn place(target: &Target) -> String {
    let named = target.named().display();
    match target.stack().nfs {
        Some(mount) => format!("{named} on the file server {}", mount.server),
        None => named.to_string(),
    }
}

fn unanswered(places: &[String], patience: Duration) -> Error {
    Error::failed(format!(
        "{} has not answered for {}: requests to it wait in the kernel",
        places.join(", "),
        exact_duration(patience)
    ))
    .hint(
        "check the server, the network or the device. The kernel ends this process when it answers (or, on NFS, after umount -f); 'iolab resume RUN-FILE' then finishes the run, and the next run removes the scratch file",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use iolab_workload::trial::TrialLimit;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_trial_is_due_at_its_limit() {
        let timed = TrialSpec {
            region: GIB,
            read_percent: 100,
            limit: TrialLimit {
                time: Some(Duration::from_secs(7)),
                ..TrialLimit::default()
            },
            ..TrialSpec::default()
        };
        assert_eq!(due(&timed), Duration::from_secs(7));
        assert_eq!(patience(&timed), ANSWER);
        let bounded = TrialSpec {
            limit: TrialLimit {
                bytes: Some(GIB),
                ..TrialLimit::default()
            },
            ..timed
        };
        // At 4 MiB per second.
        assert!(due(&bounded) >= Duration::from_secs(256));
        let written = TrialSpec {
            read_percent: 0,
            cache: CacheState::Cold,
            ..bounded
        };
        assert_eq!(patience(&written), ANSWER + Duration::from_secs(256));
    }

    /// A thread that runs is seen to run, and one that waits for another one is not taken for one that waits for storage.
    #[test]
    fn a_thread_that_waits_stands_still() {
        let lock = Mutex::new(());
        let held = lock.lock().expect("not poisoned");
        let own = rustix::thread::gettid().as_raw_nonzero().to_string();
        thread::scope(|scope| {
            let (number, has_number) = mpsc::channel();
            let lock = &lock;
            scope.spawn(move || {
                let own = rustix::thread::gettid().as_raw_nonzero().to_string();
                number.send(own).expect("it is waited for");
                let _waits = lock.lock();
            });
            let number = has_number.recv().expect("a number");
            let state = format!("/proc/self/task/{number}/stat");
            let sleeps = || fs::read_to_string(&state).is_ok_and(|text| text.contains(") S "));
            while !sleeps() {
                thread::yield_now();
            }
            let (before, busy) = (Threads::seen(&number), Threads::seen(&own));
            for _ in 0..1000 {
                thread::sleep(Duration::from_micros(1));
            }
            let after = Threads::seen(&number);
            let at = |threads: &Threads| threads.counts.get(&number).cloned();
            assert_eq!(at(&after), at(&before));
            // A kernel without the statistics of its scheduler tells nothing.
            if !busy.counts.is_empty() {
                assert_ne!(Threads::seen(&own).counts, busy.counts);
            }
            drop(held);
        });
    }
}
