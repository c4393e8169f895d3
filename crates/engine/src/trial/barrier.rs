//! The one barrier of a trial: workers wait until all are ready, and again until the counters are
//! read. Unlike a plain barrier it can be abandoned when a worker could not be set up.
//!
//! Waiting for the end of the workers, by the thread that coordinates a trial; meanwhile another thread reads the
//! temperature of the drive.
//!
//! The coordinating thread wakes up for nothing else. So it stands still while the storage does not answer, which is how
//! silent storage is noticed.
//!
//! The barrier between the processes (ranks) that take part in the same trial.
//!
//! The life of one worker: set up, started with the others, carried out, torn down when no other thread waits for it.

use std::fs::File;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use iolab_host::counters;
use iolab_host::device::Thermometer;
use iolab_host::perf::EventGroup;
use iolab_workload::counters::{Counters, Hardware, NoHardware};
use iolab_workload::outcome::Effective;
use iolab_workload::series::TemperatureReading;
use iolab_workload::trial::{Descriptors, Rate};
use iolab_workload::{Error, Result};
use rustix::thread::UnshareFlags;

use super::{GroupRole, Job, threads};
use crate::backend::{Drive, Null, WorkerFiles, open};
use crate::buffer::{ArenaPart, Buffers};
use crate::list::{Feed, ListedRequests, ListedStarts, Schedule, Starts};
use crate::placement;
use crate::verify::signer::Signer;
use crate::worker::open_loop::{Open, sleep_exactly};
use crate::worker::outcome::{LatencyLog, Notes, is_timed};
use crate::worker::{
    Closed, Common, Log, NoLog, NotedRequests, Plain, Requests, Timing, Turns, Varied, Worker,
    WorkerOutcome,
};

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

/// The barrier; workers and coordinator share it by reference.
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
pub(super) struct Alone;

impl RankBarrier for Alone {}

/// One worker's life.
pub(super) fn work(
    job: Job<'_>,
    number: u32,
    barrier: &StartBarrier,
    memory: ArenaPart,
    ready: &Sender<Result<()>>,
) -> Option<WorkerOutcome> {
    let Job { spec, files, .. } = job;
    if spec.descriptors == Descriptors::Private {
        use_private_descriptors();
    }
    // The set-up common to all backends; the backend itself is chosen below, once per worker.
    let setup = || -> Result<(Option<Vec<File>>, Buffers)> {
        placement::settle(spec, number)?;
        let opened = files.map(|files| files.open(number)).transpose()?;
        let buffers = Buffers::in_arena(spec, number, memory)?;
        Ok((opened, buffers))
    };
    let run = Stage {
        job,
        number,
        barrier,
        ready,
    };
    let (opened, buffers) = match setup() {
        Ok(parts) => parts,
        Err(error) => return run.report(error),
    };
    let Some((opened, files)) = opened.zip(files) else {
        return run.run(Ok(Null::new(spec.depth)), buffers);
    };
    let part = files.part(number);
    let place = WorkerFiles {
        files: opened,
        slots: files.slots,
        range: part.range(),
        position: &files.position,
    };
    open(spec, place, buffers, &run)
}

/// Gives this thread a descriptor table of its own. The kernel then needs no atomic reference count around
/// each call, which a single-threaded program is spared too, and the limit of open files holds per worker.
fn use_private_descriptors() {
    // SAFETY: whatever this thread opens from here on it also closes (a worker's parts never leave their thread). Whatever
    // was open before stays open in both tables until this thread ends.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) };
    // If unsharing is forbidden, the shared table serves as well, only a little slower.
    let _ = unshared;
}

/// Everything that a worker needs except its backend.
struct Stage<'a> {
    job: Job<'a>,
    number: u32,
    barrier: &'a StartBarrier,
    ready: &'a Sender<Result<()>>,
}

/// Counters of a running worker.
struct Started<'a> {
    hardware: Option<std::result::Result<EventGroup, NoHardware>>,
    before: Option<Counters>,
    run_delay_ns: Option<u64>,
    running: Running<'a>,
}

impl Drive for Stage<'_> {
    type Outcome = Option<WorkerOutcome>;

    fn run<B: crate::request::Backend>(
        &self,
        backend: Result<B>,
        buffers: Buffers,
    ) -> Option<WorkerOutcome> {
        let backend = match backend {
            Ok(backend) => backend,
            Err(error) => return self.report(error),
        };
        // Each of the loops is compiled for itself, so that a choice made here costs nothing in any.
        let Job {
            spec, list, clock, ..
        } = self.job;
        if let Some(list) = list {
            // Nothing else holds the list during the trial.
            let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
            let feed = Feed::new(&mut *list);
            let starts = |_| ListedStarts::new(&feed, clock);
            let requests = ListedRequests(Rc::clone(&feed));
            return self.make(starts, requests, NoLog, backend, buffers);
        }
        let starts = |rate| Schedule::new(spec, rate, self.number, clock);
        let notes = spec.trace || spec.latency_over_time;
        if !(B::VARIED_ONLY || notes || Varied::are_asked(spec)) {
            let plain = Plain::new(spec, self.number);
            return self.make(starts, plain, NoLog, backend, buffers);
        }
        if spec.thinktime.is_some() {
            sleep_exactly();
        }
        let varied = Varied::new(spec, self.number, clock);
        if !notes {
            return self.make(starts, varied, NoLog, backend, buffers);
        }
        let noted = || NotedRequests::new(spec, self.number);
        let log = Notes {
            requests: spec.trace.then(noted),
            over_time: LatencyLog::new(spec, clock),
        };
        self.make(starts, varied, log, backend, buffers)
    }
}

