//! Memory does not grow with the number of requests or the size of the region.
//! A binary of its own: other tests in the process would be counted too.

use std::fs;
use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};

/// Peak resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("VmHWM");
    let number = line.trim().trim_end_matches("kB").trim();
    number.parse().expect("a number")
}

#[test]
fn resident_memory_is_bounded() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = directory.path().join("sparse");
    let file = fs::File::create(&path).expect("created");
    // ext4 ends one block below 16 TiB; if even less is possible, the largest size that is.
    let size = (30..=44)
        .rev()
        .map(|bits| (1u64 << bits) - (1 << 20))
        .find(|size| file.set_len(*size).is_ok())
        .expect("a sparse file");
    println!("sparse file of {} GiB", size >> 30);
    let need = Need::reading(size);
    let target = Target::open(&path, &need).expect("opens");
    let clock = Clock::calibrate();
    let run = |region, requests| {
        let spec = TrialSpec {
            pattern: Pattern::Rand,
            region,
            cache: CacheState::Cold,
            limit: TrialLimit {
                bytes: Some(requests * 4096),
                ..TrialLimit::default()
            },
            ..TrialSpec::default()
        };
        let outcome = trial::run(&spec, &target, &clock, &AtomicBool::new(false)).expect("it runs");
        assert_eq!((outcome.requests(), outcome.errors), (requests, 0));
        peak_kib()
    };
    let small = run(1 << 20, 1_000);
    let large = run(size, 200_000);
    println!("peak: {small} KiB after 1,000 requests in 1 MiB, {large} KiB after 200,000 in all");
    assert!(large <= small + 512, "{small} KiB grew to {large} KiB");
}
