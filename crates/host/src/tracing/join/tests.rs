//! Requests and events made up together, so that the right answer is known.

use proptest::prelude::*;

use super::*;
use crate::tracing::event::{Step, ThreadMoment, TraceEventKind};
use iolab_workload::stages::Stage;

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

fn block(at: u64, step: Step, first: u64, count: u32) -> Event {
    Event {
        at,
        kind: TraceEventKind::Block {
            step,
            disk: DISK,
            first,
            count,
            transfer: Transfer::Read,
            metadata: false,
            thread: 0,
        },
    }
}

/// Events of one request of a device.
fn events_of(first: u64, count: u32, [start, issue, complete]: [u64; 3]) -> [Event; 3] {
    [
        block(start, Step::Start, first, count),
        block(issue, Step::Issue, first, count),
        block(complete, Step::Complete, first, count),
    ]
}

fn thread(at: u64, moment: ThreadMoment) -> Event {
    let kind = TraceEventKind::Scheduled(7, moment);
    Event { at, kind }
}

fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| event.at);
    events
}

fn whole(stages: &PerStage<u64>) -> u64 {
    Stage::WHOLE.iter().map(|stage| stages[*stage]).sum()
}

fn counts(joined: &Joined) -> TraceCounts {
    joined.counts(0..joined.stages.len(), [])
}

#[test]
fn each_stage_is_between_two_events() {
    let mut events = events_of(80, 8, [110, 120, 220]).to_vec();
    events.extend([
        thread(230, ThreadMoment::Woken),
        thread(290, ThreadMoment::Runs),
    ]);
    let joined = join(&[request(100, 300, 80, 8)], &[], &in_order(events));
    let expected = PerStage {
        admission: 10,
        queue: 10,
        device: 100,
        delivery: 80,
        completion: 10,
        cpu_wait: 60,
        reaping: 10,
        ..PerStage::default()
    };
    assert_eq!(joined.stages, [Some(expected)]);
}

#[test]
fn preempted_thread_waits_for_a_cpu_after_completion() {
    for (before, expected) in [
        // A thread that never slept: it was preempted, and not running when the device was done.
        (vec![], (0, 70, 10)),
        // A thread asleep for another request, woken before the device is done, then waiting for a CPU.
        (vec![thread(210, ThreadMoment::Woken)], (0, 70, 10)),
    ] {
        let mut events = events_of(80, 8, [110, 120, 220]).to_vec();
        events.extend(before);
        events.push(thread(290, ThreadMoment::Runs));
        let joined = join(&[request(100, 300, 80, 8)], &[], &in_order(events));
        let seen = joined.stages[0].expect("joined");
        assert_eq!((seen.completion, seen.cpu_wait, seen.reaping), expected);
    }
    // A thread that ran all the time.
    let joined = join(
        &[request(100, 300, 80, 8)],
        &[],
        &events_of(80, 8, [110, 120, 220]),
    );
    assert_eq!(joined.stages[0].expect("joined").reaping, 80);
}

#[test]
fn split_request_has_stages_of_its_last_part() {
    let mut events = events_of(0, 8, [110, 120, 150]).to_vec();
    events.extend(events_of(8, 8, [130, 140, 180]));
    let requests = [request(100, 200, 0, 16)];
    let joined = join(&requests, &[], &in_order(events.clone()));
    let seen = joined.stages[0].expect("joined");
    assert_eq!(
        (seen.admission, seen.queue, seen.device, seen.delivery),
        (30, 10, 40, 20)
    );
    assert_eq!((counts(&joined).joined, counts(&joined).split), (1, 1));
    // Without its second part it is not joined.
    let joined = join(&requests, &[], &events[..3]);
    assert_eq!((counts(&joined).joined, counts(&joined).unjoined), (0, 1));
}

#[test]
fn part_begun_early_belongs_to_the_only_request() {
    let events = events_of(80, 8, [95, 120, 180]);
    let joined = join(&[request(100, 200, 80, 8)], &[], &events);
    let seen = joined.stages[0].expect("joined");
    assert_eq!((seen.admission, seen.queue, whole(&seen)), (0, 20, 100));
    // Two requests of the same sectors at once: the other one was there first.
    let requests = [request(140, 250, 80, 8), request(90, 190, 80, 8)];
    let joined = join(&requests, &[], &events);
    assert_eq!(joined.stages[0], None);
    assert!(joined.stages[1].is_some());
}

#[test]
fn requests_of_others_are_counted_and_join_nothing() {
    let mut events = events_of(80, 8, [110, 120, 190]).to_vec();
    // Other sectors; before ours was issued; still in flight when ours ended; a write.
    events.extend(events_of(800, 8, [110, 120, 190]));
    events.extend(events_of(0, 8, [50, 60, 90]));
    events.extend(events_of(88, 8, [150, 160, 400]));
    let joined = join(&[request(100, 200, 80, 8)], &[], &in_order(events));
    assert_eq!((counts(&joined).joined, counts(&joined).others), (1, 3));
}

/// Concurrent requests of a trial, each split into parts at random moments.
fn streams() -> impl Strategy<Value = (Vec<TracedRequest>, Vec<Event>)> {
    let one = (
        0u64..1000,
        1u32..5,
        proptest::collection::vec(1u64..50, 3),
        1u64..50,
    );
    proptest::collection::vec(one, 1..60).prop_map(|list| {
        let (mut requests, mut events) = (Vec::new(), Vec::new());
        for (number, (start, parts, steps, rest)) in list.into_iter().enumerate() {
            let first = number as u64 * 64;
            let mut end = start;
            for part in 0..parts {
                let mut at = start + u64::from(part);
                let moments = [0, 1, 2].map(|step: usize| {
                    at += steps[step] * u64::from(part + 1);
                    at
                });
                end = end.max(at);
                events.extend(events_of(first + u64::from(part) * 8, 8, moments));
            }
            requests.push(request(start, end + rest, first, parts * 8));
        }
        (requests, in_order(events))
    })
}

proptest! {
    #[test]
    fn every_joined_request_has_stages_adding_up((requests, events) in streams()) {
        let joined = join(&requests, &[], &events);
        prop_assert_eq!(counts(&joined).joined, requests.len() as u64);
        prop_assert_eq!(counts(&joined).others, 0);
        for (request, stages) in requests.iter().zip(&joined.stages) {
            let stages = stages.expect("joined");
            prop_assert_eq!(whole(&stages), request.end - request.start);
            let delivery = stages.completion + stages.cpu_wait + stages.reaping;
            prop_assert_eq!(delivery, stages.delivery);
        }
    }

    #[test]
    fn stages_add_up_after_loss_of_events(
        (requests, events) in streams(), lost in any::<u64>(),
    ) {
        let kept: Vec<Event> = events.into_iter().enumerate()
            .filter(|(number, _)| lost >> (number % 64) & 1 == 0)
            .map(|(_, event)| event)
            .collect();
        let joined = join(&requests, &[], &kept);
        for (request, stages) in requests.iter().zip(&joined.stages) {
            if let Some(stages) = stages {
                prop_assert_eq!(whole(stages), request.end - request.start);
            }
        }
        prop_assert_eq!(counts(&joined).joined + counts(&joined).unjoined, requests.len() as u64);
    }
}
