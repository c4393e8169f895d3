//! A kernel that refuses `io_uring_enter`. A binary of its own: the filter holds for every thread made from here on.

use std::fs;
use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::outcome::{Ended, Failure};
use iolab_workload::trial::{Backend, BufferInit, CacheState, TrialLimit, TrialSpec};

const BS: u64 = 1 << 20;
const DEPTH: u32 = 32;

/// Bytes of the address space that are mapped.
fn mapped_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: u64 = statm
        .split(' ')
        .next()
        .expect("a field")
        .parse()
        .expect("a number");
    pages * iolab_storage::kernel_units::page_size() as u64
}

#[test]
fn an_unusable_ring_fails_the_trial_keeping_memory() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let path = directory.path().join("file");
    let size = 64 * BS;
    fs::File::create(&path)
        .and_then(|file| file.set_len(size))
        .expect("a file");
    let need = Need::reading(size);
    let target = Target::open(&path, &need).expect("opens");
    let clock = Clock::calibrate();
    let spec = TrialSpec {
        backend: Backend::IoUring,
        bs: BS,
        depth: DEPTH,
        region: size,
        cache: CacheState::Cold,
        buffer_init: BufferInit::Untouched,
        limit: TrialLimit {
            bytes: Some(100 * 4096),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let run = || trial::run(&spec, &target, &clock, &AtomicBool::new(false));
    match run() {
        Ok(outcome) => assert_eq!(outcome.errors, 0, "{:?}", outcome.failure),
        Err(error) => return needs::skip(needs::Need::IoUring, error),
    }
    let whole = mapped_bytes();
    run().expect("it runs");
    assert!(
        mapped_bytes() < whole + BS,
        "the memory of a trial that went well is given back"
    );
    let enter = [libc::SYS_io_uring_enter];
    if let Err(error) = needs::refuse_system_calls(&enter, libc::EIO) {
        return needs::skip(needs::Need::Seccomp, error);
    }
    let outcome = run().expect("it can be set up");
    assert_eq!((outcome.ended, outcome.errors), (Ended::Failed, 1));
    let Some(Failure::Request(failure)) = outcome.failure else {
        panic!("{:?}", outcome.failure);
    };
    assert_eq!(
        (failure.syscall, failure.errno),
        ("io_uring_enter", libc::EIO)
    );
    // Every request was handed to the ring, and none came back.
    assert!(mapped_bytes() >= whole + u64::from(DEPTH) * BS);
}
