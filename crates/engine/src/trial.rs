//! One trial: prepares cache and workers, starts them together, merges their results.

mod barrier;
mod files;
mod groups;
mod worker_thread;

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};

use rustix::fs::FileType;

pub use crate::backend::check_trims;
use crate::buffer::{self, Arena, ArenaPart, Registration};
use crate::list::RequestList;
use crate::request_tracer::{NotedJob, NotedRequests, TracedJobs, Tracing};
use crate::verify::signer::Signed;
use crate::verify::{self, Reading};
use crate::worker::{WorkerOutcome, outcome, request_log};
use crate::{backend, placement};
pub use barrier::{Alone, RankBarrier};
use barrier::{Phase, StartBarrier, Temperatures, wait_for_end};
use files::Files;
pub use files::{files_of, owes_sync, write_out};
use groups::run_side;
pub(crate) use groups::{check_list, merge, merge_groups, outcome_of_group};
pub use groups::{run_groups, run_list};
use iolab_host::clock::Clock;
use iolab_host::observation::Observation;
use iolab_host::tracing::{THREAD_NAMES, Tracer};
use iolab_host::{counters, observation};
use iolab_storage::{Target, TargetKind, procfs};
use iolab_workload::counters::Counters;
use iolab_workload::outcome::{Ended, Failure, Outcome};
use iolab_workload::region_state::{FaultyData, Region};
use iolab_workload::series::TemperatureReading;
use iolab_workload::trial::{Backend, CacheState, FileLayout, TrialLimit, TrialSpec};
use iolab_workload::{Error, Result, usage_errors};
use worker_thread::work;

/// Null trials that show iolab's own cost: the median of a few ignores interrupted ones.
const FLOOR_TRIALS: usize = 5;
/// Requests of a null trial.
const FLOOR_REQUESTS: u64 = 20_000;

/// Carries one trial out on `target`. Raising `stop` ends it early, with what was done until then.
///
/// A failed request is not an error of this function: the outcome counts it and says [`Ended::Failed`].
///
/// # Errors
/// When the settings do not fit the target, or the trial cannot be set up. Nothing was measured then.
pub fn run(spec: &TrialSpec, target: &Target, clock: &Clock, stop: &AtomicBool) -> Result<Outcome> {
    run_with(spec, target, clock, stop, &mut Alone, None)
}

/// [`run`] in step with the other processes that `meeting` connects to, in a program that can trace requests with `tracing`.
///
/// # Errors
/// As [`run`], and any error of `meeting`.
pub fn run_with(
    spec: &TrialSpec,
    target: &Target,
    clock: &Clock,
    stop: &AtomicBool,
    meeting: &mut dyn RankBarrier,
    tracing: Tracing,
) -> Result<Outcome> {
    let side = Side::new(spec, target, stop, tracing)?;
    run_side(&side, None, clock, meeting, tracing)
}

/// One group of workers with the files that it uses.
struct Side<'a> {
    spec: &'a TrialSpec,
    /// `None` for the null backend.
    files: Option<Files<'a>>,
    stop: &'a AtomicBool,
    /// Identity of the trial in verifiable blocks.
    identity: u64,
}

