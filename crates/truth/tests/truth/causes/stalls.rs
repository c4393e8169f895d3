//! Stalls at every n-th request, alone and together with another cause. No setting of a trial removes them.

use std::time::Duration;

use iolab_truth::fuse::{Behaviour, Stall};

use super::{
    World, cached, explain_served, explain_threads_without_suspect, random_against_sequential,
    threads_on_one_descriptor, unexplained,
};

/// One request at a time, and every 20th is held longer: no setting changes that, and none is accused.
#[test]
fn a_serial_server_that_stalls_is_not_explained() {
    let behaviour = Behaviour {
        delay: |context| match context.request % 20 {
            19 => Duration::from_millis(4),
            _ => Duration::from_micros(400),
        },
        serial: true,
        ..Behaviour::default()
    };
    let Some(all) = explain_threads_without_suspect(behaviour, "100ms") else {
        return;
    };
    let rest = unexplained(&all);
    assert!(rest.is_some_and(|share| share > 0.8), "{rest:?}");
}

/// Threads that share a descriptor, and a server that holds every 20th request of each open file longer,
/// several at once. That slows threads with their own descriptors as much as a single one.
#[test]
fn a_shared_descriptor_is_named_beside_stalls() {
    let behaviour = Behaviour {
        delay: |context| match context.request % 20 {
            19 => Duration::from_millis(20),
            _ => Duration::from_millis(2),
        },
        ..Behaviour::default()
    };
    let world = World {
        shown_by: &threads_on_one_descriptor("backend=sync", "region=32M", "100ms"),
        planted: &["shared-descriptor"],
        budget: "60s",
        more: &[],
    };
    explain_served(behaviour, &world);
}

/// Threads that share a descriptor, and a server that stalls as a whole at every 20th request. 20 requests take
/// one thread 50 ms, and 8 threads with their own descriptors 15 ms: 3.3 times as fast, where 8 times is the
/// expectation. The descriptor causes 58 % of the missing logarithm, and the stalls the rest.
#[test]
fn server_stalls_remain_without_the_shared_descriptor() {
    let behaviour = Behaviour {
        delay: |_| Duration::from_millis(2),
        stall: Some(Stall {
            every: 20,
            time: Duration::from_millis(10),
        }),
        ..Behaviour::default()
    };
    let world = World {
        shown_by: &threads_on_one_descriptor("backend=sync", "region=32M", "200ms"),
        planted: &["shared-descriptor"],
        budget: "90s",
        more: &[],
    };
    let Some(all) = explain_served(behaviour, &world) else {
        return;
    };
    let rest = unexplained(&all);
    assert!(
        rest.is_some_and(|share| (0.25..0.65).contains(&share)),
        "{rest:?}"
    );
}

/// A cache smaller than the region, and stalls of all requests. Stalls make both sides slower and the
/// difference smaller, so they are not a part of it.
#[test]
fn a_cache_is_named_beside_stalls() {
    let behaviour = Behaviour {
        stall: Some(Stall {
            every: 50,
            time: Duration::from_millis(10),
        }),
        // Otherwise more requests in flight would reach the limit by the stalls on both sides.
        serial: true,
        ..cached()
    };
    let world = World {
        shown_by: &random_against_sequential("150ms"),
        planted: &["reach"],
        budget: "90s",
        more: &[],
    };
    explain_served(behaviour, &world);
}
