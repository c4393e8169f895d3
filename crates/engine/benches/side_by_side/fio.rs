//! The same work done by the fio that is installed, if one is.

use std::path::Path;
use std::process::Command;

use crate::Reached;

/// Buffered reads in order, hot in the cache.
pub(crate) const HOT: [&str; 5] = [
    "--ioengine=psync",
    "--rw=read",
    "--invalidate=0",
    "--runtime=1",
    "--direct=0",
];
/// Direct random reads at depth 32 with everything registered.
pub(crate) const DEEP: [&str; 7] = [
    "--ioengine=io_uring",
    "--rw=randread",
    "--iodepth=32",
    "--registerfiles=1",
    "--fixedbufs=1",
    "--runtime=1",
    "--direct=1",
];

/// One round on `path`; `None` when fio is not there.
pub(crate) fn run(path: &Path, options: &[&str]) -> Option<Reached> {
    let output = Command::new("fio")
        .args([
            "--name=x",
            "--bs=4k",
            "--size=256m",
            "--time_based",
            "--readonly",
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
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("fio prints JSON");
    let job = &json["jobs"][0];
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (ios, runtime_ms) = (
        number(&job["read"]["total_ios"]),
        number(&job["read"]["runtime"]),
    );
    Some(Reached {
        iops: ios * 1e3 / runtime_ms,
        user_ns: number(&job["usr_cpu"]) / 100.0 * number(&job["job_runtime"]) * 1e6 / ios,
    })
}