impl<'a> Side<'a> {
    fn new(
        spec: &'a TrialSpec,
        target: &'a Target,
        stop: &'a AtomicBool,
        tracing: Tracing,
    ) -> Result<Self> {
        check_against(spec, target, tracing)?;
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

    /// Brings the page cache into the requested state. `stop` is the user's flag: the flag that ends following workers is
    /// not raised before they start.
    fn prepare(&self, stop: &AtomicBool) -> Result<()> {
        for part in self.parts() {
            let warm = match self.spec.layout {
                FileLayout::Private => part.range(),
                FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => {
                    self.spec.written_range()
                }
            };
            observation::prepare(self.spec, part.target(), part.range(), warm, stop)?;
        }
        Ok(())
    }

    /// The settings and files that the workers of this group run with.
    fn job<'b>(&'b self, clock: &'b Clock) -> Job<'b> {
        Job {
            spec: self.spec,
            files: self.files.as_ref(),
            clock,
            stop: self.stop,
            identity: self.identity,
            side: GroupRole::None,
            list: None,
        }
    }

    /// Finishes a trial after the timed span: names failures, writes out data that no sync has made durable, and reads
    /// back.
    fn settle(&self, outcome: &mut Outcome, signed: &[Signed], stop: &AtomicBool) -> Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        if self.spec.backend == Backend::Mmap {
            name_cut(outcome, files.parts().iter().map(|part| part.target()));
        }
        files.place_failed(outcome);
        if self.spec.is_shifted() {
            // A later trial on this host does not find these pages in its cache, unless their writer runs on this host too.
            for part in files.parts() {
                observation::drop_pages(part.target(), self.spec.own_range());
            }
        }
        let parts = files.parts().iter();
        let parts: Vec<_> = parts.map(|part| (part.target(), part.range())).collect();
        write_out(self.spec, &parts, outcome);
        if outcome.operations.trim.requests > 0 && outcome.ended.is_whole() {
            // Later trials find a file without holes, as earlier ones did.
            for (target, range) in &parts {
                target.refill(range.clone(), self.spec.seed, stop)?;
            }
        }
        if self.spec.verify && outcome.ended.is_whole() {
            match verify::read_back(
                self.spec,
                files.part(0).target(),
                self.identity,
                signed,
                stop,
            )? {
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

/// Settings and files of one group of workers.
#[derive(Clone, Copy)]
struct Job<'a> {
    spec: &'a TrialSpec,
    files: Option<&'a Files<'a>>,
    clock: &'a Clock,
    stop: &'a AtomicBool,
    /// Identity of the trial in verifiable blocks.
    identity: u64,
    side: GroupRole,
    /// Requests of the only worker, in place of a pattern.
    list: Option<&'a Mutex<dyn RequestList>>,
}

impl<'a> Job<'a> {
    /// This job for a tracer of its requests.
    fn noted(&self) -> NotedJob<'a> {
        let files = self.files.map_or(&[][..], Files::parts).iter();
        NotedJob {
            spec: self.spec,
            files: files.map(|part| (part.target(), part.range())).collect(),
        }
    }
}

/// The group's role among several: whether there are others, and which groups end the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupRole {
    /// No other groups.
    None,
    /// Others, and this one ends at its own limits.
    Leads,
    /// Others, and this one ends when the leading ones have ended.
    Follows,
}

fn signed<'a>(workers: impl Iterator<Item = &'a WorkerOutcome>) -> Vec<Signed> {
    workers.filter_map(|worker| worker.signed).collect()
}

/// A page of a mapping beyond the end of its file faults like an unreadable one. If a file has become too short for the
/// failed request, its end is the reason, as read(2) and write(2) report it.
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

/// Marks a completed trial as failed.
fn fail(outcome: &mut Outcome, failure: Failure) {
    outcome.errors += 1;
    outcome.ended = Ended::Failed;
    outcome.failure = Some(failure);
}

/// Checks a spec against a target, without touching it, in a program that can trace requests with `tracing`.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting that does not fit, with one that would.
pub fn check_against(spec: &TrialSpec, target: &Target, tracing: Tracing) -> Result<()> {
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
    let beside = spec.layout == FileLayout::Private || spec.starts_fresh();
    if beside && spec.backend != Backend::Null && target.kind() != TargetKind::Scratch {
        return Err(Error::usage(format!(
            "{} is a single file or device: layout=private and allocate=fresh, append and preallocated need more files",
            target.named().display()
        ))
        .hint("give a directory, where scratch files are made; or set layout=shared and allocate=recycled"));
    }
    backend::check_mechanisms(spec)?;
    if spec.backend != Backend::Null {
        usage_errors! {
            spec.trace && tracing.is_none() => "trace=true needs a tracer of requests",
                "leave trace out";
        }
        if let Some(tracer) = tracing {
            (tracer.check)(spec, target)?;
        }
        if spec.trims() {
            check_trims(target)?;
        }
    }
    if spec.cache == CacheState::Direct && spec.backend != Backend::Null {
        check_alignment(spec, target.direct_alignment()?.offset)?;
    }
    Ok(())
}

