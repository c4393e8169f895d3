//! Runs one target until its time is up.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::str::FromStr;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mutate::Mutator;
use crate::support::folder;

/// Longest time for one input. Far above what is allowed in peace (1 s), for machines that do much else.
const INPUT_MAX: Duration = Duration::from_secs(20);
/// Most memory that this process may ever have needed, KiB.
const MEMORY_MAX_KIB: u64 = 3 << 20;

fn number<N: FromStr>(variable: &str, default: N) -> N {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
        Err(_) => default,
    }
}

/// Makes inputs and tries them until the time is up; an input that fails is shown.
pub(crate) fn drive<I: Debug>(
    name: &str,
    mut make: impl FnMut(&mut Mutator) -> I,
    mut attempt: impl FnMut(&I),
) {
    let budget = Duration::from_secs_f64(number("IOLAB_FUZZ_SECONDS", 0.5));
    let mut mutator = Mutator::new(number("IOLAB_FUZZ_SEED", 1));
    let began = Instant::now();
    let (mut inputs, mut slowest) = (0u64, Duration::ZERO);
    while began.elapsed() < budget {
        let input = make(&mut mutator);
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| attempt(&input)));
        let took = start.elapsed();
        if result.is_err() || took > INPUT_MAX {
            eprintln!("{name}: input {inputs} took {took:?}: {input:?}");
        }
        if let Err(panic) = result {
            resume_unwind(panic);
        }
        assert!(took < INPUT_MAX, "an input takes too long");
        inputs += 1;
        slowest = slowest.max(took);
    }
    let peak = peak_kib();
    eprintln!("{name}: {inputs} inputs, the slowest took {slowest:?}; peak memory {peak:?} KiB");
    assert!(peak.is_none_or(|kib| kib < MEMORY_MAX_KIB), "{peak:?} KiB");
}

/// A folder in memory, where there is one: thousands of files are made.
pub(crate) fn workplace() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder())
}

/// The most memory that this process ever had, where the kernel tells.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
