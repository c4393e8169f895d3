//! The end of the workers, which the thread that coordinates a trial waits for; meanwhile others read the temperature of the drive, and
//! pass an interrupt on.
//!
//! The thread that coordinates wakes up for nothing else: it stands still while the storage does not answer, by which that is noticed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use iolab_host::thermometer::Thermometer;
use iolab_workload::series::TemperatureReading;
use iolab_workload::{Error, Result};

use super::{GroupRole, Job, threads};
use crate::start_barrier::StartBarrier;

/// How often it is looked whether the user has interrupted a trial that one of its groups ends.
const LOOK: Duration = Duration::from_millis(50);

/// Time between two readings: sensors of drives have a new value about once a second.
const EVERY: Duration = Duration::from_secs(1);

/// The name of the thread that reads.
const NAME: &str = "thermometer";

/// The name of the thread that passes an interrupt on.
const RELAY_NAME: &str = "interrupt";

/// Passes an interrupt on to the workers of a trial that one of its groups ends, until it is dropped: in their loop they look at one flag
/// alone, and the one of the user is another.
pub(super) struct Relay {
    _over: Sender<()>,
}

impl Relay {
    /// Raises `halt` once `stop` is; `None` where workers look at `stop` themselves.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        jobs: &[Job<'_>],
        (stop, halt): (&'scope AtomicBool, &'scope AtomicBool),
    ) -> Result<Option<Self>> {
        if jobs.iter().all(|job| job.side != GroupRole::Ends) {
            return Ok(None);
        }
        let is_raised = || stop.load(Ordering::Relaxed);
        Self::once(is_raised, scope, halt).map(Some)
    }

    fn once<'scope>(
        is_raised: impl Fn() -> bool + Send + 'scope,
        scope: &'scope Scope<'scope, '_>,
        halt: &'scope AtomicBool,
    ) -> Result<Self> {
        let (over, is_over) = mpsc::channel::<()>();
        let look = move || {
            // A signal sets the flag, and wakes no thread.
            while !is_raised() {
                if is_over.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
            halt.store(true, Ordering::Relaxed);
        };
        let thread = thread::Builder::new().name(RELAY_NAME.to_owned());
        let started = thread.spawn_scoped(scope, look);
        started.map_err(|error| {
            Error::usage(format!("a thread cannot be started: {error}"))
                .hint("raise the limit of processes (ulimit -u)")
        })?;
        Ok(Self { _over: over })
    }
}