/// Checks that requests of a trial with direct I/O lie at multiples of `alignment` bytes, and are that long.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the setting that is not, and what would fit.
pub fn check_alignment(spec: &TrialSpec, alignment: u64) -> Result<()> {
    let alignment = alignment.max(1);
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
    if let Some(bytes) = spec.unaligned_request(alignment) {
        return Err(Error::usage(format!(
            "bs_mix has requests of {bytes} bytes, not a multiple of {alignment}, the alignment of direct I/O on this target"
        ))
        .hint(format!("leave out sizes that are not multiples of {alignment}, or measure through the page cache with --buffered")));
    }
    Ok(())
}

/// Memory that the buffers of a trial take, bytes.
pub fn buffer_bytes(spec: &TrialSpec) -> u64 {
    buffer::bytes_of(spec)
}

/// Cost of one request in iolab itself, ns: the null backend on one thread, with or without recording latency. `None` if
/// such a trial cannot be set up.
pub fn floor_ns(clock: &Clock, latency: bool) -> Option<f64> {
    let spec = TrialSpec {
        backend: Backend::Null,
        latency,
        limit: TrialLimit {
            bytes: Some(FLOOR_REQUESTS * TrialSpec::default().bs),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let side = Side {
        spec: &spec,
        files: None,
        stop: &AtomicBool::new(false),
        identity: 0,
    };
    let time = || -> Result<f64> {
        let memory = TrialMemory::new(&[&spec])?;
        let carried = carry_out(&[side.job(clock)], side.stop, &mut Alone, &memory, None)?;
        Ok(carried.merged(clock).elapsed_ns as f64 / FLOOR_REQUESTS as f64)
    };
    let mut times: Vec<f64> = (0..FLOOR_TRIALS).filter_map(|_| time().ok()).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// The memory of the buffers of all workers of a trial.
struct TrialMemory {
    /// One arena of all workers of a group, or one of each.
    groups: Vec<Vec<Arc<Arena>>>,
    registration: Registration,
}

impl TrialMemory {
    /// Maps memory for a trial with these groups.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is none, or a limit of the process leaves too little.
    fn new(specs: &[&TrialSpec]) -> Result<Self> {
        let workers = specs.iter().map(|spec| spec.threads).sum();
        let logs = |spec: &&TrialSpec| outcome::latency_log_bytes(spec) + request_log::bytes(spec);
        let logs = specs.iter().map(logs).sum();
        procfs::check(workers, logs)?;
        let arenas = |spec: &&TrialSpec| {
            let (arenas, workers) = buffer::division(spec);
            let arenas = (0..arenas).map(|_| Arena::new(spec, workers).map(Arc::new));
            arenas.collect::<Result<_>>()
        };
        let groups = specs.iter().map(arenas).collect::<Result<_>>()?;
        // The threads and logs have to fit alongside the buffers.
        procfs::check(workers, logs)?;
        Ok(Self {
            groups,
            registration: Registration::default(),
        })
    }

    /// The place of a worker's buffers.
    fn of(&self, group: usize, worker: u32) -> ArenaPart {
        let (arena, before) = match &self.groups[group][..] {
            [all] => (all, worker),
            each => (&each[worker as usize], 0),
        };
        ArenaPart {
            arena: Arc::clone(arena),
            before,
            registration: self.registration.clone(),
        }
    }
}

/// Results of the workers of a trial.
struct Carried {
    /// Outcomes by job, in the order of the jobs.
    workers: Vec<Vec<WorkerOutcome>>,
    seen: (Counters, Region),
    /// Readings of the drives during the trial.
    temperatures: Vec<TemperatureReading>,
    drift_ppm: f64,
    /// Results of tracing.
    traced: TracedJobs,
}

/// A thread that carries a worker out; it gives `None` if it could not be set up, or the trial is not carried out.
type WorkerThread<'scope> = ScopedJoinHandle<'scope, Option<WorkerOutcome>>;

/// Carries a trial out; a second time without registered buffers if the kernel refused the buffers of a worker, or the ring
/// for them.
fn carry_out(
    jobs: &[Job<'_>],
    halt: &AtomicBool,
    meeting: &mut dyn RankBarrier,
    memory: &TrialMemory,
    tracing: Tracing,
) -> Result<Carried> {
    let carried = carry_out_once(jobs, halt, meeting, memory, tracing);
    match carried.is_err() && memory.registration.refusal().is_some() {
        true => carry_out_once(jobs, halt, meeting, memory, tracing),
        false => carried,
    }
}

/// Carries a trial out: the workers of all jobs start at once. `halt` is raised when the leading jobs are over.
fn carry_out_once(
    jobs: &[Job<'_>],
    halt: &AtomicBool,
    meeting: &mut dyn RankBarrier,
    memory: &TrialMemory,
    tracing: Tracing,
) -> Result<Carried> {
    let Some(clock) = jobs.first().map(|job| job.clock) else {
        return Err(Error::failed("a trial without workers"));
    };
    let barrier = StartBarrier::new();
    let mut observation = Observation::new(watched(jobs).into_iter());
    let is_over_time = jobs.iter().any(|job| job.spec.latency_over_time);
    let thermometer = is_over_time.then(|| observation.thermometer());
    let noted_jobs: Vec<NotedJob<'_>> = jobs.iter().map(Job::noted).collect();
    let mut tracer = match tracing {
        Some(tracing) => (tracing.prepare)(&noted_jobs, clock)?,
        None => None,
    };
    thread::scope(|scope| {
        let mut workers = Vec::new();
        let ready = set_up(scope, &mut workers, jobs, memory, &barrier);
        // Counters are read as close to the start as the other processes allow.
        let begin = || -> Result<_> {
            ready?;
            meeting.ready()?;
            let anchor = clock.anchor();
            observation.look();
            meeting.announced()?;
            let before = observation.count();
            tracer.as_mut().map_or(Ok(()), Tracer::start)?;
            meeting.start()?;
            Ok((anchor, before))
        };
        let (anchor, before) = match begin() {
            Ok(begun) => begun,
            Err(error) => {
                barrier.enter(Phase::Abandoned);
                join(workers);
                return Err(error);
            }
        };
        barrier.enter(Phase::Open);
        let temperatures = thermometer.and_then(Temperatures::of);
        wait_for_end(jobs, &barrier, halt);
        let temperatures = temperatures.map(Temperatures::into_readings);
        if let Some(tracer) = &tracer {
            tracer.stop();
        }
        // Counted before the wait for the other processes, which uses CPU time; shared counters are read after it.
        let process = counters::of_this_process();
        let ended = meeting.ended();
        let seen = observation.after_all(&before, process);
        let drift_ppm = clock.drift_ppm(anchor);
        barrier.enter(Phase::Released);
        let workers = by_job(join(workers), jobs.iter().map(|job| job.spec.threads));
        ended?;
        let mut workers = workers?;
        let noted = |own: &mut Vec<WorkerOutcome>| {
            let noted = own.iter_mut().filter_map(|worker| worker.noted.take());
            noted.collect()
        };
        let noted: Vec<Vec<NotedRequests>> = workers.iter_mut().map(noted).collect();
        let traced = match tracing.zip(tracer) {
            Some((tracing, tracer)) => (tracing.join)(&noted_jobs, &noted, tracer, clock)?,
            None => TracedJobs::default(),
        };
        Ok(Carried {
            workers,
            seen,
            temperatures: temperatures.unwrap_or_default(),
            drift_ppm,
            traced,
        })
    })
}

/// Number of workers of the jobs for which `counts` holds.
fn threads(jobs: &[Job<'_>], counts: impl Fn(&Job<'_>) -> bool) -> u32 {
    let counted = jobs.iter().filter(|job| counts(job));
    counted.map(|job| job.spec.threads).sum()
}

/// Starts the threads of all jobs, and waits until each has set up: then they wait at the barrier. If one fails, the caller
/// has to abandon the barrier for the others.
fn set_up<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    workers: &mut Vec<WorkerThread<'scope>>,
    jobs: &'env [Job<'env>],
    memory: &TrialMemory,
    barrier: &'env StartBarrier,
) -> Result<()> {
    let (ready, setups) = mpsc::channel();
    let numbers = jobs.iter().enumerate().flat_map(|(place, job)| {
        let each = 0..job.spec.threads;
        each.map(move |number| (*job, memory.of(place, number), number))
    });
    let mut set_up = Ok(());
    for (job, own_memory, number) in numbers {
        let ready = ready.clone();
        let thread = thread::Builder::new().name(format!("{THREAD_NAMES}{}", workers.len()));
        let body = move || work(job, number, barrier, own_memory, &ready);
        match thread.spawn_scoped(scope, body) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                set_up = Err(Error::usage(format!(
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
        let own = setups
            .recv()
            .unwrap_or_else(|_| Err(Error::failed("a worker ended during set-up")));
        set_up = set_up.and(own);
    }
    set_up
}

/// Waits until all are done; returns their outcomes, `None` for a worker that panicked.
fn join(workers: Vec<WorkerThread<'_>>) -> Vec<Option<WorkerOutcome>> {
    let ends = workers
        .into_iter()
        .map(|worker| worker.join().ok().flatten());
    ends.collect()
}

/// Worker outcomes grouped by job, from the outcomes of all jobs in order.
///
/// # Errors
/// Of kind [`Failed`](iolab_workload::Kind::Failed): a worker panicked. The outcomes of the others are not the requested
/// measurement.
fn by_job(
    all: Vec<Option<WorkerOutcome>>,
    threads: impl Iterator<Item = u32>,
) -> Result<Vec<Vec<WorkerOutcome>>> {
    let mut all = all.into_iter();
    let of_job = |threads| all.by_ref().take(threads as usize).collect();
    let jobs: Option<_> = threads.map(of_job).collect();
    jobs.ok_or_else(|| {
        Error::failed("a thread of the trial ended before its time, so that there is no result")
            .hint("this is a fault of iolab: please report the lines above")
    })
}

/// The bytes of a file that the workers of this process go over.
fn used_range(spec: &TrialSpec, part: &files::TargetRange<'_>) -> Range<u64> {
    match spec.layout {
        FileLayout::Private => part.range(),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => spec.own_range(),
    }
}

/// The ranges of files that are looked at around the timed span. Groups may use the same bytes, which are looked at once.
fn watched<'a>(jobs: &[Job<'a>]) -> Vec<(&'a Target, u64, u64)> {
    let mut ranges: Vec<(&Target, u64, u64)> = Vec::new();
    let parts = jobs.iter().flat_map(|job| {
        let parts = job.files.map_or(&[][..], Files::parts).iter();
        parts.map(|part| (part.target(), used_range(job.spec, part)))
    });
    for (target, Range { start, end }) in parts {
        let touches = |(other, offset, length): &&mut (&Target, u64, u64)| {
            std::ptr::eq(*other, target) && start <= *offset + *length && *offset <= end
        };
        match ranges.iter_mut().find(touches) {
            Some((_, offset, length)) => {
                let end = end.max(*offset + *length);
                *offset = start.min(*offset);
                *length = end - *offset;
            }
            None => ranges.push((target, start, end - start)),
        }
    }
    ranges
}

#[cfg(test)]
pub(crate) mod tests;
