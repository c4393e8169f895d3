//! Threads and rings between trials, by what the kernel shows of the process. A binary of its own: other tests in the process would be
//! counted too.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::{KeptMemory, trial};
use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::Result;
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{Backend, CacheState, Pattern, TrialLimit, TrialSpec};

const BS: u64 = 4096;
const DEPTH: u32 = 64;

/// More threads than the rule for few of them leaves out.
fn threads() -> u32 {
    let cpus = std::thread::available_parallelism()
        .expect("a number")
        .get() as u32;
    64.max(2 * cpus)
}

fn spec() -> TrialSpec {
    let threads = threads();
    let region = u64::from(threads * DEPTH) * BS;
    TrialSpec {
        backend: Backend::IoUring,
        bs: BS,
        threads,
        depth: DEPTH,
        region,
        pattern: Pattern::Rand,
        cache: CacheState::Hot,
        // Where there are several nodes, memory of none in particular is not kept.
        memory_node: Path::new("/sys/devices/system/node/node1")
            .exists()
            .then_some(0),
        limit: TrialLimit {
            requests: Some(region / BS),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    }
}

/// The threads that wait for a trial, by their numbers, once there are so many: one that was joined is shown for a moment more.
fn parked(count: u32) -> BTreeSet<String> {
    let looks = (0..2_000).map(|look| {
        std::thread::sleep(Duration::from_millis(look.min(10)));
        parked_now()
    });
    let mut last = BTreeSet::new();
    for parked in looks {
        last = parked;
        if last.len() == count as usize {
            break;
        }
    }
    assert_eq!(last.len(), count as usize, "{last:?}");
    last
}

fn parked_now() -> BTreeSet<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("procfs").flatten();
    let is_parked = |path: &Path| {
        let name = fs::read_to_string(path.join("comm"));
        name.is_ok_and(|name| name == "parked\n")
    };
    let parked = tasks.filter(|task| is_parked(&task.path()));
    let number = |task: fs::DirEntry| task.file_name().into_string().expect("a number");
    parked.map(number).collect()
}

/// Where rings are mapped.
fn rings() -> BTreeSet<String> {
    let maps = fs::read_to_string("/proc/self/maps").expect("procfs");
    let rings = maps.lines().filter(|line| line.contains("io_uring"));
    rings
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

/// What a thread has open besides the standard streams.
fn open_files(thread: &str) -> Vec<String> {
    let folder = format!("/proc/self/task/{thread}/fd");
    let files = fs::read_dir(folder).expect("it is there").flatten();
    let others = files.filter(|file| {
        let number = file.file_name().into_string();
        number.is_ok_and(|number| number.parse::<u32>().is_ok_and(|number| number > 2))
    });
    let links = others.filter_map(|file| fs::read_link(file.path()).ok());
    links.map(|link| link.display().to_string()).collect()
}

fn run(spec: &TrialSpec, target: &Target, clock: &Clock, kept: &mut KeptMemory) -> Result<Outcome> {
    trial::run_over(spec, &[target], clock, &AtomicBool::new(false), kept)
}

/// Whether the kernel is one with `close_range(2)`, without which threads end with their trial.
fn has_close_range() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.trim().parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (5, 9)
}

#[test]
fn the_next_trial_of_a_cell_has_the_threads_and_rings_of_the_last_one() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let own = spec();
    let target = Target::open(folder.path(), &Need::writing(own.region)).expect("a scratch file");
    let filled = target.fill(7, &AtomicBool::new(false), &mut |_| {});
    filled.expect("room");
    let (clock, mut kept) = (Clock::calibrate(), KeptMemory::default());
    if iolab_engine::asynchronous() != Backend::IoUring {
        return needs::skip(needs::Need::IoUring, "the kernel offers none");
    }
    if !has_close_range() {
        return needs::skip(needs::Need::CloseRange, "threads end with their trial");
    }
    let first = run(&own, &target, &clock, &mut kept).expect("a trial");
    if !first.effective.fixed_buffers {
        return needs::skip(needs::Need::IoUring, first.effective.note);
    }
    let (left, mapped) = (parked(own.threads), rings());
    assert!(mapped.len() >= own.threads as usize, "{mapped:?}");
    for thread in &left {
        assert_eq!(open_files(thread), ["anon_inode:[io_uring]"]);
    }
    // Later trials of the same cell.
    for seed in 2..5 {
        let again = TrialSpec {
            seed,
            ..own.clone()
        };
        let outcome = run(&again, &target, &clock, &mut kept).expect("as the first one");
        assert_eq!((outcome.requests(), outcome.errors), (own.region / BS, 0));
        assert!(outcome.effective.fixed_file && outcome.effective.fixed_buffers);
        assert_eq!(parked(own.threads), left);
        assert_eq!(rings(), mapped);
    }
    // A cell with other needs, which starts its own.
    let other = TrialSpec {
        nice: Some(1),
        ..own.clone()
    };
    run(&other, &target, &clock, &mut kept).expect("as the first one");
    assert!(parked(own.threads).is_disjoint(&left));
    // The kernel's thread of such a ring would poll on.
    let polling = TrialSpec {
        sqpoll: true,
        ..own.clone()
    };
    if run(&polling, &target, &clock, &mut kept).is_ok() {
        let polling = parked(own.threads);
        assert!(polling.iter().all(|thread| open_files(thread).is_empty()));
    }
    // A trial that was not carried out to its end leaves nothing.
    run(&own, &target, &clock, &mut kept).expect("as the first one");
    parked(own.threads);
    let stopped = trial::run_over(&own, &[&target], &clock, &AtomicBool::new(true), &mut kept);
    assert!(stopped.is_err() || stopped.is_ok_and(|outcome| !outcome.ended.is_whole()));
    parked(0);
    assert_eq!(rings(), BTreeSet::new());
    // Few threads are started anew.
    let few = TrialSpec { threads: 4, ..own };
    run(&few, &target, &clock, &mut kept).expect("as the first one");
    parked(0);
}
