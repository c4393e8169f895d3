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

#[cfg(test)]
mod tests {
    use super::super::super::Severity::{MustFix, WorthKnowing};
    use super::super::super::facts;
    use super::super::testing::{is_silent, only};
    use super::*;
    use iolab_host::cgroup::{self, IoLimit};
    use iolab_workload::counters::Traffic;

    #[test]
    fn without_limits_all_is_fine() {
        let facts = Facts {
            memory_bytes: Some(1 << 30),
            cgroup: cgroup::CgroupLimits {
                memory_bytes: Some(1 << 31),
                ..cgroup::CgroupLimits::default()
            },
            limits: facts::ProcessLimits {
                open_files: Some(20_000),
                locked_bytes: None,
            },
            ..Facts::default()
        };
        for rule in [cpu_time, memory, traffic, open_files, locked_memory]
            as [fn(&Facts) -> Option<Said>; 5]
        {
            assert!(is_silent(rule(&facts)), "{:?}", rule(&facts));
        }
    }

    #[test]
    fn limits_of_a_control_group_are_told() {
        let facts = Facts {
            memory_bytes: Some(1 << 34),
            cgroup: cgroup::CgroupLimits {
                cpus: Some(1.5),
                memory_bytes: Some(1 << 30),
                memory_left_bytes: None,
                io: vec![
                    IoLimit {
                        what: Traffic::ReadBytes,
                        per_second: 20_000_000,
                    },
                    IoLimit {
                        what: Traffic::Writes,
                        per_second: 120,
                    },
                ],
            },
            ..Facts::default()
        };
        insta::assert_snapshot!(only(cpu_time(&facts)).1, @"a control group limits CPU time to 1.50 CPUs: beyond it all threads stop until the next period, which shows as slow requests");
        insta::assert_snapshot!(only(memory(&facts)).1, @"a control group limits memory to 1 GiB, page cache included: buffered I/O slows down when that is full");
        let (severity, what, _) = only(traffic(&facts));
        assert_eq!(severity, MustFix);
        insta::assert_snapshot!(what, @"a control group limits the traffic with the device: 20.0 MB/s of reads, 120 writes/s; longer loads cannot exceed that");
    }

    #[test]
    fn low_limits_of_the_process_are_told() {
        let facts = Facts {
            limits: facts::ProcessLimits {
                open_files: Some(256),
                locked_bytes: Some(8 << 20),
            },
            ..Facts::default()
        };
        let (severity, _, remedy) = only(open_files(&facts));
        assert_eq!(
            (severity, remedy.as_deref()),
            (WorthKnowing, Some("ulimit -n 1024"))
        );
        insta::assert_snapshot!(only(locked_memory(&facts)).1, @"8 MiB of memory may be locked: io_uring cannot register more buffers than that, and uses the rest unregistered");
    }
}
