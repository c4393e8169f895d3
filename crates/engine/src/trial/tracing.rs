//! Splits the time of each request of a trial by layer: joins the requests that workers noted with the kernel's trace.

mod without_queue;

use std::ops::Range;

use super::Job;
use super::files::{Files, TargetRange};
use crate::worker::{NotedRequest, NotedRequests, WorkerOutcome};
use iolab_host::clock::Clock;
use iolab_host::tracing::join::{Joined, join};
use iolab_host::tracing::moved_blocks::MovedBlocks;
use iolab_host::tracing::syncs::{TracedSync, begun_within};
use iolab_host::tracing::{
    Event, Owner, Recording, TracedPlaces, TracedRequest, Tracer, Way, kernel_number,
};
use iolab_storage::Target;
use iolab_storage::sectors::{Carrier, MovingPlaces, SectorMap, Sectors};
use iolab_storage::sync_events::SyncPlace;
use iolab_workload::quantity::counted;
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, Stage, StageTimes, TraceCounts, Traced,
};
use iolab_workload::trial::{Backend, TrialSpec};
use iolab_workload::{Error, Result};

/// Checks that the requests of a trial on this target can be traced.
///
/// # Errors
/// Of kind usage: why not.
pub(super) fn check(spec: &TrialSpec, target: &Target) -> Result<()> {
    if !spec.trace {
        return Ok(());
    }
    let name = target.named().display();
    let carrier = target.carrier().map_err(|why| {
        Error::usage(format!(
            "trace=true: the requests of {name} cannot be found among the requests of a device: {why}"
        ))
        .hint("leave trace out, or measure another target")
    })?;
    iolab_host::tracing::check(carrier)?;
    if matches!(carrier, Carrier::Fuse(_)) {
        check_fuse(spec, &name.to_string())?;
    }
    if spec.writes() && target.moves_written_blocks() {
        if spec.reads() {
            return Err(Error::usage(format!(
                "trace=true with reads and writes on {name}: btrfs writes each block to a new place, so that the place that a read found is not known"
            ))
            .hint("set read_percent=100 or read_percent=0"));
        }
        iolab_host::tracing::check_moved()?;
    }
    if spec.writes() && spec.sync.is_in_write() && !target.sync_place().names_syncs {
        return Err(Error::usage(format!(
            "trace=true with sync={} on {name}: only ext4 and XFS have events that show where the sync within a write begins",
            spec.sync
        ))
        .hint("set sync=each or sync=fdatasync"));
    }
    Ok(())
}

/// Checks that the requests of a trial to a file system in user space can be distinguished. Its events name the thread that
/// sends, and no offset.
fn check_fuse(spec: &TrialSpec, name: &str) -> Result<()> {
    let sends = match spec.backend {
        Backend::Sync | Backend::Psync | Backend::Pvsync2 | Backend::Mmap | Backend::Null => None,
        Backend::Libaio => spec
            .sync
            .follows_writes()
            .then_some("syncs, which a thread of the kernel sends"),
        Backend::IoUring => Some("requests, which threads of the kernel send"),
        Backend::Pool => Some("requests, which threads of the pool send"),
    };
    sends.map_or(Ok(()), |what| {
        Err(Error::usage(format!(
            "trace=true with backend {} on {name}: the events of FUSE name no offset, but the thread that sends; so they cannot be joined with {what}",
            spec.backend
        ))
        .hint("set backend=psync and depth=1, or backend=libaio without syncs"))
    })
}

