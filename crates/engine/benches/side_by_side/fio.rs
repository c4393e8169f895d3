//! Reads of the installed fio with the settings of the other contenders, if fio is there.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_host::clock::Clock;
use iolab_host::program::{self, Arguments, Program};
use iolab_workload::counters::ResourceUse;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::TrialSpec;

use crate::Reached;

const COMMON: [&str; 6] = [
    "--name=x", "--bs=4k", "--size=256m", "--time_based", "--readonly", "--output-format=json",
];

/// Buffered reads in order, hot in the cache.
pub(crate) const HOT: [&str; 5] = [
    "--ioengine=psync", "--rw=read", "--invalidate=0", "--runtime=1", "--direct=0",
];
/// Direct random reads at depth 32 with everything registered.
pub(crate) const DEEP: [&str; 7] = [
    "--ioengine=io_uring", "--rw=randread", "--iodepth=32", "--registerfiles=1", "--fixedbufs=1",
    "--runtime=1", "--direct=1",
];

/// Direct random reads at depth 32 at a rate, which an option of its own names.
const AT_RATE: [&str; 5] = [
    "--ioengine=io_uring", "--rw=randread", "--iodepth=32", "--runtime=1", "--direct=1",
];

/// One round on `path`; `None` when fio is not there.
pub(crate) fn run(path: &Path, options: &[&str]) -> Option<Reached> {
    let (job, _) = job(path, options)?;
    let ios = number(&job["read"]["total_ios"]);
    let runtime_ms = number(&job["read"]["runtime"]);
    let user_share = number(&job["usr_cpu"]) / 100.0;
    Some(Reached {
        iops: ios * 1e3 / runtime_ms,
        user_ns: user_share * number(&job["job_runtime"]) * 1e6 / ios,
    })
}

/// Requests, and the CPU time of the whole program for them and for itself, ns; `None` when fio is not there. What fio reports leaves out
/// the kernel's threads that carry out requests of `io_uring` for it.
pub(crate) fn whole_cpu(path: &Path, rate: u64) -> Option<(f64, f64)> {
    let limit = format!("--rate_iops={rate}");
    let (job, usage) = job(path, &[&AT_RATE[..], &[&limit]].concat())?;
    let all = usage.user_ns + usage.system_ns;
    Some((number(&job["read"]["total_ios"]), all as f64))
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The report of the only job, and the resources of the program.
fn job(path: &Path, options: &[&str]) -> Option<(serde_json::Value, ResourceUse)> {
    let file = format!("--filename={}", path.display());
    let program = Program {
        path: Program::find(Path::new("fio")).ok()?,
        arguments: Arguments::plain([&COMMON[..], options, &[&file]].concat()),
        time_limit: None,
        output_max: Some(1 << 20),
    };
    let (clock, stop) = (Clock::calibrate(), AtomicBool::new(false));
    let ran = program::run(&program, &[], &TrialSpec::default(), &clock, &stop);
    let ran = ran.expect("fio starts");
    assert_eq!(ran.outcome.ended, Ended::Done, "{:?}", ran.outcome.failure);
    let mut json: serde_json::Value = serde_json::from_slice(&ran.output).expect("fio prints JSON");
    Some((json["jobs"][0].take(), ran.outcome.counters.usage))
}
