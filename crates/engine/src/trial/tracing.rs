//! Splits the time of each request of a trial by layer: the requests that workers noted, joined with what the kernel traced.

use std::ops::Range;

use super::Job;
use super::files::{Files, TargetRange};
use crate::worker::{NotedRequests, WorkerOutcome};
use iolab_host::clock::Clock;
use iolab_host::tracing::join::{Joined, TracedRequest, join};
use iolab_host::tracing::syncs::TracedSync;
use iolab_host::tracing::{Recording, TracedPlaces, Tracer, kernel_number};
use iolab_storage::Target;
use iolab_storage::sectors::SectorMap;
use iolab_storage::sync_place::SyncPlace;
use iolab_workload::quantity::counted;
use iolab_workload::stages::{Journal, PerStage, Stage, StageTimes, TraceCounts, Traced};
use iolab_workload::trial::TrialSpec;
use iolab_workload::{Error, Result};

/// Checks that the requests of a trial on this target can be traced.
///
/// # Errors
/// Of kind usage: why not.
pub(super) fn check(spec: &TrialSpec, target: &Target) -> Result<()> {
    if !spec.trace {
        return Ok(());
    }
    iolab_host::tracing::check()?;
    target.disk().map(|_| ()).map_err(|why| {
        Error::usage(format!(
            "trace=true: the requests of {} cannot be found among those of a device: {why}",
            target.named().display()
        ))
        .hint("leave trace out, or measure another target")
    })
}

