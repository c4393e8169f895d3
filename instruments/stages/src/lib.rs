//! iolab-stages: splits the time of each request of a trial by layer. It joins the requests that workers noted with the kernel's trace.

use std::iter::repeat_n;
use std::ops::Range;

use iolab_engine::request_tracer::{NotedJob, NotedRequests, RequestTracer, TracedJobs};
use iolab_host::clock::Clock;
use iolab_host::tracing::join::{Joined, join};
use iolab_host::tracing::syncs::{TracedSync, begun_within};
use iolab_host::tracing::{Event, Recording, TracedPlaces, TracedRequest, Tracer, kernel_number};
use iolab_storage::Target;
use iolab_storage::sectors::{SectorMap, SyncPlace};
use iolab_workload::histogram::new_latency_histogram;
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, Stage, StageSummary, TraceCounts, TraceSummary,
};
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::counted;
use iolab_workload::{Error, Result};

/// Time by layer of the requests of trials, from trace events of the kernel.
pub static TIME_BY_LAYER: RequestTracer = RequestTracer {
    check,
    prepare,
    join: judge,
};

fn check(spec: &TrialSpec, target: &Target) -> Result<()> {
    if !spec.trace {
        return Ok(());
    }
    let name = target.named().display();
    target.traced_disk().map_err(|why| {
        Error::usage(format!(
            "trace=true: the requests of {name} cannot be found among the requests of a device: {why}"
        ))
        .hint("leave trace out, or measure a block device or a file on ext4 or XFS")
    })?;
    iolab_host::tracing::check()?;
    if spec.writes() && spec.sync.is_in_write() && !target.sync_place().names_syncs {
        return Err(Error::usage(format!(
            "trace=true with sync={} on {name}: only ext4 and XFS have events that show where the sync within a write begins",
            spec.sync
        ))
        .hint("set sync=each or sync=fdatasync"));
    }
    Ok(())
}

