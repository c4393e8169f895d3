//! The barriers of a trial, between its workers and between the processes (ranks) that take part in it; waiting for the end of
//! the workers, while another thread reads the temperature of the drive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use iolab_host::device::Thermometer;
use iolab_workload::Result;
use iolab_workload::series::TemperatureReading;

use super::{GroupRole, Job, threads};

/// How far a trial has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Workers are being set up.
    Closed,
    /// The trial runs.
    Open,
    /// The trial will not run.
    Abandoned,
    /// The counters are read; workers may tear down.
    Released,
}

/// The one barrier of the workers: they wait until all are ready, and again until the counters are read. Unlike a plain barrier
/// it can be abandoned when a worker could not be set up. Workers and coordinator share it by reference.
#[derive(Debug)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    /// Wakes workers. A worker that finishes wakes none of the others: with many workers that would cost the square of
    /// their number.
    phase_changed: Condvar,
    /// Wakes the coordinator.
    worker_finished: Condvar,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Workers that have finished.
    finished: u32,
    /// Workers among them that end at their own limits, not together with others.
    leading: u32,
}

/// Counts its worker as finished when dropped, so that a panic cannot leave the coordinator waiting.
pub(crate) struct Running<'a> {
    barrier: &'a StartBarrier,
    leads: bool,
}

impl StartBarrier {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Closed,
                finished: 0,
                leading: 0,
            }),
            phase_changed: Condvar::new(),
            worker_finished: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Worker: waits for the start; `None` when the trial was abandoned. It `leads` if it ends by itself.
    pub(crate) fn wait_for_start(&self, leads: bool) -> Option<Running<'_>> {
        let phase = self.wait_for_phase(|phase| phase != Phase::Closed);
        (phase == Phase::Open).then_some(Running {
            barrier: self,
            leads,
        })
    }

    /// Worker: reports the end and waits until the counters have been read.
    pub(crate) fn finish(&self, running: Running<'_>) {
        drop(running);
        self.wait_for_phase(|phase| phase == Phase::Released);
    }

    /// Coordinator: starts all workers at once, sends them home, or lets them tear down.
    pub(crate) fn enter(&self, phase: Phase) {
        self.state().phase = phase;
        self.phase_changed.notify_all();
    }

    /// Worker: waits for a phase.
    fn wait_for_phase(&self, reached: impl Fn(Phase) -> bool) -> Phase {
        self.phase_changed
            .wait_while(self.state(), |state| !reached(state.phase))
            .unwrap_or_else(PoisonError::into_inner)
            .phase
    }

    /// Coordinator: waits until enough workers have finished.
    fn wait_until(&self, reached: impl Fn(&State) -> bool) {
        let _finished = self
            .worker_finished
            .wait_while(self.state(), |state| !reached(state))
            .unwrap_or_else(PoisonError::into_inner);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.barrier.state();
        state.finished += 1;
        state.leading += u32::from(self.leads);
        drop(state);
        self.barrier.worker_finished.notify_one();
    }
}

/// Time between two readings: sensors of drives have a new value about once a second.
const EVERY: Duration = Duration::from_secs(1);

/// Waits until all workers are done, and raises `halt` for the workers that end with others.
///
/// The coordinating thread wakes up for nothing else. So it stands still while the storage does not answer, which is how
/// silent storage is noticed.
pub(super) fn wait_for_end(jobs: &[Job<'_>], barrier: &StartBarrier, halt: &AtomicBool) {
    let all = threads(jobs, |_| true);
    let leading = threads(jobs, |job| job.side != GroupRole::Follows);
    if leading < all {
        barrier.wait_until(|state| state.leading >= leading);
        halt.store(true, Ordering::Relaxed);
    }
    barrier.wait_until(|state| state.finished >= all);
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
        let thread = thread::Builder::new().name("thermometer".to_owned());
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

/// A barrier that all ranks of a trial pass three times, and a moment that they agree on. Each method is called once per trial, in this
/// order, by the thread that coordinates it. A single process waits for none.
pub trait RankBarrier {
    /// Reports that own workers are set up. Returns when the workers of all processes are.
    ///
    /// # Errors
    /// When another process cannot take part: the trial is given up.
    fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reports that the page cache has been examined. Returns when the moment of the start is known, some time before it.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn announced(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reports that own counters are read. Returns at the moment of the start.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reports that own workers have ended and own usage is counted. Returns when this holds for all processes, so that
    /// counters of the host cover all of them.
    ///
    /// # Errors
    /// When another process is lost.
    fn ended(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reports when each own worker started and ended, in ticks of the trial's clock.
    fn worked(&mut self, _workers: Vec<(u64, u64)>) {}
}

/// Without other processes.
#[derive(Debug)]
pub struct Alone;

impl RankBarrier for Alone {}

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
