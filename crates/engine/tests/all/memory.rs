//! Memory of trials, each in a process of its own: other tests in the process would be counted too.

use std::fs::{self, File};
use std::sync::atomic::AtomicBool;

use iolab_engine::{KeptMemory, trial};
use iolab_storage::{Need, Target};
use iolab_workload::Result;

use crate::files::{clock, folder, run, scratch};
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

/// Page faults of this process.
fn faults() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let minor = fields.split(' ').nth(7).expect("a field");
    minor.parse().expect("a number")
}

/// Page faults of a whole trial, and of its timed span. As many requests as there are buffers, so that each is used; the time bounds how
/// much memory their series takes.
fn faults_of(sets: &str, target: &Target, kept: &mut KeptMemory) -> Result<(u64, u64)> {
    let all = "backend=libaio threads=64 depth=64 region=16M bytes=16M time=20s";
    let spec = settings(&format!(
        "{all} pattern=rand cache=hot latency=false {sets}"
    ));
    let (before, stop) = (faults(), AtomicBool::new(false));
    let outcome = trial::run_over(&spec, target, clock(), &stop, kept)?;
    assert_eq!((outcome.requests(), outcome.errors), (BUFFERS, 0));
    Ok((faults() - before, outcome.counters.usage.minor_faults))
}

#[test]
#[allow(unsafe_code)] // what is counted is pages of the ordinary size
fn only_fresh_buffers_cause_page_faults() {
    if !needs::is_alone("memory::only_fresh_buffers_cause_page_faults") {
        return;
    }
    if fs::exists("/sys/devices/system/node/node1").is_ok_and(|there| there) {
        return needs::skip(needs::Need::OneNode, "there are several");
    }
    // SAFETY: the call takes numbers alone. It keeps the kernel from giving huge pages, which many buffers would share.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    let (_folder, target) = scratch(BUFFERS * 4096);
    let mut kept = KeptMemory::default();
    if let Err(error) = faults_of("", &target, &mut kept) {
        return needs::skip(needs::Need::Libaio, error);
    }
    let run = |sets: &str, kept: &mut KeptMemory| {
        faults_of(sets, &target, kept).expect("as the first one")
    };
    // Half for whole trials: stacks of threads and the heap fault too, depending on how the threads happen to overlap.
    for _ in 0..3 {
        let again = run("", &mut kept);
        let fresh = run("", &mut KeptMemory::default());
        assert!(again.0 + BUFFERS / 2 < fresh.0, "{again:?} {fresh:?}");
    }
    for _ in 0..2 {
        let (_, timed) = run("buffer_init=untouched", &mut kept);
        assert!(timed > BUFFERS * 9 / 10, "{timed} of untouched buffers");
    }
    let (_, timed) = run("", &mut kept);
    assert!(timed < BUFFERS / 2, "{timed} of filled buffers");
}