/// The tracer of the disks of all traced jobs, and of the syncs of their files; `None` if no job is traced.
pub(super) fn tracer(jobs: &[Job<'_>], clock: &Clock) -> Result<Option<Tracer>> {
    let mut places = TracedPlaces::default();
    for job in jobs.iter().filter(|job| job.spec.trace) {
        for part in job.files.iter().flat_map(|files| files.parts()) {
            match part.target().carrier() {
                Ok(Carrier::Disk {
                    number,
                    has_requests,
                }) => places.disks.push((number, has_requests)),
                Ok(Carrier::Fuse(number)) => places.connections.push(number),
                Ok(Carrier::FileServer(number)) => places.servers.push(number),
                Err(_) => {}
            }
            if job.spec.writes() && part.target().moves_written_blocks() {
                places.moving.push(part.target().sync_place().inode);
            }
            if job.spec.sync.is_per_write() {
                let place = part.target().sync_place();
                places.file_systems.extend(place.file_system);
            }
        }
    }
    let TracedPlaces {
        disks,
        connections,
        servers,
        moving,
        file_systems,
        threads: _,
        sync_calls: _,
    } = &mut places;
    disks.sort_unstable();
    disks.dedup();
    moving.sort_unstable();
    moving.dedup();
    for devices in [&mut *connections, &mut *servers, file_systems] {
        devices.sort_unstable();
        devices.dedup();
    }
    match disks.is_empty() && connections.is_empty() && servers.is_empty() {
        true => Ok(None),
        false => Tracer::new(&places, clock).map(Some),
    }
}

/// Traced stages by job, and over all jobs.
pub(super) struct TracedJobs {
    pub(super) each: Vec<Option<Traced>>,
    pub(super) all: Option<Traced>,
}

impl TracedJobs {
    /// No stages, for this number of jobs.
    pub(super) fn none(jobs: usize) -> Self {
        Self {
            each: vec![None; jobs],
            all: None,
        }
    }
}

/// Joins the workers' notes of each job with the recording.
///
/// # Errors
/// When the recording cannot be read.
pub(super) fn judge(
    jobs: &[Job<'_>],
    workers: &mut [Vec<WorkerOutcome>],
    tracer: Tracer,
    clock: &Clock,
) -> Result<TracedJobs> {
    let noted: Vec<Vec<NotedRequests>> = workers
        .iter_mut()
        .map(|workers| {
            workers
                .iter_mut()
                .filter_map(|worker| worker.noted.take())
                .collect()
        })
        .collect();
    let threads: Vec<u32> = noted.iter().flatten().map(|noted| noted.thread).collect();
    let mut recording = tracer.finish(&threads)?;
    // Later requests are not known in full.
    let left_out = noted.iter().flatten().filter_map(|one| one.left_out_from);
    recording.until = recording.until.into_iter().chain(left_out).min();
    let (mut requests, mut syncs) = (Vec::new(), Vec::new());
    let mut of_jobs = Vec::new();
    let moved = MovedBlocks::of(&recording.events);
    for (job, noted) in jobs.iter().zip(&noted) {
        let Some(files) = job.files.filter(|_| job.spec.trace) else {
            of_jobs.push(None);
            continue;
        };
        let files = TracedFiles::of(files, job.spec.writes());
        let before = (requests.len(), syncs.len());
        for own in noted {
            requests.extend(traced(own, &files, &moved));
            syncs.extend(traced_syncs(own, &files));
        }
        if job.spec.sync.is_in_write() {
            let own = &mut requests[before.0..];
            syncs.extend(split_writes(own, noted, &files, &recording.events));
        }
        of_jobs.push(Some(JobRequests {
            requests: before.0..requests.len(),
            syncs: before.1..syncs.len(),
            has_queue: files.have_requests(),
            carried_by: files.carried_by(),
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
    let told = |job: &JobRequests| {
        let recorded = Recorded {
            requests: job
                .requests
                .clone()
                .filter(|number| requests[*number].end <= until)
                .collect(),
            syncs: job
                .syncs
                .clone()
                .filter(|number| syncs[*number].end <= until)
                .collect(),
            journal: job.syncs.clone().map(|number| syncs[number].journal).max(),
            has_queue: job.has_queue,
            carried_by: job.carried_by,
        };
        tell(&recorded, &joined, &recording, clock)
    };
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

/// The numbers of requests and syncs whose events were recorded.
struct Recorded {
    requests: Vec<usize>,
    syncs: Vec<usize>,
    journal: Option<Journal>,
    has_queue: bool,
    carried_by: CarriedBy,
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

/// The files of a job: what their requests and syncs are known by.
struct TracedFiles {
    each: Vec<TracedFile>,
}

struct TracedFile {
    way: FileWay,
    sync: SyncPlace,
}

/// The way that requests of a file go.
enum FileWay {
    /// A disk that holds the bytes at these sectors.
    Disk(SectorMap),
    /// A disk on which each written block gets a new place.
    Moving(MovingPlaces),
    /// A file server, by the number of the mount.
    FileServer(u32),
    /// A file system in user space, by its number.
    Fuse(u32),
    /// Unknown destination.
    Unknown,
}

impl TracedFiles {
    /// The carriers of the files after a trial that `writes` them or not: writes may have given the files their place.
    fn of(files: &Files<'_>, writes: bool) -> Self {
        let of_part = |part: &TargetRange<'_>| {
            let target = part.target();
            let on_disk = || match writes && target.moves_written_blocks() {
                true => target.moving_places().map(FileWay::Moving),
                false => target.sectors(&part.range()).map(FileWay::Disk),
            };
            TracedFile {
                way: match target.carrier() {
                    Ok(Carrier::Fuse(number)) => FileWay::Fuse(kernel_number(number)),
                    Ok(Carrier::FileServer(number)) => FileWay::FileServer(kernel_number(number)),
                    Ok(Carrier::Disk { .. }) | Err(_) => on_disk().unwrap_or(FileWay::Unknown),
                },
                sync: target.sync_place(),
            }
        };
        Self {
            each: files.parts().iter().map(of_part).collect(),
        }
    }

    fn have_requests(&self) -> bool {
        self.each.iter().all(|file| match &file.way {
            FileWay::Disk(map) => map.has_requests,
            FileWay::Moving(places) => places.has_requests,
            FileWay::FileServer(_) | FileWay::Fuse(_) => false,
            FileWay::Unknown => true,
        })
    }

    fn carried_by(&self) -> CarriedBy {
        merge_carriers(self.each.iter().map(|file| match file.way {
            FileWay::Disk(SectorMap { is_layer, .. })
            | FileWay::Moving(MovingPlaces { is_layer, .. })
                if is_layer =>
            {
                CarriedBy::Layers
            }
            FileWay::Disk(_) | FileWay::Moving(_) | FileWay::Unknown => CarriedBy::Disk,
            FileWay::FileServer(_) => CarriedBy::FileServer,
            FileWay::Fuse(_) => CarriedBy::Server,
        }))
    }

    /// The file that holds an offset of a worker, and the offset in it.
    fn place(&self, worker: u32, offset: u64) -> (&TracedFile, u64) {
        (&self.each[worker as usize % self.each.len()], offset)
    }
}

impl TracedFile {
    /// The way of a request to this offset.
    fn way(&self, offset: u64, request: &NotedRequest, moved: &MovedBlocks) -> Way {
        let bytes = request.len;
        match &self.way {
            FileWay::Disk(map) => Way::Disk {
                disk: kernel_number(map.disk),
                sectors: map.of_request(offset, bytes).collect(),
            },
            FileWay::Moving(places) => {
                let file = (places.file_system, self.sync.inode);
                let all = offset..offset + u64::from(bytes);
                let parts = moved.of_write(file, all, (request.started, request.ended));
                let found: u64 = parts.iter().map(|part| part.bytes).sum();
                // A part without a place makes all of it unknown.
                let parts = parts.iter().filter(|_| found == u64::from(bytes));
                Way::Disk {
                    disk: kernel_number(places.disk),
                    sectors: parts
                        .flat_map(|part| places.sectors(part.place, part.bytes))
                        .collect(),
                }
            }
            FileWay::FileServer(mount) => Way::FileServer {
                mount: *mount,
                inode: self.sync.inode,
                bytes: Sectors {
                    first: offset,
                    count: bytes,
                },
            },
            FileWay::Fuse(connection) => Way::Fuse {
                connection: *connection,
                bytes,
                order: request.order,
            },
            FileWay::Unknown => Way::Disk {
                disk: 0,
                sectors: Vec::new(),
            },
        }
    }

    /// A sync of a thread between two stamps.
    fn sync(&self, thread: u32, start: u64, end: u64) -> TracedSync {
        TracedSync {
            start,
            end,
            thread,
            flusher: match &self.way {
                FileWay::Disk(map) => Owner::Disk(kernel_number(map.disk)),
                FileWay::Moving(places) => Owner::Disk(kernel_number(places.disk)),
                FileWay::FileServer(mount) => Owner::ServedFile {
                    mount: *mount,
                    inode: self.sync.inode,
                },
                FileWay::Fuse(_) => Owner::Thread(thread),
                FileWay::Unknown => Owner::Disk(0),
            },
            file_system: self.sync.file_system.map(kernel_number),
            inode: self.sync.inode,
            journal: self.sync.journal,
        }
    }
}

/// The requests that a worker noted, each with its way.
fn traced<'a>(
    noted: &'a NotedRequests,
    files: &'a TracedFiles,
    moved: &'a MovedBlocks,
) -> impl Iterator<Item = TracedRequest> + 'a {
    noted.requests.iter().map(move |request| {
        let (file, offset) = files.place(noted.worker, request.offset);
        TracedRequest {
            start: request.started,
            end: request.ended,
            writes: request.writes,
            thread: noted.thread,
            way: file.way(offset, request, moved),
        }
    })
}

/// The syncs that a worker noted.
fn traced_syncs<'a>(
    noted: &'a NotedRequests,
    files: &'a TracedFiles,
) -> impl Iterator<Item = TracedSync> + 'a {
    noted.syncs.iter().map(move |sync| {
        let (file, _) = files.place(noted.worker, sync.offset);
        file.sync(noted.thread, sync.started, sync.ended)
    })
}

/// Ends each write that syncs itself when its file system got the sync, and returns these syncs; a write that the device carried
/// out past its cache has none. `requests` are all that were noted, in their order.
fn split_writes(
    requests: &mut [TracedRequest],
    noted: &[NotedRequests],
    files: &TracedFiles,
    events: &[Event],
) -> Vec<TracedSync> {
    let offsets = noted.iter().flat_map(|own| {
        let worker = own.worker;
        own.requests.iter().map(move |one| (worker, one.offset))
    });
    let mut writes: Vec<(&mut TracedRequest, TracedSync)> = requests
        .iter_mut()
        .zip(offsets)
        .filter(|(request, _)| request.writes)
        .map(|(request, (worker, offset))| {
            let (file, _) = files.place(worker, offset);
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

/// Stages of the joined requests and syncs with these numbers.
fn tell(own: &Recorded, joined: &Joined, recording: &Recording, clock: &Clock) -> Traced {
    let stages = own.requests.iter();
    let stages = stages.filter_map(|number| joined.stages[*number]);
    let times: Vec<PerStage<u64>> = stages.map(|ticks| in_ns(&ticks, clock)).collect();
    let syncs = own.syncs.iter().map(|number| &joined.syncs.stages[*number]);
    let sync_times: Vec<PerStage<u64>> = syncs.map(|ticks| sync_in_ns(ticks, clock)).collect();
    let counts = TraceCounts {
        lost: recording.lost,
        ..joined.counts(own.requests.iter().copied(), own.syncs.iter().copied())
    };
    let all = counts.joined + counts.unjoined;
    if all == 0 || counts.unjoined_share() > TraceCounts::UNJOINED_MAX {
        return Traced {
            counts,
            note: not_joined(&counts),
            carried_by: own.carried_by,
            journal: own.journal,
            stages: None,
        };
    }
    let notes = [
        recording.until.map(|_| only_first(all)),
        (!own.has_queue).then(|| without_queue::note(own.carried_by).to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let entered = joined.syncs.are_entered(own.syncs.iter().copied());
    let is_seen = |stage| match stage {
        Stage::Queue => own.has_queue,
        Stage::SyncAdmission => entered,
        Stage::SyncJournal => !matches!(own.journal, Some(Journal::Absent | Journal::Hidden)),
        Stage::SyncWrite => own.journal != Some(Journal::Hidden),
        Stage::Admission
        | Stage::Device
        | Stage::Delivery
        | Stage::Completion
        | Stage::CpuWait
        | Stage::Reaping
        | Stage::SyncHost
        | Stage::SyncFlush
        | Stage::SyncDelivery => true,
    };
    Traced {
        counts,
        note: notes.join("; "),
        carried_by: own.carried_by,
        journal: own.journal,
        stages: StageTimes::of(&times, &sync_times, is_seen),
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
