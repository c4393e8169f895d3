//! One trial: prepares cache and workers, starts them together, merges what they did.

mod files;
mod groups;
mod meeting;
mod merge;

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::thread::UnshareFlags;

use crate::arena::{self, Arena, Pieces};
use crate::backend::null::Null;
use crate::backend::trim;
use crate::backend::{Drive, Place, open};
use crate::buffer::Buffers;
use crate::flags;
use crate::placement;
use crate::start_barrier::StartBarrier;
use crate::verify::{self, Reading, Signed, Signer};
use crate::worker::open::{Open, sleep_exactly};
use crate::worker::rest::pause;
use crate::worker::{Closed, Plain, Requests, Run, Timing, Varied, Worker, WorkerOutcome};
use files::Files;
pub use files::lent;
pub use groups::run_groups;
pub(crate) use groups::together;
use iolab_observe::clock::Clock;
use iolab_observe::counters;
use iolab_observe::observation::Observation;
use iolab_observe::page_cache::{self, make_durable};
use iolab_observe::perf::Group;
use iolab_spec::counters::{Counters, Hardware, NoHardware};
use iolab_spec::outcome::{Ended, Failure, Outcome};
use iolab_spec::region::Region;
use iolab_spec::trial::{Backend, CacheState, Descriptors, Layout, Limit, SyncPolicy, TrialSpec};
use iolab_spec::verify::FaultyData;
use iolab_spec::{Error, Result};
use iolab_target::memory_limits;
use iolab_target::{Target, TargetKind};
use meeting::Alone;
pub use meeting::Meeting;
pub(crate) use merge::{merge, sum};

/// Requests of the null trial that shows iolab's own cost.
const FLOOR_REQUESTS: u64 = 1_000_000;

/// Carries one trial out on `target`. Raising `stop` ends it early, with what was done until then.
///
/// A request that fails is no error of this function: it is counted in the outcome, which then
/// says [`Ended::Failed`].
///
/// # Errors
/// When the settings do not fit the target, or the trial cannot be set up. Nothing was measured then.
pub fn run(spec: &TrialSpec, target: &Target, clock: &Clock, stop: &AtomicBool) -> Result<Outcome> {
    run_with(spec, target, clock, stop, &mut Alone)
}

/// As [`run`], together with the processes that `meeting` stands for.
///
/// # Errors
/// As [`run`], and those of `meeting`.
pub fn run_with(
    spec: &TrialSpec,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
    meeting: &mut dyn Meeting,
) -> Result<Outcome> {
    let side = Side::new(spec, target, stop)?;
    side.prepare()?;
    let mut carried = carry_out(&[side.job(clock)], stop, meeting)?;
    let workers = carried.workers.pop().unwrap_or_default();
    meeting.worked(workers.iter().map(|own| (own.start, own.end)).collect());
    let signed = signed(&workers);
    let mut outcome = merge(workers, clock, carried.seen, carried.drift_ppm);
    side.settle(&mut outcome, &signed, stop)?;
    Ok(outcome)
}

/// One group of workers with the files that it uses.
struct Side<'a> {
    spec: &'a TrialSpec,
    /// `None` for the null backend.
    files: Option<Files<'a>>,
    stop: &'a AtomicBool,
    /// What verifiable blocks know the trial by.
    identity: u64,
}

impl<'a> Side<'a> {
    fn new(spec: &'a TrialSpec, target: &'a Target, stop: &'a AtomicBool) -> Result<Self> {
        check_against(spec, target)?;
        let files = match spec.backend {
            Backend::Null => None,
            _ => Some(Files::new(spec, target)?),
        };
        Ok(Self {
            spec,
            files,
            stop,
            identity: verify::identity(spec.seed),
        })
    }

    fn parts(&self) -> &[files::TargetRange<'a>] {
        self.files.as_ref().map_or(&[], Files::parts)
    }

    /// Brings the page cache into the state asked for.
    fn prepare(&self) -> Result<()> {
        for part in self.parts() {
            page_cache::prepare(self.spec, part.target(), part.range(), self.stop)?;
        }
        Ok(())
    }

    /// What its workers are carried out with.
    fn job<'b>(&'b self, clock: &'b Clock) -> Job<'b> {
        Job {
            spec: self.spec,
            files: self.files.as_ref(),
            clock,
            stop: self.stop,
            identity: self.identity,
            side: Beside::None,
        }
    }

