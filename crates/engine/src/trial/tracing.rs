//! Splits the time of each request of a trial by layer: the requests that workers noted, joined with what the kernel traced.

use std::ops::Range;

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
    let mut requests = Vec::new();
    let mut of_jobs = Vec::new();
    for (job, noted) in jobs.iter().zip(&noted) {
        let Some(files) = job.files.filter(|_| job.spec.trace) else {
            of_jobs.push(None);
            continue;
        };
        let maps = SectorMaps::of(files);
        let before = requests.len();
        for own in noted {
            requests.extend(traced(own, files, &maps));
        }
        of_jobs.push(Some(JobRequests {
            numbers: before..requests.len(),
            has_queue: maps.has_requests(),
        }));
    }
    Ok(tell_jobs(&requests, &of_jobs, recording, clock))
}

/// The requests of a job among those of all.
struct JobRequests {
    numbers: Range<usize>,
    /// Whether its disks have queues of requests.
    has_queue: bool,
}

/// What the requests of each job show, and those of all; `None` for a job that is not traced. Those that ended after the recording join
/// what it has of them, so that it is not taken for the requests of others, and are left out then.
fn tell_jobs(
    requests: &[TracedRequest],
    of_jobs: &[Option<JobRequests>],
    mut recording: Recording,
    clock: &Clock,
) -> TracedJobs {
    let until = recording.until.unwrap_or(u64::MAX);
    recording.events.retain(|event| event.at <= until);
    let joined = join(requests, &recording.events);
    let within = |numbers: Range<usize>| -> Vec<usize> {
        numbers
            .filter(|number| requests[*number].end <= until)
            .collect()
    };
    let each = of_jobs.iter().map(|job| {
        let job = job.as_ref()?;
        let own = within(job.numbers.clone());
        Some(tell(&own, &joined, &recording, job.has_queue, clock))
    });
    let each = each.collect();
    let all = within(0..requests.len());
    let have_queues = of_jobs.iter().flatten().all(|job| job.has_queue);
    TracedJobs {
        each,
        all: Some(tell(&all, &joined, &recording, have_queues, clock)),
    }
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

/// The requests that a worker noted, with the sectors that they cover.
fn traced<'a>(
    noted: &'a NotedRequests,
    files: &'a Files<'_>,
    maps: &'a SectorMaps,
) -> impl Iterator<Item = TracedRequest> + 'a {
    noted.requests.iter().map(move |request| {
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

/// What the joined requests of these numbers show.
fn tell(
    numbers: &[usize],
    joined: &Joined,
    recording: &Recording,
    has_queue: bool,
    clock: &Clock,
) -> Traced {
    let stages = numbers.iter().filter_map(|number| joined.stages[*number]);
    let times: Vec<PerStage<u64>> = stages.map(|ticks| in_ns(&ticks, clock)).collect();
    let counts = TraceCounts {
        lost: recording.lost,
        ..joined.counts(numbers.iter().copied())
    };
    let all = counts.joined + counts.unjoined;
    if all == 0 || counts.unjoined_share() > TraceCounts::UNJOINED_MAX {
        return Traced {
            counts,
            note: not_joined(&counts),
            stages: None,
        };
    }
    let no_queue =
        "the device has no queue of requests: its time begins when it is given the request";
    let notes = [
        recording.until.map(|_| only_first(all)),
        (!has_queue).then(|| no_queue.to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    Traced {
        counts,
        note: notes.join("; "),
        stages: StageTimes::of(&times, |stage| has_queue || stage != Stage::Queue),
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

    use iolab_host::tracing::{Event, Kind, Step, Transfer};
    use iolab_storage::sectors::Sectors;

    use super::*;

    const DISK: u32 = 8 << 20;

    fn request(start: u64, end: u64, first: u64, count: u32) -> TracedRequest {
        TracedRequest {
            start,
            end,
            writes: false,
            thread: 7,
            disk: DISK,
            sectors: vec![Sectors { first, count }],
        }
    }

    /// The events of one request of a device, which takes from `start` to `complete`.
    fn events_of(first: u64, count: u32, start: u64, complete: u64) -> [Event; 3] {
        let steps = [
            (start, Step::Start),
            (start + 1, Step::Issue),
            (complete, Step::Complete),
        ];
        steps.map(|(at, step)| Event {
            at,
            kind: Kind::Block {
                step,
                disk: DISK,
                first,
                count,
                transfer: Transfer::Read,
            },
        })
    }

    fn told(
        requests: &[TracedRequest],
        jobs: &[Range<usize>],
        events: &[[Event; 3]],
        until: Option<u64>,
    ) -> TracedJobs {
        let mut events = events.concat();
        events.sort_by_key(|event| event.at);
        let recording = Recording {
            events,
            lost: 0,
            until,
        };
        let of_jobs = jobs.iter().map(|numbers| {
            Some(JobRequests {
                numbers: numbers.clone(),
                has_queue: true,
            })
        });
        let of_jobs: Vec<Option<JobRequests>> = of_jobs.collect();
        tell_jobs(requests, &of_jobs, recording, &Clock::of_rate(1.0))
    }

    #[test]
    fn each_job_has_the_counts_of_its_own_requests() {
        let requests = [
            request(100, 200, 0, 16),
            request(100, 200, 80, 8),
            request(100, 200, 160, 8),
        ];
        let events = [
            events_of(0, 8, 110, 150),
            events_of(8, 8, 120, 160),
            events_of(80, 8, 110, 150),
            events_of(160, 8, 110, 150),
            events_of(800, 8, 110, 150),
        ];
        let jobs = told(&requests, &[0..1, 1..3], &events, None);
        let of = |traced: &Option<Traced>| {
            let counts = traced.as_ref().expect("traced").counts;
            (counts.joined, counts.split, counts.others)
        };
        assert_eq!(of(&jobs.each[0]), (1, 1, 1));
        assert_eq!(of(&jobs.each[1]), (2, 0, 1));
        assert_eq!(of(&jobs.all), (3, 1, 1));
    }

    /// Two requests are noted, of which the second ends late; the third, from 300 on, was left out.
    #[test]
    fn requests_without_room_are_told_and_are_not_those_of_others() {
        let requests = [request(100, 200, 0, 8), request(150, 400, 8, 8)];
        let events = [
            events_of(0, 8, 110, 190),
            events_of(8, 8, 160, 290),
            events_of(16, 8, 310, 390),
        ];
        let job = std::slice::from_ref(&(0..2));
        let jobs = told(&requests, job, &events, Some(300));
        let all = jobs.all.expect("traced");
        assert_eq!((all.counts.joined, all.counts.unjoined), (1, 0));
        assert_eq!(all.counts.others, 0);
        insta::assert_snapshot!(all.note, @"the trace holds only the first 1 request: it has no room for more");
        let whole = told(&requests, job, &events[..2], None);
        assert_eq!(whole.all.expect("traced").note, "");
    }

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
