//! A file system in user space whose speed is known.

use iolab_truth::scenarios::{DELAYED, DRIFT, SERIAL, STEP, TWO_MODES, USER_SPACE, USER_SPACE_BUFFERED};

use crate::stage::perform;

#[test]
fn what_lies_in_user_space_is_unknown() {
    perform(&USER_SPACE);
}

#[test]
fn an_empty_page_cache_serves_nothing() {
    perform(&USER_SPACE_BUFFERED);
}

/// The file system itself measures how long it held each request; the way there and back is what a request costs
/// that is not held.
#[test]
fn the_median_latency_is_the_delay() {
    let Some(way) = perform(&USER_SPACE) else { return };
    let way_ns = way.seen.number("latency_p50_ns_median");
    drop(way);
    let Some(done) = perform(&DELAYED) else { return };
    let held_ns = done.scene.fuse.as_ref().expect("FUSE").ledger().median_held_ns();
    let (truth, measured) = (held_ns + way_ns, done.seen.number("latency_p50_ns_median"));
    let off = (measured - truth).abs();
    assert!(off <= 20_000.0 || off <= 0.03 * truth, "{measured} ns, and {held_ns} + {way_ns} are true");
}

/// Little's law: throughput times latency is the number in the system; what is being served is throughput times the
/// time of one.
#[test]
fn four_threads_at_one_counter_wait_for_each_other() {
    let Some(done) = perform(&SERIAL) else { return };
    let ledger = done.scene.fuse.as_ref().expect("FUSE").ledger();
    assert_eq!(ledger.most_at_once, 1, "the truth");
    let iops = done.seen.number("iops_median");
    let inside = iops * done.seen.number("latency_p50_ns_median") / 1e9;
    let served = iops * ledger.median_held_ns() / 1e9;
    assert!((3.5..4.2).contains(&inside), "{inside} in the system");
    assert!((0.8..=1.01).contains(&served), "{served} being served");
}

#[test]
fn a_step_is_noticed() {
    perform(&STEP);
}

#[test]
fn a_drift_is_noticed() {
    perform(&DRIFT);
}

#[test]
fn two_modes_are_noticed() {
    perform(&TWO_MODES);
}