    /// What is left to be done after the timed span: names failures, writes out what nobody asked to be made durable, and
    /// reads back.
    fn settle(&self, outcome: &mut Outcome, signed: &[Signed], stop: &AtomicBool) -> Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        if self.spec.backend == Backend::Mmap {
            name_cut(outcome, files.parts().iter().map(|part| part.target()));
        }
        if owes_sync(self.spec, outcome) {
            let parts = files.parts().iter();
            pay_sync(parts.map(|part| (part.target(), part.range())), outcome);
        }
        if outcome.trims.requests > 0 && matches!(outcome.ended, Ended::Done | Ended::Time) {
            // Later trials find a file without holes, as earlier ones did.
            for part in files.parts() {
                let (target, range) = (part.target(), part.range());
                target.refill(range, self.spec.seed, stop)?;
            }
        }
        if self.spec.verify && matches!(outcome.ended, Ended::Done | Ended::Time) {
            let target = files.part(0).target();
            match verify::read_back(self.spec, target, self.identity, signed, stop)? {
                Reading::Done(verified, first) => {
                    outcome.verified = Some(verified);
                    if let Some(first) = first {
                        fail(outcome, Failure::Data(FaultyData { verified, first }));
                    }
                }
                Reading::Failed(request) => fail(outcome, Failure::Request(request)),
            }
        }
        Ok(())
    }
}

/// What one group of workers is carried out with.
#[derive(Clone, Copy)]
struct Job<'a> {
    spec: &'a TrialSpec,
    files: Option<&'a Files<'a>>,
    clock: &'a Clock,
    stop: &'a AtomicBool,
    /// What verifiable blocks know the trial by.
    identity: u64,
    side: Beside,
}

/// What other groups a group of workers has beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// None: all workers of the trial are its own.
    None,
    /// Some, and it ends by itself.
    Leads,
    /// Some, and it ends when those that lead do.
    Follows,
}

fn signed(workers: &[WorkerOutcome]) -> Vec<Signed> {
    workers.iter().filter_map(|worker| worker.signed).collect()
}

/// A page of a mapping beyond the end of its file faults like one that cannot be read. Where a file has become too short
/// for the request that failed, its end is the reason, as read(2) and write(2) tell it.
fn name_cut<'a>(outcome: &mut Outcome, mut targets: impl Iterator<Item = &'a Target>) {
    let Some(Failure::Request(request)) = &mut outcome.failure else {
        return;
    };
    let end = request.offset.saturating_add(request.length);
    let is_cut = |target: &Target| {
        let stat = rustix::fs::fstat(target.file());
        stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && u64::try_from(stat.st_size).is_ok_and(|size| size < end)
        })
    };
    if request.errno == rustix::io::Errno::IO.raw_os_error() && targets.any(is_cut) {
        request.errno = 0;
    }
}

/// Makes a trial a failed one that had come to its end.
fn fail(outcome: &mut Outcome, failure: Failure) {
    outcome.errors += 1;
    outcome.ended = Ended::Failed;
    outcome.failure = Some(failure);
}

/// Writes out what a trial has left in the page cache, where that was not requested, and notes how long it took. The next
/// trial that writes would have to wait for it anyway. Data that cannot be written out makes the trial a failed one.
pub fn flush_dirty_pages(spec: &TrialSpec, files: &[(&Target, Range<u64>)], outcome: &mut Outcome) {
    if owes_sync(spec, outcome) {
        pay_sync(files.iter().cloned(), outcome);
    }
}

/// Whether a trial may have left data in the page cache that no sync of its own has made durable.
fn owes_sync(spec: &TrialSpec, outcome: &Outcome) -> bool {
    let unsynced = match spec.sync {
        SyncPolicy::None => true,
        // The writes of a worker since its last sync.
        _ if spec.sync_every > 1 => {
            let synced = outcome.syncs.saturating_mul(u64::from(spec.sync_every));
            synced < outcome.writes.requests
        }
        _ => false,
    };
    spec.cache != CacheState::Direct
        && unsynced
        && outcome.writes.bytes > 0
        && matches!(outcome.ended, Ended::Done | Ended::Time)
}

fn pay_sync<'a>(parts: impl Iterator<Item = (&'a Target, Range<u64>)>, outcome: &mut Outcome) {
    let began = Instant::now();
    for (target, range) in parts {
        if let Err(request) = make_durable(target, range) {
            return fail(outcome, Failure::Request(request));
        }
    }
    outcome.region.owed_sync_ns = Some(began.elapsed().as_nanos() as u64);
}