/// The tracer of the disks of all traced jobs, and of the syncs of their files; `None` if no job is traced.
fn prepare(jobs: &[NotedJob<'_>], clock: &Clock) -> Result<Option<Tracer>> {
    let mut places = TracedPlaces::default();
    for job in jobs.iter().filter(|job| job.spec.trace) {
        for (target, _) in &job.files {
            let disk = target.traced_disk();
            places
                .disks
                .extend(disk.map(|disk| (disk.number, disk.has_requests)));
            if job.spec.sync.is_per_write() {
                let place = target.sync_place();
                places.file_systems.extend(place.file_system);
            }
        }
    }
    places.disks.sort_unstable();
    places.disks.dedup();
    places.file_systems.sort_unstable();
    places.file_systems.dedup();
    match places.disks.is_empty() {
        true => Ok(None),
        false => Tracer::new(&places, clock).map(Some),
    }
}

/// Joins the workers' notes of each job with the recording.
///
/// # Errors
/// When the recording cannot be read.
fn judge(
    jobs: &[NotedJob<'_>],
    noted: &[Vec<NotedRequests>],
    tracer: Tracer,
    clock: &Clock,
) -> Result<TracedJobs> {
    let threads: Vec<u32> = noted.iter().flatten().map(|noted| noted.thread).collect();
    let mut recording = tracer.finish(&threads)?;
    // Later requests are not known in full.
    let left_out = noted.iter().flatten().filter_map(|one| one.left_out_from);
    recording.until = recording.until.into_iter().chain(left_out).min();
    let (mut requests, mut syncs) = (Vec::new(), Vec::new());
    let mut of_jobs = Vec::new();
    for (job, noted) in jobs.iter().zip(noted) {
        if !job.spec.trace || job.files.is_empty() {
            of_jobs.push(None);
            continue;
        }
        let files = traced_files(job);
        let carriers = files.iter().map(|file| match &file.map {
            Some(map) if map.disk.is_layer => CarriedBy::Layers,
            Some(_) | None => CarriedBy::Disk,
        });
        let mut maps = files.iter().flat_map(|file| &file.map);
        let before = (requests.len(), syncs.len());
        for own in noted {
            let file = file_of(&files, own.worker);
            requests.extend(traced(own, file));
            let own_syncs = own.syncs.iter();
            syncs.extend(own_syncs.map(|sync| file.sync(own.thread, sync.started, sync.ended)));
        }
        if job.spec.sync.is_in_write() {
            let own = &mut requests[before.0..];
            syncs.extend(split_writes(own, noted, &files, &recording.events));
        }
        of_jobs.push(Some(JobRequests {
            requests: before.0..requests.len(),
            syncs: before.1..syncs.len(),
            has_queue: maps.all(|map| map.disk.has_requests),
            carried_by: merge_carriers(carriers),
        }));
    }
    Ok(tell_jobs((&requests, &syncs), &of_jobs, recording, clock))
}

/// The places of a job's requests and syncs in the lists of all jobs.
struct JobRequests {
    requests: Range<usize>,
    syncs: Range<usize>,
    /// Whether its disks have queues of requests.
    has_queue: bool,
    carried_by: CarriedBy,
}

/// Traced stages by job, `None` for a job that is not traced, and over all jobs. Requests that ended after the recording
/// are joined first, so that their events are not attributed to others, and are then left out.
fn tell_jobs(
    (requests, syncs): (&[TracedRequest], &[TracedSync]),
    of_jobs: &[Option<JobRequests>],
    mut recording: Recording,
    clock: &Clock,
) -> TracedJobs {
    let until = recording.until.unwrap_or(u64::MAX);
    recording.events.retain(|event| event.at <= until);
    let joined = join(requests, syncs, &recording.events);
    let told = |job: &JobRequests| tell(job, (requests, syncs), &joined, &recording, clock);
    let all = JobRequests {
        requests: 0..requests.len(),
        syncs: 0..syncs.len(),
        has_queue: of_jobs.iter().flatten().all(|job| job.has_queue),
        carried_by: merge_carriers(of_jobs.iter().flatten().map(|job| job.carried_by)),
    };
    TracedJobs {
        each: of_jobs.iter().map(|job| job.as_ref().map(told)).collect(),
        all: Some(told(&all)),
    }
}

/// The common carrier of the requests of several jobs or files.
fn merge_carriers(all: impl IntoIterator<Item = CarriedBy>) -> CarriedBy {
    let mut all = all.into_iter();
    let first = all.next().unwrap_or_default();
    match all.all(|other| other == first) {
        true => first,
        false => CarriedBy::Both,
    }
}

/// A file of a job, with the places by which its requests and syncs are recognised.
struct TracedFile {
    /// Place of the file's bytes on a disk; `None` where that is unknown.
    map: Option<SectorMap>,
    sync: SyncPlace,
}

/// The files of a job after its trial: writes may have given them their place.
fn traced_files(job: &NotedJob<'_>) -> Vec<TracedFile> {
    let traced = job.files.iter().map(|(target, range)| TracedFile {
        map: target.sectors(range).ok(),
        sync: target.sync_place(),
    });
    traced.collect()
}

/// The file of a worker.
fn file_of(files: &[TracedFile], worker: u32) -> &TracedFile {
    &files[worker as usize % files.len()]
}

impl TracedFile {
    /// Kernel's number of the disk; 0 where the place is unknown.
    fn disk(&self) -> u32 {
        self.map
            .as_ref()
            .map_or(0, |map| kernel_number(map.disk.number))
    }

    /// A sync of a thread between two stamps.
    fn sync(&self, thread: u32, start: u64, end: u64) -> TracedSync {
        TracedSync {
            start,
            end,
            thread,
            disk: self.disk(),
            file_system: self.sync.file_system.map(kernel_number),
            inode: self.sync.inode,
            journal: self.sync.journal,
        }
    }
}

/// The requests that a worker noted, each with its sectors.
fn traced<'a>(
    noted: &'a NotedRequests,
    file: &'a TracedFile,
) -> impl Iterator<Item = TracedRequest> + 'a {
    noted.requests.iter().map(|request| TracedRequest {
        start: request.started,
        end: request.ended,
        writes: request.writes,
        thread: noted.thread,
        disk: file.disk(),
        sectors: file
            .map
            .iter()
            .flat_map(|map| map.of_request(request.offset, request.len))
            .collect(),
    })
}

