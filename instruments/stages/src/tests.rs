//! Stages that are derived from made-up requests and events.

use proptest::prelude::*;

use iolab_host::tracing::{Event, Step, TraceEventKind, Transfer};
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

fn event(at: u64, step: Step, first: u64, count: u32, transfer: Transfer) -> Event {
    Event {
        at,
        kind: TraceEventKind::Block {
            step,
            disk: DISK,
            first,
            count,
            transfer,
            metadata: false,
            thread: 0,
        },
    }
}

/// The events of one request of a device, which takes from `start` to `complete`.
fn events_of(first: u64, count: u32, start: u64, complete: u64) -> [Event; 3] {
    let steps = [
        (start, Step::Start),
        (start + 1, Step::Issue),
        (complete, Step::Complete),
    ];
    steps.map(|(at, step)| event(at, step, first, count, Transfer::Read))
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
            requests: numbers.clone(),
            syncs: 0..0,
            has_queue: true,
            carried_by: CarriedBy::Disk,
        })
    });
    let of_jobs: Vec<Option<JobRequests>> = of_jobs.collect();
    tell_jobs((requests, &[]), &of_jobs, recording, &Clock::of_rate(1.0))
}

#[test]
fn each_job_counts_its_own_requests() {
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
    let of = |traced: &Option<TraceSummary>| {
        let counts = traced.as_ref().expect("traced").counts;
        (counts.joined, counts.split, counts.others)
    };
    assert_eq!(of(&jobs.each[0]), (1, 1, 1));
    assert_eq!(of(&jobs.each[1]), (2, 0, 1));
    assert_eq!(of(&jobs.all), (3, 1, 1));
}

/// Two requests are noted, of which the second ends late; the third, from 300 on, was left out.
#[test]
fn reports_requests_without_room_as_own() {
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
    fn request_stages_in_ns_add_up_to_latency(
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
            ..PerStage::default()
        };
        let ns = in_ns(&ticks, &clock);
        let whole: u64 = Stage::WHOLE.iter().map(|stage| ns[*stage]).sum();
        prop_assert_eq!(whole, clock.ns_between(0, parts.iter().sum()));
        prop_assert_eq!(ns.delivery, ns.completion + ns.cpu_wait + ns.reaping);
    }

    #[test]
    fn sync_stages_in_ns_add_up_to_latency(
        parts in proptest::collection::vec(0u64..1 << 40, 6), rate in 0.1f64..3.0,
    ) {
        let clock = Clock::of_rate(rate);
        let mut ticks = PerStage::default();
        for (stage, part) in Stage::SYNC.into_iter().zip(&parts) {
            ticks[stage] = *part;
        }
        let ns = sync_in_ns(&ticks, &clock);
        let whole: u64 = Stage::SYNC.iter().map(|stage| ns[*stage]).sum();
        prop_assert_eq!(whole, clock.ns_between(0, parts.iter().sum()));
    }
}

/// One write with its sync on a file system without a journal, and one on one with.
#[test]
fn no_journal_is_an_answer() {
    let requests = [request(100, 200, 0, 8)];
    let of = |journal| {
        let sync = TracedSync {
            start: 200,
            end: 300,
            thread: 7,
            disk: DISK,
            file_system: None,
            inode: 1,
            journal,
        };
        let mut events = events_of(0, 8, 110, 190).to_vec();
        let flush = [(220, Step::Issue), (280, Step::Complete)];
        events.extend(flush.map(|(at, step)| event(at, step, 0, 0, Transfer::Flush)));
        let recording = Recording {
            events,
            lost: 0,
            until: None,
        };
        let job = JobRequests {
            requests: 0..1,
            syncs: 0..1,
            has_queue: true,
            carried_by: CarriedBy::Disk,
        };
        let clock = Clock::of_rate(1.0);
        let told = tell_jobs((&requests, &[sync]), &[Some(job)], recording, &clock);
        let all = told.all.expect("traced");
        assert_eq!(all.journal, Some(journal));
        assert_eq!((all.counts.syncs.syncs, all.counts.syncs.flushes), (1, 1));
        assert_eq!(all.stages.sync_flush.map(|flush| flush.p50_ns), Some(60));
        assert_eq!(all.stages.sync_admission, None);
        all.stages.sync_journal.map(|journal| journal.p50_ns)
    };
    assert_eq!(of(Journal::Absent), None);
    assert_eq!(of(Journal::Commits), Some(0));
}

#[test]
fn the_tail_is_that_of_the_slowest_requests() {
    // 199 requests of 10 us in the device, and 1 that waited 990 us for a CPU after it.
    let fast = PerStage {
        device: 10_000,
        ..PerStage::default()
    };
    let slow = PerStage {
        device: 10_000,
        delivery: 990_000,
        cpu_wait: 990_000,
        ..PerStage::default()
    };
    let mut requests = vec![fast; 199];
    requests.push(slow);
    let summary = summaries(&requests, &[], |stage| stage != Stage::Queue);
    // The slowest 1 % are three of 200: from the 198th on.
    let tail = [summary.device, summary.delivery, summary.cpu_wait];
    let tail = tail.map(|stage| stage.map(|stage| stage.tail_mean_ns));
    assert_eq!(tail, [10_000.0, 330_000.0, 330_000.0].map(Some));
    assert_eq!(summary.queue, None);
    assert_eq!(summary.delivery.map(|delivery| delivery.p50_ns), Some(0));
    assert_eq!(summary.sync_flush, None);
    assert_eq!(summaries(&[], &[], |_| true), PerStage::default());
}

#[test]
fn syncs_have_their_own_stages_and_tail() {
    let request = PerStage {
        device: 10_000,
        ..PerStage::default()
    };
    let sync = |flush, journal| PerStage {
        sync_flush: flush,
        sync_journal: journal,
        ..PerStage::default()
    };
    let mut syncs = vec![sync(1_000, 0); 99];
    syncs.push(sync(1_000, 50_000));
    let summary = summaries(&[request], &syncs, |_| true);
    let tail = [summary.sync_journal, summary.device];
    let tail = tail.map(|stage| stage.map(|stage| stage.tail_mean_ns));
    assert_eq!(tail, [25_000.0, 10_000.0].map(Some));
    assert_eq!(summary.sync_flush.map(|flush| flush.p50_ns), Some(1_000));
    assert_eq!(summary.sync_journal.map(|journal| journal.p50_ns), Some(0));
}
