//! The memory of buffers between trials, by page faults. A binary of its own: other tests in the process would be counted too.

#![allow(unsafe_code)] // what is counted is pages of the ordinary size

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::{KeptMemory, trial};
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::Result;
use iolab_workload::trial::{Backend, BufferInit, CacheState, Pattern, TrialLimit, TrialSpec};

const BS: u64 = 4096;
const THREADS: u32 = 64;
const DEPTH: u32 = 64;
/// Buffers of all workers, each of one page.
const BUFFERS: u64 = THREADS as u64 * DEPTH as u64;

/// Page faults of this process.
fn faults() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let minor = fields.split(' ').nth(7).expect("a field");
    minor.parse().expect("a number")
}

/// As many requests as there are buffers, so that each is used. The time bounds how much memory their series takes.
fn spec() -> TrialSpec {
    TrialSpec {
        backend: Backend::Libaio,
        bs: BS,
        threads: THREADS,
        depth: DEPTH,
        region: BUFFERS * BS,
        pattern: Pattern::Rand,
        cache: CacheState::Hot,
        latency: false,
        limit: TrialLimit {
            bytes: Some(BUFFERS * BS),
            time: Some(Duration::from_secs(20)),
        },
        ..TrialSpec::default()
    }
}

/// Page faults of a whole trial, and of its timed span.
fn trial(
    spec: &TrialSpec,
    target: &Target,
    clock: &Clock,
    kept: &mut KeptMemory,
) -> Result<(u64, u64)> {
    let before = faults();
    let stop = AtomicBool::new(false);
    let outcome = trial::run_over(spec, target, clock, &stop, kept)?;
    assert_eq!((outcome.requests(), outcome.errors), (BUFFERS, 0));
    Ok((faults() - before, outcome.counters.usage.minor_faults))
}

#[test]
fn only_fresh_buffers_cause_page_faults() {
    if fs::exists("/sys/devices/system/node/node1").is_ok_and(|there| there) {
        return needs::skip(needs::Need::OneNode, "there are several");
    }
    // SAFETY: the call takes numbers alone. It keeps the kernel from giving huge pages, which many buffers would share.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let need = Need::writing(BUFFERS * BS);
    let target = Target::open(folder.path(), &need).expect("a scratch file");
    let filled = target.fill(7, &AtomicBool::new(false), &mut |_| {});
    filled.expect("room");
    let clock = Clock::calibrate();
    let filled = spec();
    let untouched = TrialSpec {
        buffer_init: BufferInit::Untouched,
        ..spec()
    };
    let mut kept = KeptMemory::default();
    let first = trial(&filled, &target, &clock, &mut kept);
    if let Err(error) = first {
        return needs::skip(needs::Need::Libaio, error);
    }
    let run = |spec: &TrialSpec, kept: &mut KeptMemory| {
        trial(spec, &target, &clock, kept).expect("as the first one")
    };
    let most = BUFFERS * 9 / 10;
    // Half for whole trials: stacks of threads and the heap fault too, depending on how the threads happen to overlap.
    for _ in 0..3 {
        let again = run(&filled, &mut kept);
        let fresh = run(&filled, &mut KeptMemory::default());
        assert!(
            again.0 + BUFFERS / 2 < fresh.0,
            "{again:?} with kept memory, {fresh:?} with fresh"
        );
    }
    for _ in 0..2 {
        let (_, timed) = run(&untouched, &mut kept);
        assert!(
            timed > most,
            "{timed} faults of {BUFFERS} untouched buffers"
        );
    }
    let (_, timed) = run(&filled, &mut kept);
    assert!(timed < BUFFERS / 2, "{timed} faults of filled buffers");
}