/// Ends each write that syncs itself when its file system got the sync, and returns these syncs; a write that the device carried
/// out past its cache has none. `requests` are all that were noted, in their order.
fn split_writes(
    requests: &mut [TracedRequest],
    noted: &[NotedRequests],
    files: &[TracedFile],
    events: &[Event],
) -> Vec<TracedSync> {
    let own_files = noted
        .iter()
        .flat_map(|own| repeat_n(file_of(files, own.worker), own.requests.len()));
    let mut writes: Vec<(&mut TracedRequest, TracedSync)> = requests
        .iter_mut()
        .zip(own_files)
        .filter(|(request, _)| request.writes)
        .map(|(request, file)| {
            let whole = file.sync(request.thread, request.start, request.end);
            (request, whole)
        })
        .collect();
    let whole: Vec<TracedSync> = writes.iter().map(|(_, whole)| *whole).collect();
    let begun = begun_within(&whole, events);
    let found = writes.iter_mut().zip(begun);
    found
        .filter_map(|((request, whole), start)| {
            let start = start?;
            request.end = start;
            Some(TracedSync { start, ..*whole })
        })
        .collect()
}

/// Stages of the joined requests and syncs of a job, as far as they ended before the recording.
fn tell(
    own: &JobRequests,
    (requests, syncs): (&[TracedRequest], &[TracedSync]),
    joined: &Joined,
    recording: &Recording,
    clock: &Clock,
) -> TraceSummary {
    let until = recording.until.unwrap_or(u64::MAX);
    let journal = syncs[own.syncs.clone()].iter().map(|sync| sync.journal);
    let journal = journal.max();
    let numbers = own.requests.clone();
    let requests: Vec<usize> = numbers.filter(|own| requests[*own].end <= until).collect();
    let numbers = own.syncs.clone();
    let syncs: Vec<usize> = numbers.filter(|own| syncs[*own].end <= until).collect();
    let counts = TraceCounts {
        lost: recording.lost,
        ..joined.counts(requests.iter().copied(), syncs.iter().copied())
    };
    let told = |note, stages| TraceSummary {
        counts,
        note,
        carried_by: own.carried_by,
        journal,
        stages,
    };
    let all = counts.joined + counts.unjoined;
    if all == 0 || counts.unjoined_share() > TraceCounts::UNJOINED_MAX {
        return told(not_joined(&counts), PerStage::default());
    }
    let notes = [
        recording.until.map(|_| only_first(all)),
        (!own.has_queue).then(|| without_queue(own.carried_by).to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let entered = joined.syncs.are_entered(syncs.iter().copied());
    let is_seen = |stage| match stage {
        Stage::Queue => own.has_queue,
        Stage::SyncAdmission => entered,
        Stage::SyncJournal => journal != Some(Journal::Absent),
        _ => true,
    };
    let stages = requests.iter().filter_map(|own| joined.stages[*own]);
    let times: Vec<PerStage<u64>> = stages.map(|ticks| in_ns(&ticks, clock)).collect();
    let stages = syncs.iter().map(|own| &joined.syncs.stages[*own]);
    let sync_times: Vec<PerStage<u64>> = stages.map(|ticks| sync_in_ns(ticks, clock)).collect();
    let stages = summaries(&times, &sync_times, is_seen);
    told(notes.join("; "), stages)
}

/// Each stage in a few numbers, from the times of the stages of requests and of syncs in ns, 0 for stages that cannot be seen. The time of a
/// request is the sum over [`Stage::WHOLE`], the time of a sync the sum over [`Stage::SYNC`].
fn summaries(
    requests: &[PerStage<u64>],
    syncs: &[PerStage<u64>],
    is_seen: impl Fn(Stage) -> bool,
) -> PerStage<Option<StageSummary>> {
    let tails = [
        slowest(requests, &Stage::WHOLE),
        slowest(syncs, &Stage::SYNC),
    ];
    PerStage::from_fn(|stage| {
        let (all, tail) = match stage.is_of_sync() {
            true => (syncs, &tails[1]),
            false => (requests, &tails[0]),
        };
        if !is_seen(stage) || all.is_empty() {
            return None;
        }
        let mut histogram = new_latency_histogram();
        all.iter()
            .for_each(|one| histogram.saturating_record(one[stage]));
        let sum: f64 = tail.iter().map(|one| one[stage] as f64).sum();
        Some(StageSummary {
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            tail_mean_ns: sum / tail.len() as f64,
        })
    })
}

/// Share of requests that are faster than the tail.
const TAIL_FROM: f64 = 0.99;

/// The slowest requests: at least the 99th percentile of the sum over these stages.
fn slowest<'a>(all: &'a [PerStage<u64>], whole: &[Stage]) -> Vec<&'a PerStage<u64>> {
    let mut ordered: Vec<&PerStage<u64>> = all.iter().collect();
    let from = (ordered.len() as f64 * TAIL_FROM).ceil() as usize;
    let from = from.saturating_sub(1);
    if !ordered.is_empty() {
        ordered.select_nth_unstable_by_key(from, |one| -> u64 {
            whole.iter().map(|stage| one[*stage]).sum()
        });
    }
    ordered.split_off(from)
}

