//! A file system in user space with known speed.

use iolab_truth::files::MIB;
use iolab_truth::scenarios::{
    DELAYED, DRIFT, SERIAL, SLOWS, STALL, STALL_CLOSED, STALL_OPEN, STEP, SWIFT, TWO_MODES,
    USER_SPACE, USER_SPACE_BUFFERED,
};

use crate::stage::{Performance, perform, perform_in_time, within};

#[test]
fn what_lies_in_user_space_is_unknown() {
    perform(&USER_SPACE);
}

#[test]
fn an_empty_page_cache_serves_nothing() {
    perform(&USER_SPACE_BUFFERED);
}

/// The file system itself measures how long it held each request. The rest of a request's time is the way there
/// and back.
#[test]
fn the_median_latency_is_the_delay() {
    let Some(way) = perform(&USER_SPACE) else {
        return;
    };
    let way_ns = way.seen.number("latency_p50_ns_median");
    drop(way);
    let Some(done) = perform_in_time(&DELAYED) else {
        return;
    };
    let held_ns = done.ledger().median_held_ns();
    let (truth, measured) = (held_ns + way_ns, done.seen.number("latency_p50_ns_median"));
    let off = (measured - truth).abs();
    assert!(
        off <= 20_000.0 || off <= 0.03 * truth,
        "{measured} ns, and {held_ns} + {way_ns} are true"
    );
}

/// Little's law: throughput times mean latency is the number of requests in the system; throughput times mean
/// service time is the number being served.
#[test]
fn four_threads_at_a_serial_server_wait() {
    let Some(done) = perform(&SERIAL) else { return };
    let ledger = done.ledger();
    assert_eq!(ledger.most_at_once, 1, "the truth");
    for sample in done.seen.measured().filter(|sample| sample["threads"] == 4) {
        let of = |name: &str| sample[name].as_f64().expect("a number");
        let inside = of("iops") * of("read_latency_mean_ns") / 1e9;
        let served = of("iops") * ledger.mean_held_ns() / 1e9;
        assert!((3.6..4.1).contains(&inside), "{inside} in the system");
        assert!((0.3..1.3).contains(&served), "{served} being served");
    }
}

/// Both groups are reported with their latency: 2 ms and 8 ms, plus the way there and back.
#[track_caller]
fn tells_two_and_eight_ms(done: &Performance) {
    let low = done.seen.told("of them around ", " ms,").expect("told");
    let high = done.seen.told("the others around ", " ms.").expect("told");
    assert!((2.0..2.5).contains(&low), "{low} ms");
    assert!((8.0..9.0).contains(&high), "{high} ms");
}

#[test]
fn a_step_is_noticed() {
    let Some(done) = perform_in_time(&STEP) else {
        return;
    };
    tells_two_and_eight_ms(&done);
}

/// The place is known to within a trial of 100 requests of 64 KiB while it is fast.
#[test]
fn slowdown_is_reported_with_the_bytes_written() {
    let Some(done) = perform_in_time(&SLOWS) else {
        return;
    };
    let mib = done.seen.told("After ", " MiB written").expect("told");
    let truth = (SWIFT / MIB) as f64;
    assert!((mib - truth).abs() < 8.0, "{mib} MiB and not {truth}");
}

/// 80 us per trial, reported as a share of the median.
#[test]
fn a_drift_is_noticed() {
    let Some(done) = perform_in_time(&DRIFT) else {
        return;
    };
    let percent = done.seen.told(" by +", " % per trial").expect("told");
    let slope_ns = percent / 100.0 * done.seen.number("latency_p50_ns_median");
    assert!(within(slope_ns, 80_000.0, 0.2), "{slope_ns} ns a trial");
}

#[test]
fn two_modes_are_noticed() {
    let Some(done) = perform_in_time(&TWO_MODES) else {
        return;
    };
    tells_two_and_eight_ms(&done);
}

#[test]
fn stall_is_one_slow_request_when_closed() {
    let Some(done) = perform(&STALL_CLOSED) else {
        return;
    };
    for sample in done.seen.measured() {
        let of = |quantile: &str| {
            sample[format!("read_latency_{quantile}_ns")]
                .as_f64()
                .expect("a latency")
        };
        assert!(of("max") >= STALL.as_nanos() as f64 * 0.99);
        assert!(of("p99") < STALL.as_nanos() as f64 * 0.1);
    }
}

#[test]
fn stall_delays_most_requests_of_an_open_loop() {
    let Some(done) = perform(&STALL_OPEN) else {
        return;
    };
    let stall = STALL.as_nanos() as f64;
    for sample in done.seen.measured() {
        let of = |quantile: &str| {
            sample[format!("read_response_{quantile}_ns")]
                .as_f64()
                .expect("a latency")
        };
        // 400 of 700 requests wait for the end of the stall: the median one for 0.25 s.
        assert!((0.9 * stall..1.2 * stall).contains(&of("p99")), "{sample}");
        let service = sample["read_latency_p99_ns"].as_f64().expect("a time");
        assert!(
            service < 0.1 * stall,
            "the service time does not show it: {sample}"
        );
        assert!(of("p50") > 0.05 * stall, "{sample}");
    }
}
