//! One trial with a given number of requests, for counting the instructions of the hot loop:
//!
//!     valgrind --tool=callgrind target/release/examples/requests psync 1 100000
//!
//! Run it with two numbers of requests: the difference of both counts, divided by the difference in requests, is the cost
//! of one.

#![allow(clippy::print_stdout, reason = "what was done is the result")]

use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};

/// Bytes of the file, which the page cache holds.
const SIZE: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or("BACKEND DEPTH REQUESTS");
    let (backend, depth) = (next()?.parse()?, next()?.parse()?);
    let spec = TrialSpec {
        backend,
        depth,
        region: SIZE,
        pattern: Pattern::Rand,
        cache: CacheState::Hot,
        limit: TrialLimit {
            bytes: Some(next()?.parse::<u64>()? * 4096),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let stop = AtomicBool::new(false);
    let target = Target::open(&std::env::temp_dir(), &Need::writing(SIZE))?;
    target.fill(1, &stop, &mut |_| {})?;
    let outcome = trial::run(&spec, &target, &Clock::calibrate(), &stop)?;
    println!("{} requests, {} errors", outcome.requests(), outcome.errors);
    match outcome.failure {
        Some(failure) => Err(format!("{failure:?}").into()),
        None => Ok(()),
    }
}