/// Checks a spec against a target, without touching it.
///
/// # Errors
/// Of kind usage: what does not fit, and what would.
pub fn check_against(spec: &TrialSpec, target: &Target) -> Result<()> {
    spec.check()?;
    placement::check(spec)?;
    if spec.offset + spec.region > target.size() {
        return Err(Error::usage(format!(
            "the region ends at byte {}, beyond the target's {} bytes",
            spec.offset + spec.region,
            target.size()
        ))
        .hint("choose a smaller region with --size"));
    }
    let beside = spec.layout == Layout::Private || spec.starts_fresh();
    if beside && spec.backend != Backend::Null && target.kind() != TargetKind::Scratch {
        return Err(Error::usage(format!(
            "{} is a single file or device: layout=private, fresh=true, allocate=append and allocate=preallocated need more files",
            target.path().display()
        ))
        .hint("give a directory, where scratch files are made; or set layout=shared, fresh=false and allocate=recycled"));
    }
    if spec.backend != Backend::Null {
        trim::check(spec, target)?;
        flags::check(spec, target)?;
    }
    if spec.cache == CacheState::Direct && spec.backend != Backend::Null {
        let alignment = target.direct_alignment()?.offset.max(1);
        for (name, value) in [
            ("bs", spec.bs),
            ("offset", spec.offset),
            ("skip", spec.skip),
        ] {
            if value % alignment != 0 {
                return Err(Error::usage(format!(
                    "{name} of {value} bytes is not a multiple of {alignment}, the alignment of direct I/O on this target"
                ))
                .hint(format!("choose a multiple of {alignment}, or measure through the page cache with --buffered")));
            }
        }
    }
    Ok(())
}

/// Memory that the buffers of a trial take, bytes.
pub fn buffer_bytes(spec: &TrialSpec) -> u64 {
    arena::bytes_of(spec)
}

/// Memory that so many workers take besides their buffers, and the process besides its workers; bytes.
pub fn own_bytes(workers: u32) -> u64 {
    memory_limits::resident(workers)
}

/// What one request costs iolab itself, ns: the null backend on one thread, with or without recording its latency.
pub fn floor_ns(clock: &Clock, latency: bool) -> f64 {
    let spec = TrialSpec {
        backend: Backend::Null,
        latency,
        limit: Limit {
            requests: Some(FLOOR_REQUESTS),
            ..Limit::default()
        },
        ..TrialSpec::default()
    };
    let stop = AtomicBool::new(false);
    let job = Job {
        spec: &spec,
        files: None,
        clock,
        stop: &stop,
        identity: 0,
        side: Beside::None,
    };
    carry_out(&[job], &stop, &mut Alone).map_or(f64::NAN, |mut carried| {
        let workers = carried.workers.pop().unwrap_or_default();
        let outcome = merge(workers, clock, carried.seen, carried.drift_ppm);
        outcome.elapsed_ns as f64 / FLOOR_REQUESTS as f64
    })
}

/// What the workers of a trial did.
struct Carried {
    /// Of each job, in their order.
    workers: Vec<Vec<WorkerOutcome>>,
    seen: (Counters, Region),
    drift_ppm: f64,
}

