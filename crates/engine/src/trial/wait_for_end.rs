//! Waiting for the end of the workers, by the thread that coordinates a trial; meanwhile another thread reads the
//! temperature of the drive.
//!
//! The coordinating thread wakes up for nothing else. So it stands still while the storage does not answer, which is how
//! silent storage is noticed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use iolab_host::thermometer::Thermometer;
use iolab_workload::series::TemperatureReading;

use super::{GroupRole, Job, threads};
use crate::start_barrier::StartBarrier;

/// Time between two readings: sensors of drives have a new value about once a second.
const EVERY: Duration = Duration::from_secs(1);

/// The name of the thread that reads.
const NAME: &str = "thermometer";

/// Waits until all workers are done, and raises `halt` for the workers that end with others.
pub(super) fn wait_for_end(jobs: &[Job<'_>], barrier: &StartBarrier, halt: &AtomicBool) {
    let all = threads(jobs, |_| true);
    let leading = threads(jobs, |job| job.side != GroupRole::Follows);
    if leading < all {
        barrier.wait_for_leading(leading);
        halt.store(true, Ordering::Relaxed);
    }
    barrier.wait_for_all(all);
}

/// Temperatures read during a trial by a thread of their own. Nothing waits for that thread, as a sensor may not answer.
pub(super) struct Temperatures {
    readings: Receiver<TemperatureReading>,
    _over: Sender<()>,
}

impl Temperatures {
    /// Starts reading at the start of a trial; `None` without a sensor, or if the thread cannot be started.
    pub(super) fn of(thermometer: Thermometer) -> Option<Self> {
        let has_sensors = thermometer.has_sensors();
        has_sensors.then(|| Self::read_by(move || thermometer.read(), EVERY))?
    }

    /// Readings of `read`, thousandths of a degree Celsius.
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
    use super::*;

    const STEP: Duration = Duration::from_millis(1);

    #[test]
    fn reads_a_sensor_until_the_trial_ends() {
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
    fn does_not_wait_for_a_silent_sensor() {
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
