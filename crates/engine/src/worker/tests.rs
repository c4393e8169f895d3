//! On a backend whose mechanism fails with requests in flight.

use std::time::Duration;

use super::open::Open;
use super::*;
use iolab_spec::trial::{Limit, Rate};

const DEPTH: u32 = 4;

/// Completes some requests one by one, then fails; after that it gives back all but so many.
struct Failing {
    in_flight: Vec<Slot>,
    until_failure: u32,
    keeps: usize,
}

impl Backend for Failing {
    fn queue(&mut self, slot: Slot, _request: Request) {
        self.in_flight.push(slot);
    }

    fn complete(&mut self, _wait: u32, done: &mut Vec<Completion>) -> Result<(), SystemFailure> {
        if self.until_failure == 0 {
            return Err(SystemFailure {
                syscall: "io_uring_enter",
                errno: libc::ENXIO,
            });
        }
        self.until_failure -= 1;
        let slot = self.in_flight.pop().expect("only called with some");
        done.push(Completion { slot, result: 4096 });
        Ok(())
    }

    fn settle(&mut self, timeout: Duration, done: &mut Vec<Completion>) {
        assert!(!timeout.is_zero());
        let back = self.in_flight.drain(self.keeps..);
        done.extend(back.map(|slot| Completion { slot, result: 4096 }));
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

fn run(keeps: usize, rate: Option<Rate>, latency: bool) -> (WorkerOutcome, Buffers) {
    let spec = TrialSpec {
        depth: DEPTH,
        rate,
        latency,
        limit: Limit {
            requests: Some(1000),
            ..Limit::default()
        },
        ..TrialSpec::default()
    };
    let (clock, stop) = (Clock::calibrate(), AtomicBool::new(false));
    let backend = Failing {
        in_flight: Vec::new(),
        until_failure: 3,
        keeps,
    };
    let buffers = Buffers::new(&spec, 0).expect("a few KiB");
    let (outcome, (_, buffers)) = match (rate, latency) {
        (Some(rate), _) => {
            let open = Open::new(&spec, rate, 0, &clock);
            Worker::new(
                &spec,
                0,
                (open, Plain::new(&spec, 0)),
                backend,
                buffers,
                &clock,
                &stop,
            )
            .run()
        }
        (None, true) => {
            let closed = Closed::<true>;
            Worker::new(
                &spec,
                0,
                (closed, Plain::new(&spec, 0)),
                backend,
                buffers,
                &clock,
                &stop,
            )
            .run()
        }
        (None, false) => {
            let closed = Closed::<false>;
            Worker::new(
                &spec,
                0,
                (closed, Plain::new(&spec, 0)),
                backend,
                buffers,
                &clock,
                &stop,
            )
            .run()
        }
    };
    (outcome, buffers)
}

#[test]
fn what_is_in_flight_when_the_mechanism_fails_is_waited_for_and_does_not_count() {
    for (rate, latency) in [
        (None, true),
        (None, false),
        (Some(Rate::Requests(1_000_000_000)), true),
    ] {
        for keeps in [0, 1] {
            let (outcome, buffers) = run(keeps, rate, latency);
            assert_eq!((outcome.ended, outcome.errors), (Ended::Failed, 1));
            let failure = outcome.failure.expect("a failure");
            let expected = ("io_uring_enter", libc::ENXIO);
            assert_eq!((failure.syscall, failure.errno), expected);
            assert_eq!(outcome.reads.requests, 3);
            assert_eq!(buffers.home().len(), DEPTH as usize - keeps);
        }
    }
}
