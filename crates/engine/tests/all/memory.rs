//! Memory of trials, each in a process of its own: other tests in the process would be counted too.

use std::fs::{self, File};

use iolab_storage::{Need, Target};
use iolab_workload::Result;

use crate::files::{folder, run, scratch};
use needs::settings;

/// Peak resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.expect("VmHWM").trim().trim_end_matches("kB").trim();
    number.parse().expect("a number")
}

#[test]
fn requests_and_regions_take_no_memory() {
    if !needs::is_alone("memory::requests_and_regions_take_no_memory") {
        return;
    }
    let directory = folder();
    let path = directory.path().join("sparse");
    let file = File::create(&path).expect("created");
    // ext4 ends one block below 16 TiB; if even less is possible, the largest size that is.
    let sizes = (30..=44).rev().map(|bits| (1u64 << bits) - (1 << 20));
    let size = sizes.into_iter().find(|size| file.set_len(*size).is_ok());
    let size = size.expect("a sparse file");
    let target = Target::open(&path, &Need::reading(size)).expect("opens");
    let after = |region: u64, requests: u64| {
        let bytes = requests * 4096;
        let all = format!("pattern=rand cache=cold region={region} bytes={bytes}");
        let outcome = run(&settings(&all), &target).expect("it runs");
        assert_eq!((outcome.requests(), outcome.errors), (requests, 0));
        peak_kib()
    };
    let small = after(1 << 20, 1_000);
    let large = after(size, 200_000);
    assert!(large <= small + 512, "{small} KiB grew to {large} KiB");
}

/// Buffers of all workers, each of one page.
const BUFFERS: u64 = 64 * 64;

/// Page faults of the timed span of a trial. As many requests as there are buffers, so that each is used; the time bounds how much memory
/// their series takes.
fn faults_of(sets: &str, target: &Target) -> Result<u64> {
    let all = "backend=libaio threads=64 depth=64 region=16M bytes=16M time=20s";
    let spec = settings(&format!(
        "{all} pattern=rand cache=hot latency=false {sets}"
    ));
    let outcome = run(&spec, target)?;
    assert_eq!((outcome.requests(), outcome.errors), (BUFFERS, 0));
    Ok(outcome.counters.usage.minor_faults)
}

#[test]
#[allow(unsafe_code)] // what is counted is pages of the ordinary size
fn only_untouched_buffers_cause_timed_page_faults() {
    if !needs::is_alone("memory::only_untouched_buffers_cause_timed_page_faults") {
        return;
    }
    // SAFETY: the call takes numbers alone. It keeps the kernel from giving huge pages, which many buffers would share.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    let (_folder, target) = scratch(BUFFERS * 4096);
    if let Err(error) = faults_of("", &target) {
        return needs::skip(needs::Need::Libaio, error);
    }
    let timed = |sets: &str| faults_of(sets, &target).expect("as the first one");
    for _ in 0..2 {
        let untouched = timed("buffer_init=untouched");
        assert!(
            untouched > BUFFERS * 9 / 10,
            "{untouched} of untouched buffers"
        );
        let filled = timed("");
        assert!(filled < BUFFERS / 2, "{filled} of filled buffers");
    }
}
