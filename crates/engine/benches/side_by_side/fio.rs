//! Reads of the installed fio with the settings of the other contenders, if fio is there.

use std::path::Path;
use std::process::Command;

use crate::Reached;

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
pub(crate) const AT_RATE: [&str; 5] = [
    "--ioengine=io_uring", "--rw=randread", "--iodepth=32", "--runtime=1", "--direct=1",
];

/// One round on `path`; `None` when fio is not there.
pub(crate) fn run(path: &Path, options: &[&str]) -> Option<Reached> {
    let job = job(path, options)?;
    let ios = number(&job["read"]["total_ios"]);
    let runtime_ms = number(&job["read"]["runtime"]);
    Some(Reached {
        iops: ios * 1e3 / runtime_ms,
        user_ns: cpu_ns(&job, "usr_cpu") / ios,
    })
}

/// CPU time per request in user mode and in the kernel, ns; `None` when fio is not there.
pub(crate) fn whole_cpu_ns(path: &Path, options: &[&str]) -> Option<f64> {
    let job = job(path, options)?;
    let all = cpu_ns(&job, "usr_cpu") + cpu_ns(&job, "sys_cpu");
    Some(all / number(&job["read"]["total_ios"]))
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}

/// A share of the job's time that fio gives in percent, ns.
fn cpu_ns(job: &serde_json::Value, share: &str) -> f64 {
    number(&job[share]) / 100.0 * number(&job["job_runtime"]) * 1e6
}

/// The report of the only job.
fn job(path: &Path, options: &[&str]) -> Option<serde_json::Value> {
    let output = Command::new("fio")
        .args([
            "--name=x", "--bs=4k", "--size=256m", "--time_based", "--readonly",
            "--output-format=json",
        ])
        .args(options)
        .arg(format!("--filename={}", path.display()))
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "fio: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut json: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    Some(json["jobs"][0].take())
}
