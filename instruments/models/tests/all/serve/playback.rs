//! The timing of requests, without a clock.

use std::collections::HashMap;

use crate::{built_in, drain};
use iolab_models::build;
use iolab_models::definition::Definition;
use iolab_models::serve::{Due, Playback, Speed};
use iolab_workload::virtual_disk::{Completion, Ns, Op, Request};
use proptest::prelude::*;

const MEMORY: u64 = 1 << 20;

/// A model of 1 MiB whose top is this part.
fn model(part: &str) -> Definition {
    Definition::parse(&format!(
        "title = \"a test\"\nsource = []\n[model.{part}\ninner.memory = {MEMORY}\n"
    ))
    .unwrap()
}

fn fixed() -> Definition {
    model("latency]\nread_us = 5000\nwrite_us = 2000")
}

/// Models whose completions come alone, in rows, out of order, and from events inside the model.
fn models() -> Vec<Definition> {
    let serial = "server]\nslots = 1\ninner.latency = { read_us = 300, write_us = 70, inner.memory = 1048576 }";
    vec![
        fixed(),
        Definition::parse(&format!("title = \"t\"\nsource = []\n[model.{serial}\n")).unwrap(),
        model("limit]\nrequests = { sustained = 2000, burst = 9000, credits = 5 }"),
        model("cache]\nbytes = 65536\nline = 4096\nhit_us = 3"),
        built_in("hp-97560"),
        built_in("sata-7200"),
    ]
}

/// Requests with the times between them, ns.
fn requests() -> impl Strategy<Value = Vec<(Ns, Request)>> {
    let request = (0..4u8, 0..240u64, 1..5u64).prop_map(|(op, page, pages)| match op {
        0 => Request::flush(),
        1 => Request::write(page * 4096, pages * 4096),
        _ => Request::read(page * 4096, pages * 4096),
    });
    prop::collection::vec((0..3_000_000u64, request), 1..40)
}

/// Each due request with the time at which it was taken. Requests are carried through a playback; between
/// arrivals the thread looks every `step` ns at the earliest.
fn carried(
    definition: &Definition,
    speed: Speed,
    step: Ns,
    requests: &[(Ns, Request)],
) -> Vec<(Ns, Due, usize)> {
    let mut playback = Playback::new(build(definition, 1).unwrap(), speed);
    let mut taken = Vec::new();
    let mut now = 0;
    let mut take = |playback: &mut Playback<usize>, at: Ns| {
        while let Some((due, answer)) = playback.take(at) {
            taken.push((at, due, answer));
        }
    };
    for (n, (gap, request)) in requests.iter().enumerate() {
        let arrival = now + gap;
        while let Some(next) = playback.next().filter(|&next| next < arrival) {
            now = next.max(now + step).min(arrival);
            take(&mut playback, now);
        }
        now = arrival;
        playback.arrive(now, *request, n);
    }
    while let Some(next) = playback.next() {
        now = now.max(next);
        take(&mut playback, now);
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_is_taken_once_when_due(
        requests in requests(),
        which in 0..6usize,
        speed in prop::sample::select(vec![0.001, 0.1, 0.3, 1.0, 7.7, 1000.0]),
        step in 0..2_000_000u64,
    ) {
        let speed = Speed::new(speed).unwrap();
        let taken = carried(&models()[which], speed, step, &requests);
        let mut seen: Vec<usize> = taken.iter().map(|one| one.2).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..requests.len()).collect::<Vec<_>>());
        let mut now = 0;
        for (n, (gap, request)) in requests.iter().enumerate() {
            now += gap;
            let (at, due, _) = taken.iter().find(|one| one.2 == n).unwrap();
            prop_assert_eq!(due.request, *request);
            prop_assert_eq!(due.arrived, now);
            prop_assert!(due.due >= due.arrived && *at >= due.due);
        }
        // A caller that looks at each time that `next` returns is never late.
        if step == 0 {
            for (at, due, _) in &taken {
                prop_assert_eq!(*at, due.due);
            }
        }
    }

    #[test]
    fn completions_in_real_time_equal_the_model(requests in requests(), which in 0..6usize) {
        let definition = &models()[which];
        let taken = carried(definition, Speed::REAL, 0, &requests);
        let due: HashMap<usize, Ns> = taken.iter().map(|(_, due, answer)| (*answer, due.due)).collect();
        let mut model = build(definition, 1).unwrap();
        let mut out: Vec<Completion> = Vec::new();
        let mut now = 0;
        for (n, (gap, request)) in requests.iter().enumerate() {
            now += gap;
            model.advance(now, &mut out);
            model.submit(now, n as u64, request);
        }
        drain(&mut *model, &mut out);
        prop_assert_eq!(out.len(), requests.len());
        for completion in out {
            prop_assert_eq!(due[&(completion.tag as usize)], completion.finished);
        }
    }

    #[test]
    fn to_real_gives_the_first_real_time(factor in 0.001..1000.0, time in 0..1u64 << 50) {
        let speed = Speed::new(factor).unwrap();
        let real = speed.to_real(time);
        prop_assert!(speed.to_virtual(real) >= time);
        prop_assert!(real == 0 || speed.to_virtual(real - 1) < time);
    }
}

#[test]
fn a_dilated_request_takes_as_much_longer() {
    let requests = [(7, Request::read(0, 4096)), (100, Request::write(0, 4096))];
    let due = |factor| {
        let taken = carried(&fixed(), Speed::new(factor).unwrap(), 0, &requests);
        let mut times: Vec<(Op, Ns)> = taken
            .iter()
            .map(|(_, due, _)| (due.request.op, due.due - due.arrived))
            .collect();
        times.sort_by_key(|(_, time)| *time);
        times
    };
    assert_eq!(due(1.0), [(Op::Write, 2_000_000), (Op::Read, 5_000_000)]);
    let slow = due(0.1);
    // Arrivals are rounded down to the virtual nanosecond, which is ten real ones here.
    for ((_, slow), expected) in slow.iter().zip([20_000_000, 50_000_000]) {
        assert!(slow.abs_diff(expected) < 10, "{slow} {expected}");
    }
}

#[test]
fn speeds_out_of_reach_are_none() {
    for factor in [0.0, -1.0, 0.0009, 1001.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Speed::new(factor), None, "{factor}");
    }
    assert_eq!(Speed::new(1.0), Some(Speed::REAL));
}

#[test]
fn an_abandoned_course_has_nothing_left() {
    let mut playback = Playback::new(build(&fixed(), 0).unwrap(), Speed::REAL);
    playback.arrive(0, Request::read(0, 1), ());
    playback.arrive(0, Request::read(0, 1), ());
    assert_eq!((playback.next(), playback.most()), (Some(5_000_000), 2));
    playback.abandon();
    assert!(playback.take(10_000_000).is_none());
    assert_eq!(playback.next(), None);
}