/// Note on the meaning of device time where not all devices have a queue of requests.
fn without_queue(carried_by: CarriedBy) -> &'static str {
    match carried_by {
        CarriedBy::Disk => {
            "the device has no queue of requests: its time begins when it is given the request"
        }
        CarriedBy::Layers => {
            "device time covers the layers of this machine (device mapper, md) and the disks below them; it begins when the uppermost layer is given the request"
        }
        CarriedBy::Both => {
            "device time covers disks, and layers of this machine (device mapper, md) with the disks below them; not all have a queue of requests"
        }
    }
}

/// Note that the trace had room for the first requests only.
fn only_first(requests: u64) -> String {
    format!(
        "the trace holds only the first {}: it has no room for more",
        counted(requests, "request")
    )
}

/// Reason why the stages of the joined requests do not represent all requests.
fn not_joined(counts: &TraceCounts) -> String {
    let all = counts.joined + counts.unjoined;
    if all == 0 {
        return "no request was completed while events were recorded".to_owned();
    }
    let lost = match counts.lost {
        0 => String::new(),
        lost => format!(" (the kernel had no room for {})", counted(lost, "event")),
    };
    format!(
        "{} of {} have no complete set of events{lost}: at most 0.1 % may",
        counts.unjoined,
        counted(all, "request"),
    )
}

/// Consecutive stages in ns, from ticks: their sum equals the recorded latency.
fn one_after_the_other<const N: usize>(ticks: [u64; N], clock: &Clock) -> [u64; N] {
    let (mut at, mut at_ns) = (0, 0);
    ticks.map(|ticks| {
        at += ticks;
        let before = std::mem::replace(&mut at_ns, clock.ns_between(0, at));
        at_ns - before
    })
}

/// Stages in ns whose sum is the time of the request in ns, as the latency is recorded.
fn in_ns(ticks: &PerStage<u64>, clock: &Clock) -> PerStage<u64> {
    let [admission, queue, device, completion, cpu_wait, reaping] =
        one_after_the_other(Stage::PASSED.map(|stage| ticks[stage]), clock);
    PerStage {
        admission,
        queue,
        device,
        delivery: completion + cpu_wait + reaping,
        completion,
        cpu_wait,
        reaping,
        ..PerStage::default()
    }
}

/// The stages of a sync in ns.
fn sync_in_ns(ticks: &PerStage<u64>, clock: &Clock) -> PerStage<u64> {
    let ns = one_after_the_other(Stage::SYNC.map(|stage| ticks[stage]), clock);
    let mut stages = PerStage::default();
    for (stage, ns) in Stage::SYNC.into_iter().zip(ns) {
        stages[stage] = ns;
    }
    stages
}

#[cfg(test)]
mod tests;
