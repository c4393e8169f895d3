//! Workers on a backend that fails with requests in flight.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::open_loop::Open;
use super::*;
use crate::list::Schedule;
use crate::request::SystemFailure;
use iolab_host::clock::Clock;
use iolab_workload::outcome::Failure;
use iolab_workload::trial::TrialSpec;
use needs::settings;

const DEPTH: u32 = 4;

/// A backend that completes some requests one by one, then fails; after that it gives back all slots but `keeps`.
struct Failing {
    in_flight: Vec<Slot>,
    until_failure: u32,
    keeps: usize,
}

impl Queue for Failing {
    fn queue(&mut self, slot: Slot, _request: Request) {
        self.in_flight.push(slot);
    }

    fn syscall(&self, _action: Action) -> &'static str {
        "none"
    }
}

impl Backend for Failing {
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
}

/// Runs the first worker of a trial, whichever loop it asks for.
pub(super) fn run_first<B: Backend>(
    spec: &TrialSpec,
    backend: B,
    stop: &AtomicBool,
) -> (WorkerOutcome, (B, Buffers)) {
    let clock = Clock::calibrate();
    match (spec.rate, spec.latency) {
        (Some(rate), _) => {
            let starts = Schedule::new(spec, rate, 0, &clock);
            let open = Open::new(starts, spec, rate, &clock, NoLog);
            run_timed(spec, open, backend, &clock, stop)
        }
        (None, true) => run_timed(spec, Closed::<true>(NoLog), backend, &clock, stop),
        (None, false) => run_timed(spec, Closed::<false>(NoLog), backend, &clock, stop),
    }
}

fn run_timed<'a, B: Backend, T: Timing>(
    spec: &TrialSpec,
    timing: T,
    backend: B,
    clock: &'a Clock,
    stop: &'a AtomicBool,
) -> (WorkerOutcome, (B, Buffers))
where
    Worker<'a, B, T, Plain>: Turns,
{
    let buffers = Buffers::new(spec, 0).expect("a few KiB");
    let begun = WorkerOutcome::begun(spec, T::TIMED, clock, backend.effective());
    Worker {
        common: Common::new(spec, 0, begun, buffers, clock, stop),
        requests: Plain::new(spec, 0),
        backend,
        timing,
    }
    .run()
}

fn run(keeps: usize, way: &str) -> (WorkerOutcome, Buffers) {
    let spec = settings(&format!("depth={DEPTH} bytes=4000k {way}"));
    let backend = Failing {
        in_flight: Vec::new(),
        until_failure: 3,
        keeps,
    };
    let (outcome, (_, buffers)) = run_first(&spec, backend, &AtomicBool::new(false));
    (outcome, buffers)
}

#[test]
fn a_failing_mechanism_awaits_requests_without_counting() {
    for way in ["latency=true", "latency=false", "rate=1000000000"] {
        for keeps in [0, 1] {
            let (outcome, buffers) = run(keeps, way);
            let account = outcome.account;
            assert_eq!((account.ended, account.errors), (Ended::Failed, 1));
            let expected = ("io_uring_enter", libc::ENXIO);
            let Some(Failure::Request(failure)) = account.failure else {
                panic!("{:?}", account.failure);
            };
            assert_eq!((failure.syscall, failure.errno), expected);
            assert_eq!(account.operations.read.requests, 3);
            assert_eq!(buffers.home().len(), DEPTH as usize - keeps);
        }
    }
}