/// Waits until all workers are done, and raises `halt` for those that end with others.
pub(super) fn wait_for_end(jobs: &[Job<'_>], barrier: &StartBarrier, halt: &AtomicBool) {
    let all = threads(jobs, |_| true);
    let leading = threads(jobs, |job| job.side != GroupRole::Follows);
    if jobs.iter().any(|job| job.side == GroupRole::Ends) {
        barrier.wait_for_ending_or_leading(leading);
        halt.store(true, Ordering::Relaxed);
    } else if leading < all {
        barrier.wait_for_leading(leading);
        halt.store(true, Ordering::Relaxed);
    }
    barrier.wait_for_all(all);
}

/// What is read in a trial, by a thread of its own. Nothing waits for it, as a sensor may not answer either.
pub(super) struct Temperatures {
    readings: Receiver<TemperatureReading>,
    _over: Sender<()>,
}

impl Temperatures {
    /// Of a trial that begins now; `None` without a sensor, and where the thread cannot be started.
    pub(super) fn of(thermometer: Thermometer) -> Option<Self> {
        let has_sensors = thermometer.has_sensors();
        has_sensors.then(|| Self::read_by(move || thermometer.read(), EVERY))?
    }

    /// Those that `read` returns, thousandths of a degree Celsius.
    fn read_by(read: impl Fn() -> Option<u64> + Send + 'static, every: Duration) -> Option<Self> {
        let (reading, readings) = mpsc::channel();
        let (over, is_over) = mpsc::channel::<()>();
        let began = Instant::now();
        let look = move || {
            while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let at = began.elapsed();
                let Some(millidegrees) = read() else {
                    continue;
                };
                let read = TemperatureReading {
                    at_ns: u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
                    millidegrees,
                };
                if reading.send(read).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(NAME.to_owned());
        thread.spawn(look).ok()?;
        Some(Self {
            readings,
            _over: over,
        })
    }

    /// All readings up to now, in the order of time.
    pub(super) fn into_readings(self) -> Vec<TemperatureReading> {
        self.readings.try_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;

    use iolab_host::clock::Clock;
    use iolab_workload::trial::TrialSpec;

    use super::*;

    const STEP: Duration = Duration::from_millis(1);

    /// A watch over the storage takes a thread that wakes up for one that goes on.
    #[test]
    fn the_thread_that_coordinates_does_not_wake_up_before_a_group_ends_the_trial() {
        let (spec, clock) = (TrialSpec::default(), Clock::of_rate(1.0));
        let (stop, halt) = (AtomicBool::new(false), AtomicBool::new(false));
        let jobs = [Job {
            spec: &spec,
            files: None,
            clock: &clock,
            stop: &halt,
            identity: 0,
            side: GroupRole::Ends,
            flow: None,
        }];
        let barrier = StartBarrier::new();
        thread::scope(|scope| {
            let (looked, looks) = mpsc::channel();
            let raised = &stop;
            let is_raised = move || looked.send(()).is_err() || raised.load(Ordering::Relaxed);
            let relay = Relay::once(is_raised, scope, &halt).expect("a thread");
            let (started, has_started) = mpsc::channel();
            let (jobs, barrier, halt) = (&jobs, &barrier, &halt);
            let worker = scope.spawn(move || {
                let running = barrier.wait_for_start(true, true).expect("it is opened");
                started.send(()).expect("it is waited for");
                while !halt.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                barrier.finish(running);
            });
            barrier.open();
            // From here on nobody else takes the lock of the barrier, on which the coordinator would sleep.
            has_started.recv().expect("it starts");
            let (number, has_number) = mpsc::channel();
            let coordinator = scope.spawn(move || {
                let own = rustix::thread::gettid().as_raw_nonzero();
                number.send(own).expect("it is waited for");
                wait_for_end(jobs, barrier, halt);
            });
            let number = has_number.recv().expect("a number");
            let of_task = |file: &str| {
                let path = format!("/proc/self/task/{number}/{file}");
                read_to_string(path).expect("a thread")
            };
            while !of_task("stat").contains(") S ") {
                thread::yield_now();
            }
            let slept = || {
                let status = of_task("status");
                let mut lines = status.lines();
                let times = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
                let times: u64 = times
                    .expect("it is counted")
                    .trim()
                    .parse()
                    .expect("a number");
                times
            };
            let before = slept();
            looks.iter().take(4).for_each(drop);
            // The kernel says that a thread sleeps a moment before it counts that.
            let times = slept() - before;
            assert!(times <= 1, "it fell asleep again {times} times");
            stop.store(true, Ordering::Relaxed);
            coordinator.join().expect("it has ended");
            drop(relay);
            barrier.release();
            worker.join().expect("it has ended");
        });
    }

    #[test]
    fn a_sensor_is_read_until_the_trial_is_over() {
        let (told, tells) = mpsc::channel();
        let read = move || {
            told.send(()).ok()?;
            Some(41_000)
        };
        let temperatures = Temperatures::read_by(read, STEP).expect("a thread");
        for _ in 0..3 {
            tells.recv().expect("a reading");
        }
        // Two were sent before the third one was begun.
        let readings = temperatures.into_readings();
        assert!(readings.len() >= 2, "{readings:?}");
        assert!(readings.iter().all(|read| read.millidegrees == 41_000));
        assert!(readings.is_sorted_by(|a, b| a.at_ns < b.at_ns));
        // Its end drops what it reads with.
        while tells.recv().is_ok() {}
    }

    #[test]
    fn a_sensor_that_does_not_answer_is_not_waited_for() {
        let (told, tells) = mpsc::channel();
        let (answer, answers) = mpsc::channel::<u64>();
        let read = move || {
            told.send(()).ok()?;
            answers.recv().ok()
        };
        let temperatures = Temperatures::read_by(read, STEP).expect("a thread");
        tells.recv().expect("a reading");
        assert_eq!(temperatures.into_readings(), Vec::new());
        answer.send(41_000).expect("it is waited for");
        while tells.recv().is_ok() {}
    }
}
