//! Room for memory under limits (`ulimit -v`, `ulimit -d`).
//!
//! A failed allocation aborts the process, and an aborted run leaves its scratch file until the next one. So
//! the room is checked before anything is started.

use std::sync::Once;

use rustix::process::{Resource, getrlimit};

use iolab_workload::quantity::counted;
use iolab_workload::{Error, Result};

/// Memory of the process without workers, for filling, the run file and the analysis, bytes.
const PROCESS: u64 = 24 << 20;
/// Memory of a worker without its buffers, whose shortage is reported where they are made. A stack of 2 MiB
/// (the default of Rust's threads) and up to seven histograms of 270 KiB, bytes.
const WORKER: u64 = 4 << 20;
/// Part of [`WORKER`] that a worker touches: its histograms, and some pages of its stack, bytes.
const WORKER_TOUCHED: u64 = 2 << 20;
/// Each limit with the command that sets it and the field of `/proc/self/statm` that counts towards it
/// (proc(5)).
const LIMITS: [(Resource, &str, usize); 2] = [
    (Resource::As, "ulimit -v", 0),
    (Resource::Data, "ulimit -d", 5),
];

/// Memory that the process uses with this number of workers, without their buffers, bytes.
pub fn resident(workers: u32) -> u64 {
    PROCESS + u64::from(workers) * WORKER_TOUCHED
}

/// Checks that this process may allocate memory for this number of workers, and `besides` more bytes.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the limit that is too low, and how to raise it.
pub fn check(workers: u32, besides: u64) -> Result<()> {
    let need = PROCESS + u64::from(workers) * WORKER + besides;
    for (resource, command, field) in LIMITS {
        if let Some(limit) = getrlimit(resource).current {
            keep_to_one_arena();
            if let Some(used) = used(field)
                && limit.saturating_sub(used) < need
            {
                return Err(too_low(limit, used, need, command, workers));
            }
        }
    }
    Ok(())
}

/// Value of a field of `/proc/self/statm`, bytes; `None` without `/proc`.
fn used(field: usize) -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(field)?.parse().ok()?;
    pages.checked_mul(crate::kernel_units::page_size() as u64)
}

fn too_low(limit: u64, used: u64, need: u64, command: &str, workers: u32) -> Error {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let what = match workers {
        0 => String::new(),
        _ => format!(" for {}", counted(workers, "thread")),
    };
    Error::usage(format!(
        "this process is limited to {} MiB of memory ({command}) and uses {} MiB: {} MiB more are needed{what}",
        mib(limit),
        mib(used),
        mib(need)
    ))
    .hint(match workers {
        0 => format!("raise it with `{command} unlimited`"),
        _ => format!("use fewer threads, or raise it with `{command} unlimited`"),
    })
}

/// Limits the allocator to one arena. The C library reserves 64 MiB of address space for each allocating
/// thread, which no limit has room for.
fn keep_to_one_arena() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: sets a parameter of the allocator under its own lock; no memory of ours is passed.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_workload::Kind;

    #[test]
    fn what_is_used_is_known() {
        for (_, _, field) in LIMITS {
            assert!(used(field).expect("there is a /proc") > 100_000);
        }
        assert_eq!(used(7), None);
    }

    #[test]
    fn too_low_a_limit_is_reported_with_remedy() {
        let error = too_low(100 << 20, 60 << 20, 88 << 20, "ulimit -v", 16);
        assert_eq!(error.kind(), Kind::Usage);
        insta::assert_snapshot!(error, @r"
        this process is limited to 100 MiB of memory (ulimit -v) and uses 60 MiB: 88 MiB more are needed for 16 threads
          use fewer threads, or raise it with `ulimit -v unlimited`
        ");
    }
}
