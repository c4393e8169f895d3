//! Limits on this process: control groups, open files, locked memory.

use super::{Facts, Said, fine, must_fix, worth_knowing};
use iolab_workload::quantity::{format_bytes, significant};

/// Descriptors needed by a run with many workers.
const OPEN_FILES: u64 = 1024;
/// Locked memory needed by registered buffers at large sizes and depths, bytes.
const LOCKED_BYTES: u64 = 64 << 20;

/// Command that finds the origin of a limit; removing the limit is its owner's decision.
const OF_UNIT: &str =
    "systemctl status $$    # names the unit that bears the limit; run outside of it, or raise it";

/// Reports a quota of CPU time.
pub(super) fn cpu_time(facts: &Facts) -> Option<Said> {
    let cpus = facts.cgroup.cpus?;
    Some(worth_knowing(format!("a control group limits CPU time to {} CPUs: beyond it all threads stop until the next period, which shows as slow requests", significant(cpus)))
    .remedy(OF_UNIT))
}

/// Reports a limit on memory, which includes the page cache.
pub(super) fn memory(facts: &Facts) -> Option<Said> {
    let limit = facts.cgroup.memory_bytes;
    let limit = limit.filter(|limit| facts.memory_bytes.is_none_or(|all| *limit < all))?;
    Some(worth_knowing(format!(
        "a control group limits memory to {}, page cache included: buffered I/O slows down when that is full",
        format_bytes(limit as f64)
    )))
}

/// Reports a limit on the traffic with the device.
pub(super) fn traffic(facts: &Facts) -> Option<Said> {
    let io = &facts.cgroup.io;
    if io.is_empty() {
        return None;
    }
    let limits = io.iter().map(|limit| limit.what.format(limit.per_second));
    let limits: Vec<String> = limits.collect();
    Some(must_fix(format!(
            "a control group limits the traffic with the device: {}; longer loads cannot exceed that",
            limits.join(", ")
        ))
    .remedy(OF_UNIT))
}

/// Reports a low limit on open files.
pub(super) fn open_files(facts: &Facts) -> Option<Said> {
    let files = facts.limits.open_files?;
    let what = format!("{files} files may be open");
    Some(if files < OPEN_FILES {
        worth_knowing(format!("{what}: too few for many threads"))
            .remedy(format!("ulimit -n {OPEN_FILES}"))
    } else {
        fine(what)
    })
}

/// Reports a low limit on locked memory, which registered buffers count against.
pub(super) fn locked_memory(facts: &Facts) -> Option<Said> {
    let bytes = facts.limits.locked_bytes?;
    let what = format!("{} of memory may be locked", format_bytes(bytes as f64));
    Some(if bytes < LOCKED_BYTES {
        worth_knowing(format!("{what}: io_uring cannot register more buffers than that, and uses the rest unregistered"))
        .remedy("ulimit -l unlimited    # as root, or by limits.conf")
    } else {
        fine(what)
    })
}
