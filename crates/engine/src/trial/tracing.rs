//! Splits the time of each request of a trial by layer: the requests that workers noted, joined with what the kernel traced.

use super::Job;
use super::files::Files;
use crate::worker::{NotedRequests, WorkerOutcome};
use iolab_host::clock::Clock;
use iolab_host::tracing::join::{Joined, TracedRequest, join};
use iolab_host::tracing::{DiskNumber, Recording, Tracer, kernel_number};
use iolab_storage::Target;
use iolab_storage::sectors::SectorMap;
use iolab_workload::quantity::counted;
use iolab_workload::stages::{PerStage, Stage, StageTimes, TraceCounts, Traced};
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

/// What traces the disks of those jobs that are to be traced; `None` where none is.
pub(super) fn tracer(jobs: &[Job<'_>], clock: &Clock) -> Result<Option<Tracer>> {
    let files = jobs.iter().filter(|job| job.spec.trace);
    let parts = files
        .filter_map(|job| job.files)
        .flat_map(|files| files.parts());
    let mut disks: Vec<(DiskNumber, bool)> =
        parts.filter_map(|part| part.target().disk().ok()).collect();
    disks.sort_unstable();
    disks.dedup();
    match disks.is_empty() {
        true => Ok(None),
        false => Tracer::new(&disks, clock).map(Some),
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
    let mut noted: Vec<Vec<NotedRequests>> = workers
        .iter_mut()
        .map(|workers| {
            workers
                .iter_mut()
                .filter_map(|worker| worker.noted.take())
                .collect()
        })
        .collect();
    let threads: Vec<u32> = noted.iter().flatten().map(|noted| noted.thread).collect();
    let recording = tracer.finish(&threads)?;
    let mut requests = Vec::new();
    let mut owners = Vec::new();
    let mut facts = Vec::new();
    for (number, (job, noted)) in jobs.iter().zip(&mut noted).enumerate() {
        let Some(files) = job.files.filter(|_| job.spec.trace) else {
            facts.push(None);
            continue;
        };
        let maps = SectorMaps::of(files);
        let before = requests.len();
        for own in noted.drain(..) {
            requests.extend(traced(&own, files, &maps, recording.until));
        }
        owners.extend(std::iter::repeat_n(number, requests.len() - before));
        facts.push(Some(maps));
    }
    let joined = join(&requests, &recording.events);
    let is_of = |owner: Option<usize>| {
        let stages = joined.stages.iter().zip(&owners);
        let own = stages.filter(move |(_, own)| owner.is_none_or(|owner| **own == owner));
        own.map(|(stages, _)| *stages)
    };
    let has_requests = |maps: &SectorMaps| maps.has_requests();
    let each = facts.iter().enumerate().map(|(number, maps)| {
        let queues = maps.as_ref().map(has_requests)?;
        Some(tell(
            is_of(Some(number)),
            &joined,
            &recording,
            queues,
            clock,
        ))
    });
    let each = each.collect();
    let queues = facts.iter().flatten().all(has_requests);
    Ok(TracedJobs {
        each,
        all: Some(tell(is_of(None), &joined, &recording, queues, clock)),
    })
}

/// Where the bytes of each file of a job lie.
struct SectorMaps(Vec<std::result::Result<SectorMap, &'static str>>);

impl SectorMaps {
    /// As the files are after the trial: writes may have given them their place.
    fn of(files: &Files<'_>) -> Self {
        let parts = files.parts().iter();
        Self(
            parts
                .map(|part| part.target().sectors(&part.range()))
                .collect(),
        )
    }

    fn has_requests(&self) -> bool {
        self.0.iter().flatten().all(|map| map.has_requests)
    }
}

/// The requests that a worker noted, with the sectors that they cover; those that ended after `until` are left out.
fn traced<'a>(
    noted: &'a NotedRequests,
    files: &'a Files<'_>,
    maps: &'a SectorMaps,
    until: Option<u64>,
) -> impl Iterator<Item = TracedRequest> + 'a {
    let within = noted
        .requests
        .iter()
        .filter(move |request| until.is_none_or(|until| request.ended <= until));
    within.map(move |request| {
        let (number, offset) = match files.stripe {
            Some(stripe) => stripe.place(request.offset),
            None => (noted.worker as usize % maps.0.len(), request.offset),
        };
        let map = maps.0[number].as_ref().ok();
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

/// What some of the joined requests show.
fn tell(
    stages: impl Iterator<Item = Option<PerStage<u64>>>,
    joined: &Joined,
    recording: &Recording,
    has_queue: bool,
    clock: &Clock,
) -> Traced {
    let (mut times, mut unjoined) = (Vec::new(), 0);
    for ticks in stages {
        match ticks {
            Some(ticks) => times.push(in_ns(&ticks, clock)),
            None => unjoined += 1,
        }
    }
    let counts = TraceCounts {
        joined: times.len() as u64,
        unjoined,
        lost: recording.lost,
        ..joined.counts
    };
    let all = counts.joined + counts.unjoined;
    if all == 0 || counts.unjoined_share() > TraceCounts::UNJOINED_MAX {
        return Traced {
            counts,
            note: not_joined(&counts),
            stages: None,
        };
    }
    let note = match has_queue {
        true => String::new(),
        false => {
            "the device has no queue of requests: its time begins when it is given the request"
                .to_owned()
        }
    };
    Traced {
        counts,
        note,
        stages: StageTimes::of(&times, |stage| has_queue || stage != Stage::Queue),
    }
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

/// Stages in ns whose sum is the time of the request in ns, as the latency is recorded.
fn in_ns(ticks: &PerStage<u64>, clock: &Clock) -> PerStage<u64> {
    let (mut at, mut at_ns) = (0, 0);
    let mut next = |ticks: u64| {
        at += ticks;
        let before = std::mem::replace(&mut at_ns, clock.ns_between(0, at));
        at_ns - before
    };
    let (admission, queue, device) = (next(ticks.admission), next(ticks.queue), next(ticks.device));
    let (completion, cpu_wait, reaping) = (
        next(ticks.completion),
        next(ticks.cpu_wait),
        next(ticks.reaping),
    );
    PerStage {
        admission,
        queue,
        device,
        delivery: completion + cpu_wait + reaping,
        completion,
        cpu_wait,
        reaping,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stages_in_ns_add_up_to_the_recorded_latency(
            parts in proptest::collection::vec(0u64..1 << 40, 6), rate in 0.1f64..3.0,
        ) {
            let clock = Clock::of_rate(rate);
            let ticks = PerStage {
                admission: parts[0],
                queue: parts[1],
                device: parts[2],
                delivery: parts[3] + parts[4] + parts[5],
                completion: parts[3],
                cpu_wait: parts[4],
                reaping: parts[5],
            };
            let ns = in_ns(&ticks, &clock);
            let whole: u64 = Stage::WHOLE.iter().map(|stage| ns[*stage]).sum();
            prop_assert_eq!(whole, clock.ns_between(0, parts.iter().sum()));
            prop_assert_eq!(ns.delivery, ns.completion + ns.cpu_wait + ns.reaping);
        }
    }
}
