//! The end of the workers, which the thread that coordinates a trial waits for; meanwhile it reads the temperature of the drive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iolab_host::thermometer::Thermometer;
use iolab_workload::series::TemperatureReading;

use super::{GroupRole, Job, threads};
use crate::start_barrier::StartBarrier;

/// How often it is looked whether the user has interrupted a trial that one of its groups ends.
const LOOK: Duration = Duration::from_millis(50);

/// Time between two readings: sensors of drives have a new value about once a second.
const EVERY: Duration = Duration::from_secs(1);

/// Waits until all workers are done, and raises `halt` for those that end with others; reads temperatures meanwhile.
pub(super) fn wait_for_end(
    jobs: &[Job<'_>],
    barrier: &StartBarrier,
    (stop, halt): (&AtomicBool, &AtomicBool),
    temperatures: &mut Temperatures,
) {
    let all = threads(jobs, |_| true);
    let leading = threads(jobs, |job| job.side != GroupRole::Follows);
    if jobs.iter().any(|job| job.side == GroupRole::Ends) {
        // Workers of such a trial look at one flag alone, so that the other is passed on here.
        while !stop.load(Ordering::Relaxed) && !barrier.has_ended(leading, LOOK) {
            temperatures.look();
        }
        halt.store(true, Ordering::Relaxed);
    } else if leading < all {
        while !barrier.have_leading_finished(leading, temperatures.every()) {
            temperatures.look();
        }
        halt.store(true, Ordering::Relaxed);
    }
    while !barrier.have_finished(all, temperatures.every()) {
        temperatures.look();
    }
}

/// What is read in a trial.
pub(super) struct Temperatures {
    /// `None` where nothing is read.
    thermometer: Option<Thermometer>,
    began: Instant,
    last: Duration,
    readings: Vec<TemperatureReading>,
}

impl Temperatures {
    /// Of a trial that begins now; reads nothing without a sensor.
    pub(super) fn new(thermometer: Option<Thermometer>) -> Self {
        Self {
            thermometer: thermometer.filter(Thermometer::has_sensors),
            began: Instant::now(),
            last: Duration::ZERO,
            readings: Vec::new(),
        }
    }

    /// How long to wait for the workers until the next look; `None`: until their end.
    pub(super) fn every(&self) -> Option<Duration> {
        self.thermometer.as_ref().map(|_| EVERY)
    }

    /// Reads the sensors, where the last reading is long enough ago.
    pub(super) fn look(&mut self) {
        let Some(thermometer) = &self.thermometer else {
            return;
        };
        let now = self.began.elapsed();
        if now.saturating_sub(self.last) < EVERY {
            return;
        }
        self.last = now;
        if let Some(millidegrees) = thermometer.read() {
            self.readings.push(TemperatureReading {
                at_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
                millidegrees,
            });
        }
    }

    /// All readings, in the order of time.
    pub(super) fn into_readings(self) -> Vec<TemperatureReading> {
        self.readings
    }
}