/// Carries a trial out: the workers of all jobs start at once. `halt` is raised when those jobs are over that lead.
fn carry_out(jobs: &[Job<'_>], halt: &AtomicBool, meeting: &mut dyn Meeting) -> Result<Carried> {
    let Some(clock) = jobs.first().map(|job| job.clock) else {
        return Err(Error::failed("a trial without workers"));
    };
    let threads = |jobs: &mut dyn Iterator<Item = &Job<'_>>| jobs.map(|job| job.spec.threads).sum();
    let all: u32 = threads(&mut jobs.iter());
    let leading: u32 = threads(&mut jobs.iter().filter(|job| job.side != Beside::Follows));
    memory_limits::check(all)?;
    let barrier = StartBarrier::new();
    let arenas: Vec<Option<Arc<Arena>>> = jobs
        .iter()
        .map(|Job { spec, .. }| match arena::is_contiguous(spec) {
            true => Arena::new(spec, spec.threads).map(|arena| Some(Arc::new(arena))),
            false => Ok(None),
        })
        .collect::<Result<_>>()?;
    let mut observation = Observation::new(watched(jobs).into_iter());
    thread::scope(|scope| {
        let (ready, setups) = mpsc::channel();
        let mut workers = Vec::with_capacity(all as usize);
        let mut setup = Ok(());
        let numbers = jobs
            .iter()
            .enumerate()
            .zip(&arenas)
            .flat_map(|(job, arena)| {
                (0..job.1.spec.threads).map(move |number| (job, arena, number))
            });
        for ((place, job), arena, number) in numbers {
            let (ready, barrier, arena) = (ready.clone(), &barrier, arena.clone());
            let body = move || work(*job, number, barrier, arena, &ready);
            match thread::Builder::new()
                .name(format!("iolab-{}", workers.len()))
                .spawn_scoped(scope, body)
            {
                Ok(worker) => workers.push((place, worker)),
                Err(error) => {
                    setup = Err(Error::usage(format!(
                        "thread {} cannot be started: {error}",
                        workers.len() + 1
                    ))
                    .hint("use fewer threads, or raise the limit of processes (ulimit -u)"));
                    break;
                }
            }
        }
        drop(ready);
        for _ in 0..workers.len() {
            let outcome = setups
                .recv()
                .unwrap_or_else(|_| Err(Error::failed("a worker ended during set-up")));
            setup = setup.and(outcome);
        }
        setup = setup.and_then(|()| meeting.ready());
        if let Err(error) = setup {
            barrier.abandon();
            return Err(error);
        }
        let anchor = clock.anchor();
        let before = observation.before();
        if let Err(error) = meeting.start() {
            barrier.abandon();
            return Err(error);
        }
        barrier.open();
        if leading < all {
            barrier.wait_leading(leading);
            halt.store(true, Ordering::Relaxed);
        }
        barrier.wait_finished(all);
        let ended = meeting.ended();
        let seen = observation.after(&before);
        let drift_ppm = clock.drift_ppm(anchor);
        barrier.release();
        let mut outcomes: Vec<Vec<WorkerOutcome>> = jobs.iter().map(|_| Vec::new()).collect();
        for (place, worker) in workers {
            outcomes[place].extend(worker.join().ok().flatten());
        }
        ended?;
        Ok(Carried {
            workers: outcomes,
            seen,
            drift_ppm,
        })
    })
}

/// The ranges of files that are looked at around the timed span. Groups may use the same bytes, which are looked at once.
fn watched<'a>(jobs: &[Job<'a>]) -> Vec<(&'a Target, u64, u64)> {
    let mut ranges: Vec<(&Target, u64, u64)> = Vec::new();
    for part in jobs
        .iter()
        .flat_map(|job| job.files.map_or(&[][..], Files::parts))
    {
        let target = part.target();
        let end = part.offset + part.length;
        let touches = |(other, offset, length): &&mut (&Target, u64, u64)| {
            std::ptr::eq(*other, target) && part.offset <= *offset + *length && *offset <= end
        };
        match ranges.iter_mut().find(touches) {
            Some((_, offset, length)) => {
                let end = end.max(*offset + *length);
                *offset = part.offset.min(*offset);
                *length = end - *offset;
            }
            None => ranges.push((target, part.offset, part.length)),
        }
    }
    ranges
}

/// One worker's life.
fn work(
    job: Job<'_>,
    number: u32,
    barrier: &StartBarrier,
    arena: Option<Arc<Arena>>,
    ready: &mpsc::Sender<Result<()>>,
) -> Option<WorkerOutcome> {
    let Job { spec, files, .. } = job;
    if spec.descriptors == Descriptors::Private {
        use_private_descriptors();
    }
    // What is common to all backends; the backend itself is chosen below, once per worker.
    let setup = || -> Result<(Option<(File, &Files<'_>)>, Buffers)> {
        placement::settle(spec, number)?;
        let opened = match files {
            Some(files) => Some((files.open(number)?, files)),
            None => None,
        };
        let buffers = match arena {
            Some(arena) => Buffers::in_arena(spec, number, arena, number)?,
            None => Buffers::new(spec, number)?,
        };
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
    let Some((file, files)) = opened else {
        return run.run(Ok(Null::new(spec.depth)), buffers);
    };
    let part = files.part(number);
    let place = Place {
        file,
        range: part.range(),
        position: &files.position,
    };
    open(spec, place, buffers, &run)
}

/// Gives this thread a descriptor table of its own. The kernel then needs no atomic reference count around
/// each call, which a single-threaded program is spared too, and the limit of open files holds per worker.
fn use_private_descriptors() {
    // SAFETY: what this thread opens from here on is also closed by it (a worker's parts never leave their
    // thread), and what was open before stays open in both tables until this thread ends.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) };
    // Where it is forbidden, the shared table serves as well, only a little slower.
    let _ = unshared;
}

/// What a worker needs besides its backend.
struct Stage<'a> {
    job: Job<'a>,
    number: u32,
    barrier: &'a StartBarrier,
    ready: &'a mpsc::Sender<Result<()>>,
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
        let spec = self.job.spec;
        match Varied::are_asked(spec) {
            false => self.make(Plain::new(spec, self.number), backend, buffers),
            true => {
                if spec.pauses() {
                    sleep_exactly();
                }
                let varied = Varied::new(spec, self.number, self.job.clock);
                self.make(varied, backend, buffers)
            }
        }
    }
}

