//! The life of one worker: set up, started with the others, carried out, torn down when no other thread waits for it.

use std::fs::File;
use std::rc::Rc;
use std::sync::PoisonError;
use std::sync::mpsc::Sender;

use iolab_host::counters;
use iolab_host::perf::EventGroup;
use iolab_workload::counters::{Counters, Hardware, NoHardware};
use iolab_workload::outcome::Effective;
use iolab_workload::trial::{Descriptors, Rate};
use iolab_workload::{Error, Result};
use rustix::thread::UnshareFlags;

use super::barrier::{Running, StartBarrier};
use super::{GroupRole, Job};
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