impl Stage<'_> {
    /// Drives a worker with these requests: at a rate from these intended starts, otherwise in the closed loop.
    fn make<B: crate::request::Backend, S: Starts, R: Requests, L: Log>(
        &self,
        starts: impl FnOnce(Rate) -> S,
        requests: R,
        log: L,
        backend: B,
        buffers: Buffers,
    ) -> Option<WorkerOutcome> {
        let Job { spec, clock, .. } = self.job;
        match (spec.rate, spec.latency) {
            (Some(rate), _) => {
                sleep_exactly();
                let open = Open::new(starts(rate), spec, rate, clock, log);
                self.drive(open, requests, backend, buffers)
            }
            (None, true) => self.drive(Closed::<true, _>(log), requests, backend, buffers),
            (None, false) => self.drive(Closed::<false, _>(log), requests, backend, buffers),
        }
    }

    fn common(&self, timed: bool, effective: Effective, mut buffers: Buffers) -> Common<'_> {
        let Job {
            spec,
            identity,
            clock,
            stop,
            ..
        } = self.job;
        let pieces = buffers.pieces();
        let signer = spec
            .verify
            .then(|| Signer::new(spec, self.number, identity, &mut buffers));
        let begun = WorkerOutcome {
            pieces,
            ..WorkerOutcome::begun(spec, timed, clock, effective)
        };
        let mut common = Common::new(spec, self.number, begun, buffers, clock, stop);
        common.signer = signer.map(Box::new);
        common
    }

    fn drive<'w, B: crate::request::Backend, T: Timing, R: Requests>(
        &'w self,
        timing: T,
        requests: R,
        backend: B,
        buffers: Buffers,
    ) -> Option<WorkerOutcome>
    where
        Worker<'w, B, T, R>: Turns,
    {
        debug_assert_eq!(T::TIMED, is_timed(self.job.spec));
        let worker = Worker {
            common: self.common(T::TIMED, backend.effective(), buffers),
            backend,
            timing,
            requests,
        };
        let started = self.start()?;
        let (mut outcome, remains) = worker.run();
        self.end(started, &mut outcome);
        drop(remains);
        Some(outcome)
    }

    /// Waits for the start with the others, and begins to count; `None` if the trial is not carried out.
    #[inline(never)]
    fn start(&self) -> Option<Started<'_>> {
        let Job { spec, side, .. } = self.job;
        let hardware = spec.hardware_counters.then(EventGroup::hardware);
        let before = (side != GroupRole::None).then(counters::of_this_thread);
        let run_delay_ns = counters::run_delay_of_this_thread_ns();
        self.ready.send(Ok(())).ok()?;
        let running = self.barrier.wait_for_start(side != GroupRole::Follows)?;
        if let Some(Ok(group)) = &hardware {
            group.start();
        }
        Some(Started {
            hardware,
            before,
            run_delay_ns,
            running,
        })
    }

    /// Ends the counting, and reports this worker as done.
    #[inline(never)]
    fn end(&self, started: Started<'_>, outcome: &mut WorkerOutcome) {
        if let Some(Ok(group)) = &started.hardware {
            group.stop();
        }
        let run_delay = counters::run_delay_of_this_thread_ns().zip(started.run_delay_ns);
        outcome.account.run_delay_ns = run_delay.map(|(now, then)| now.saturating_sub(then));
        self.barrier.finish(started.running);
        if let Some(before) = started.before {
            outcome.account.counters = counters::of_this_thread().since(&before);
        }
        // Nothing waits for this worker any more.
        outcome.account.counters.hardware = match &started.hardware {
            None => Hardware::default(),
            Some(Err(missing)) => Hardware::Missing(*missing),
            Some(Ok(group)) => {
                if group.is_user_only() {
                    let limited = "hardware events of user mode only (perf_event_paranoid)";
                    outcome.account.effective.add_note(limited);
                }
                group.events()
            }
        };
    }

    fn report(&self, error: Error) -> Option<WorkerOutcome> {
        // The coordinator waits for this message; when it is gone nothing receives it.
        let _ = self.ready.send(Err(error));
        None
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