/// What traces the disks of those jobs that are to be traced, and what syncs their files; `None` where none is.
pub(super) fn tracer(jobs: &[Job<'_>], clock: &Clock) -> Result<Option<Tracer>> {
    let mut places = TracedPlaces::default();
    for job in jobs.iter().filter(|job| job.spec.trace) {
        for part in job.files.iter().flat_map(|files| files.parts()) {
            places.disks.extend(part.target().disk());
            if job.spec.sync.follows_writes() {
                let place = part.target().sync_place();
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

/// What tracing showed: of each job, and of all of them.
pub(super) struct TracedJobs {
    pub(super) each: Vec<Option<Traced>>,
    pub(super) all: Option<Traced>,
}

impl TracedJobs {
    /// Nothing of so many jobs.
    pub(super) fn none(jobs: usize) -> Self {
        Self {
            each: vec![None; jobs],
            all: None,
        }
    }
}

/// Joins what the workers of each job noted with what was recorded.
///
/// # Errors
/// When what was recorded cannot be read.
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
    // What began later is not known in full.
    let left_out = noted.iter().flatten().filter_map(|one| one.left_out_from);
    recording.until = recording.until.into_iter().chain(left_out).min();
    let (mut requests, mut syncs) = (Vec::new(), Vec::new());
    let mut of_jobs = Vec::new();
    for (job, noted) in jobs.iter().zip(&noted) {
        let Some(files) = job.files.filter(|_| job.spec.trace) else {
            of_jobs.push(None);
            continue;
        };
        let maps = SectorMaps::of(files);
        let before = (requests.len(), syncs.len());
        for own in noted {
            requests.extend(traced(own, files, &maps));
            syncs.extend(traced_syncs(own, files, &maps));
        }
        of_jobs.push(Some(JobRequests {
            requests: before.0..requests.len(),
            syncs: before.1..syncs.len(),
            has_queue: maps.has_requests(),
        }));
    }
    Ok(tell_jobs((&requests, &syncs), &of_jobs, recording, clock))
}

/// The requests and syncs of a job among those of all.
struct JobRequests {
    requests: Range<usize>,
    syncs: Range<usize>,
    /// Whether its disks have queues of requests.
    has_queue: bool,
}

/// What the requests of each job show, and those of all; `None` for a job that is not traced. Those that ended after the recording join
/// what it has of them, so that it is not taken for the requests of others, and are left out then.
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
        };
        tell(&recorded, &joined, &recording, clock)
    };
    let all = JobRequests {
        requests: 0..requests.len(),
        syncs: 0..syncs.len(),
        has_queue: of_jobs.iter().flatten().all(|job| job.has_queue),
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
}

/// Where the bytes of each file of a job lie, and what knows its syncs.
struct SectorMaps(Vec<(std::result::Result<SectorMap, &'static str>, SyncPlace)>);

impl SectorMaps {
    /// As the files are after the trial: writes may have given them their place.
    fn of(files: &Files<'_>) -> Self {
        let of_part = |part: &TargetRange<'_>| {
            let target = part.target();
            (target.sectors(&part.range()), target.sync_place())
        };
        Self(files.parts().iter().map(of_part).collect())
    }

    fn has_requests(&self) -> bool {
        let known = self.0.iter().flat_map(|(map, _)| map);
        known.into_iter().all(|map| map.has_requests)
    }

    /// The number of the file that holds an offset of a worker, and the offset in it.
    fn place(&self, files: &Files<'_>, worker: u32, offset: u64) -> (usize, u64) {
        match files.stripe {
            Some(stripe) => stripe.place(offset),
            None => (worker as usize % self.0.len(), offset),
        }
    }
}

/// The requests that a worker noted, with the sectors that they cover.
fn traced<'a>(
    noted: &'a NotedRequests,
    files: &'a Files<'_>,
    maps: &'a SectorMaps,
) -> impl Iterator<Item = TracedRequest> + 'a {
    noted.requests.iter().map(move |request| {
        let (number, offset) = maps.place(files, noted.worker, request.offset);
        let map = maps.0[number].0.as_ref().ok();
        TracedRequest {
            start: request.started,
            end: request.ended,
            writes: request.writes,
            thread: noted.thread,
            disk: map.map_or(0, |map| kernel_number(map.disk)),
            sectors: map.map_or_else(Vec::new, |map| {
                map.of_request(offset, request.len).collect()
            }),
        }
    })
}

/// The syncs that a worker noted.
fn traced_syncs<'a>(
    noted: &'a NotedRequests,
    files: &'a Files<'_>,
    maps: &'a SectorMaps,
) -> impl Iterator<Item = TracedSync> + 'a {
    noted.syncs.iter().map(move |sync| {
        let (number, _) = maps.place(files, noted.worker, sync.offset);
        let (map, place) = &maps.0[number];
        TracedSync {
            start: sync.started,
            end: sync.ended,
            thread: noted.thread,
            disk: map.as_ref().map_or(0, |map| kernel_number(map.disk)),
            file_system: place.file_system.map(kernel_number),
            inode: place.inode,
            journal: place.journal,
        }
    })
}

/// What the joined requests and syncs of these numbers show.
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
            journal: own.journal,
            stages: None,
        };
    }
    let no_queue =
        "the device has no queue of requests: its time begins when it is given the request";
    let notes = [
        recording.until.map(|_| only_first(all)),
        (!own.has_queue).then(|| no_queue.to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let entered = joined.syncs.are_entered(own.syncs.iter().copied());
    let is_seen = |stage| match stage {
        Stage::Queue => own.has_queue,
        Stage::SyncAdmission => entered,
        Stage::SyncJournal => own.journal != Some(Journal::Absent),
        Stage::Admission
        | Stage::Device
        | Stage::Delivery
        | Stage::Completion
        | Stage::CpuWait
        | Stage::Reaping
        | Stage::SyncHost
        | Stage::SyncWrite
        | Stage::SyncFlush
        | Stage::SyncDelivery => true,
    };
    Traced {
        counts,
        note: notes.join("; "),
        journal: own.journal,
        stages: StageTimes::of(&times, &sync_times, is_seen),
    }
}

/// Which requests the stages are of, where there was no room for all.
fn only_first(requests: u64) -> String {
    format!(
        "the trace holds only the first {}: it has no room for more",
        counted(requests, "request")
    )
}

/// Why the stages of the joined requests do not stand for all.
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

/// Stages that follow each other, in ticks, in ns: their sum is that of the ticks as the latency is recorded.
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

/// The same of a sync.
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
