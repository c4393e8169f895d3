//! On made-up storage that stalls or is too slow. What is asserted are counts that hold on a loaded machine too.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::*;
use crate::buffer::Slot;
use crate::request::{Backend, SystemFailure};
use crate::worker::tests::run_first;
use iolab_workload::histogram::LatencyHistogram;
use needs::settings;

const MS: u64 = 1_000_000;

/// One request at a time, at once; but before one of them it takes a long break.
struct Stalling {
    queued: Option<Completion>,
    until_stall: u64,
    stall: Duration,
}

impl Stalling {
    fn new(until_stall: u64, stall_ms: u64) -> Self {
        Self {
            queued: None,
            until_stall,
            stall: Duration::from_millis(stall_ms),
        }
    }
}

impl Queue for Stalling {
    fn queue(&mut self, slot: Slot, request: Request) {
        let result = match request.action {
            Action::Fsync | Action::Fdatasync => 0,
            _ => i64::from(request.len),
        };
        self.queued = Some(Completion { slot, result });
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

impl Backend for Stalling {
    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        if self.until_stall == 0 {
            thread::sleep(self.stall);
        }
        self.until_stall = self.until_stall.wrapping_sub(1);
        done.extend(self.queued.take());
        Ok(())
    }
}

fn run(spec: &TrialSpec, backend: impl Backend, stop: bool) -> WorkerOutcome {
    run_first(spec, backend, &AtomicBool::new(stop)).0
}

fn longer_than(histogram: &LatencyHistogram, ns: u64) -> u64 {
    histogram.count_between(ns, u64::MAX)
}

#[test]
fn no_request_is_made_before_its_time() {
    let outcome = run(
        &settings("rate=1000 bytes=400k"),
        Stalling::new(9999, 0),
        false,
    );
    let clock = Clock::calibrate();
    // The last of them is due 99.5 ms after the start.
    assert!(clock.ns_between(outcome.start, outcome.end) >= 99 * MS);
    assert_eq!(outcome.account.operations.read.requests, 100);
    let rate_report = outcome.account.rate_report.expect("open loop");
    assert!(rate_report.rate_achieved < 1010.0, "{rate_report:?}");
    assert!((rate_report.rate_wanted - 1000.0).abs() < 1e-9);
}

#[test]
fn requests_that_may_be_late_are_issued_together() {
    let spec = TrialSpec {
        rate_slack: Duration::from_millis(40),
        ..settings("rate=1000 bytes=800k")
    };
    let outcome = run(&spec, Stalling::new(1000, 0), false);
    let waits = outcome.account.operations.read.waits.expect("open loop");
    assert_eq!(waits.lateness.len(), 200);
    // One sleep lasts for 40 requests, of which at least 35 are more than 4 ms late.
    let late = longer_than(&waits.lateness, 4 * MS);
    assert!(late >= 150, "{late}");
}

#[test]
fn a_small_backlog_at_the_end_is_completed() {
    // 15 ms before the 990th of 1000 requests.
    let outcome = run(
        &settings("rate=1000 time=1s"),
        Stalling::new(989, 15),
        false,
    );
    assert_eq!(outcome.account.ended, Ended::Time);
    let (made, rate_report) = (
        outcome.account.operations.read.requests,
        outcome.account.rate_report.expect("open loop"),
    );
    // A machine that stalls for longer than that has a larger backlog.
    assert!(
        made == 1000 || rate_report.backlog_end > 30,
        "{made} {rate_report:?}"
    );
    assert!(made <= 1000);
}

#[test]
fn far_starts_end_with_the_trial() {
    let outcome = run(&settings("rate=1 time=30ms"), Stalling::new(9999, 0), false);
    assert_eq!(
        (
            outcome.account.ended,
            outcome.account.operations.read.requests
        ),
        (Ended::Time, 0)
    );
    let rate_report = outcome.account.rate_report.expect("open loop");
    assert_eq!((rate_report.backlog_max, rate_report.backlog_end), (0, 0));
    let stopped = run(&settings("rate=1 time=60s"), Stalling::new(9999, 0), true);
    assert_eq!(stopped.account.ended, Ended::Interrupted);
}