impl Stage<'_> {
    fn make<B: crate::request::Backend, R: Requests>(
        &self,
        requests: R,
        backend: B,
        buffers: Buffers,
    ) -> Option<WorkerOutcome> {
        let pieces = buffers.pieces();
        let Job { spec, clock, .. } = self.job;
        match (spec.rate, spec.latency) {
            (Some(rate), _) => {
                sleep_exactly();
                let open = Open::new(spec, rate, self.number, clock);
                self.drive(self.worker((open, requests), backend, buffers), pieces)
            }
            (None, true) => {
                let closed = Closed::<true>;
                self.drive(self.worker((closed, requests), backend, buffers), pieces)
            }
            (None, false) => {
                let closed = Closed::<false>;
                self.drive(self.worker((closed, requests), backend, buffers), pieces)
            }
        }
    }

    fn worker<B: crate::request::Backend, T: Timing, R: Requests>(
        &self,
        loops: (T, R),
        backend: B,
        mut buffers: Buffers,
    ) -> Worker<'_, B, T, R> {
        let Job { spec, identity, .. } = self.job;
        let signer = spec
            .verify
            .then(|| Signer::new(spec, self.number, identity, &mut buffers));
        let clock = self.job.clock;
        Worker::new(
            spec,
            self.number,
            loops,
            backend,
            buffers,
            clock,
            self.job.stop,
        )
        .signed_by(signer)
        .led_by(clock.ticks(spec.start_delay.as_nanos() as u64))
    }

    fn drive(&self, worker: impl Run, pieces: Option<Pieces>) -> Option<WorkerOutcome> {
        let Job {
            spec, clock, side, ..
        } = self.job;
        let counting = spec.hardware_counters.then(Group::hardware);
        let before = (side != Beside::None).then(counters::of_this_thread);
        self.ready.send(Ok(())).ok()?;
        let running = self.barrier.wait_for_start(side != Beside::Follows)?;
        if !spec.start_delay.is_zero() {
            wait_out(spec.start_delay, clock, self.job.stop);
        }
        if let Some(Ok(group)) = &counting {
            group.start();
        }
        let (mut outcome, remains) = worker.run();
        if let Some(Ok(group)) = &counting {
            group.stop();
        }
        self.barrier.finish(running);
        if let Some(before) = before {
            outcome.thread = counters::of_this_thread().since(&before);
        }
        take_hardware(counting, &mut outcome);
        outcome.pieces = pieces;
        drop(remains);
        Some(outcome)
    }

    fn report(&self, error: Error) -> Option<WorkerOutcome> {
        // The coordinator waits for this message; when it is gone nothing receives it.
        let _ = self.ready.send(Err(error));
        None
    }
}

/// Lets a delay pass, unless the trial is to end.
fn wait_out(delay: Duration, clock: &Clock, stop: &AtomicBool) {
    let end = clock.now() + clock.ticks(delay.as_nanos() as u64);
    while clock.now() < end && !stop.load(Ordering::Relaxed) {
        pause(clock, end);
    }
}

/// Notes what the processor counted, once nothing waits for this worker any more.
fn take_hardware(
    counting: Option<std::result::Result<Group, NoHardware>>,
    outcome: &mut WorkerOutcome,
) {
    outcome.hardware = match &counting {
        None => Hardware::default(),
        Some(Err(missing)) => Hardware::Missing(*missing),
        Some(Ok(group)) => group.events(),
    };
    if counting.is_some_and(|group| group.is_ok_and(|group| group.is_user_only())) {
        let note = &mut outcome.effective.note;
        if !note.is_empty() {
            note.push_str("; ");
        }
        note.push_str("hardware events of user mode only (perf_event_paranoid)");
    }
}
