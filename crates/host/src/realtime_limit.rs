//! Check that real-time threads leave CPUs to other programs. Source:
//! Documentation/scheduler/sched-rt-group.rst of Linux.

use std::path::Path;

use iolab_workload::{Error, Result};

use crate::processor::usable;
use crate::pseudo_files::text_of;

const FOLDER: &str = "/proc/sys/kernel";

/// Refuses to start as many real-time threads as there are CPUs, or more, unless the kernel reserves time for
/// ordinary threads.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused).
pub fn check_realtime(threads: u64) -> Result<()> {
    check(threads, usable().unwrap_or(1), Path::new(FOLDER))
}

fn check(threads: u64, cpus: u64, folder: &Path) -> Result<()> {
    let number = |file: &str| text_of(folder.join(file))?.parse::<i64>().ok();
    let runtime = number("sched_rt_runtime_us");
    // A runtime of -1 means unlimited; an unreadable value may mean that as well.
    let reserves = runtime
        .zip(number("sched_rt_period_us"))
        .is_some_and(|(runtime, period)| (0..period).contains(&runtime));
    if threads < cpus || reserves {
        return Ok(());
    }
    Err(Error::refused(format!(
        "refusing to start {threads} real-time threads on {cpus} CPUs: the kernel reserves no time for other programs"
    ))
    .hint("set fewer threads than CPUs, or limit them: sysctl kernel.sched_rt_runtime_us=950000"))
}

#[cfg(test)]
mod tests {
    use iolab_workload::Kind;

    use super::*;

    #[test]
    fn realtime_threads_leave_a_cpu_or_kernel_reserve() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |threads, runtime: &str| {
            let write = |file: &str, text: &str| {
                std::fs::write(folder.path().join(file), text).expect("it is written");
            };
            write("sched_rt_runtime_us", runtime);
            write("sched_rt_period_us", "1000000\n");
            check(threads, 2, folder.path()).map_err(|error| error.kind())
        };
        assert_eq!(of(2, "950000\n"), Ok(()));
        assert_eq!(of(1, "-1\n"), Ok(()));
        assert_eq!(of(2, "-1\n"), Err(Kind::Refused));
        assert_eq!(of(3, "1000000\n"), Err(Kind::Refused));
        let nowhere = folder.path().join("nowhere");
        assert!(check(2, 2, &nowhere).is_err());
    }
}
