//! Trials on a real file system: the counts match what happened.

use std::collections::HashSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::trial;
use iolab_storage::{Need, Target};
use iolab_workload::counters::{Hardware, NoHardware};
use iolab_workload::operation::Moved;
use iolab_workload::outcome::{Ended, Failure, Outcome};
use iolab_workload::series::Interval;
use iolab_workload::trial::{
    Backend, Batch, BufferInit, CacheState, Pattern, SyncPolicy, TrialLimit, TrialSpec,
};
use iolab_workload::{Kind, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::files::{self, clock, folder, requests, scratch};

pub(crate) const SIZE: u64 = 4 << 20;
pub(crate) const BLOCK: u64 = 4096;

pub(crate) fn spec() -> TrialSpec {
    TrialSpec {
        region: SIZE,
        cache: CacheState::Cold,
        ..TrialSpec::default()
    }
}

pub(crate) fn run(spec: &TrialSpec, target: &Target) -> Result<Outcome> {
    let outcome = files::run(spec, target)?;
    // Also after short transfers and errors, the intervals add up to the totals.
    let mut done = outcome.operations.moved();
    if spec.sync == SyncPolicy::End {
        // Its syncs follow the last interval.
        done.sync = Moved::default();
    }
    assert_eq!(outcome.series.total(), done);
    let end_ns = outcome.series.intervals.last().map(Interval::end_ns);
    assert!(
        end_ns.expect("an interval") <= outcome.elapsed_ns,
        "{end_ns:?}"
    );
    Ok(outcome)
}

/// Every backend that works here with each cache state it can have; the others are skips.
pub(crate) fn variants(target: &Target) -> Vec<TrialSpec> {
    let mut found = Vec::new();
    for name in Backend::NAMES.iter().filter(|name| **name != "null") {
        for cache in [CacheState::Direct, CacheState::Cold, CacheState::Hot] {
            let backend: Backend = name.parse().expect("a name of the list");
            if backend == Backend::Mmap && cache == CacheState::Direct {
                continue;
            }
            let depth = if backend.is_asynchronous() { 8 } else { 1 };
            let spec = TrialSpec {
                backend,
                cache,
                depth,
                ..spec()
            };
            match run(&spec, target) {
                Ok(outcome) => {
                    assert_eq!(outcome.errors, 0, "{name} {cache}: {:?}", outcome.failure);
                    found.push(spec);
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Usage, "{name} {cache}: {error}");
                    crate::skip(&spec, &error);
                }
            }
        }
    }
    assert!(found.len() >= 5, "sync, psync and mmap work everywhere");
    found
}

/// The beginnings of the blocks, each once; blocks with different beginnings differ.
fn beginnings(target: &Target) -> HashSet<Vec<u8>> {
    let blocks = blocks(target).into_iter();
    blocks.map(|block| block[..64].to_vec()).collect()
}

fn blocks(target: &Target) -> Vec<Vec<u8>> {
    fs::read(target.path()).expect("readable")[..SIZE as usize]
        .chunks(BLOCK as usize)
        .map(<[u8]>::to_vec)
        .collect()
}

/// The byte offset that iolab stamps on every 4 KiB it writes.
fn stamped_offset(block: &[u8]) -> u64 {
    u64::from_le_bytes(block[..8].try_into().expect("eight bytes"))
}

#[test]
fn one_pass_of_every_backend_is_counted_exactly() {
    let (_directory, target) = scratch(SIZE);
    for spec in variants(&target) {
        for (pattern, threads) in [(Pattern::Seq, 1), (Pattern::Rand, 3)] {
            let spec = TrialSpec {
                pattern,
                threads,
                ..spec.clone()
            };
            let outcome = run(&spec, &target).expect("it ran before");
            let what = format!("{} {} {pattern}", spec.backend, spec.cache);
            assert_eq!(outcome.operations.read.requests, SIZE / BLOCK, "{what}");
            assert_eq!(outcome.operations.read.bytes, SIZE, "{what}");
            assert_eq!(
                outcome.operations.read.latency.len(),
                SIZE / BLOCK,
                "{what}"
            );
            assert_eq!(
                (outcome.operations.write.requests, outcome.errors),
                (0, 0),
                "{what}"
            );
            assert_eq!(outcome.ended, Ended::Done, "{what}");
            assert!(outcome.all_active_ns <= outcome.elapsed_ns, "{what}");
            // The histogram keeps three digits: its greatest value is up to 0.1 % above the true one.
            assert!(
                outcome.operations.read.latency.max() <= outcome.elapsed_ns / 999 * 1000 + 1000,
                "{what}"
            );
        }
    }
}

#[test]
fn every_backend_writes_each_block_once_and_differently() {
    let (_directory, target) = scratch(SIZE);
    let mut seed = 0;
    for spec in variants(&target) {
        for (pattern, bs) in [
            (Pattern::Rand, BLOCK),
            (Pattern::Seq, 64 << 10),
            (Pattern::Reverse, BLOCK),
        ] {
            seed += 1;
            let spec = TrialSpec {
                read_percent: 0,
                threads: 2,
                pattern,
                bs,
                seed,
                // Both loops have to stamp what they write.
                latency: seed % 2 == 0,
                ..spec.clone()
            };
            let before = beginnings(&target);
            let outcome = run(&spec, &target).expect("it ran before");
            let what = format!("{} {} {pattern} {bs}", spec.backend, spec.cache);
            assert_eq!(
                (outcome.operations.write.bytes, outcome.errors),
                (SIZE, 0),
                "{what}"
            );
            for (index, block) in blocks(&target).iter().enumerate() {
                assert_eq!(stamped_offset(block), index as u64 * BLOCK, "{what}");
            }
            let written = beginnings(&target);
            assert_eq!(written.len() as u64, SIZE / BLOCK, "{what}: blocks repeat");
            assert!(written.is_disjoint(&before), "{what}: a block is old");
        }
    }
}

#[test]
fn data_that_shrinks_to_nothing_is_zeros() {
    let (_directory, target) = scratch(SIZE);
    let zero = TrialSpec {
        read_percent: 0,
        compressible: 100,
        ..spec()
    };
    run(&zero, &target).expect("runs");
    assert!(blocks(&target).iter().flatten().all(|byte| *byte == 0));
}

#[test]
fn bounds_hold_over_all_threads() {
    let (_directory, target) = scratch(SIZE);
    let limited = |limit| TrialSpec {
        threads: 3,
        limit,
        ..spec()
    };
    let counted = run(&limited(requests(1000)), &target).expect("runs");
    assert_eq!(counted.requests(), 1000);
    let bytes = TrialLimit {
        bytes: Some(3 * SIZE + 1),
        ..TrialLimit::default()
    };
    let sized = run(&limited(bytes), &target).expect("runs");
    assert_eq!(sized.bytes(), 3 * SIZE + BLOCK);
    let time = TrialLimit {
        time: Some(Duration::from_millis(50)),
        ..TrialLimit::default()
    };
    let timed = run(&limited(time), &target).expect("runs");
    assert_eq!(timed.ended, Ended::Time);
    assert!(timed.elapsed_ns >= 50_000_000);
}

#[test]
fn sync_policies_count_their_syncs() {
    let (_directory, target) = scratch(SIZE);
    for spec in variants(&target) {
        let spec = TrialSpec {
            read_percent: 0,
            threads: 2,
            limit: requests(40),
            ..spec
        };
        let with = |sync| {
            let spec = TrialSpec {
                sync,
                ..spec.clone()
            };
            run(&spec, &target)
        };
        for sync in [SyncPolicy::Each, SyncPolicy::Fdatasync] {
            let each = with(sync).expect("runs");
            assert_eq!(
                (
                    each.operations.sync.requests, each.operations.write.requests
                ),
                (40, 40)
            );
            assert_eq!(each.operations.write.bytes, 40 * BLOCK);
            assert_eq!(each.operations.write.latency.len(), 40);
            assert_eq!(each.operations.sync.latency.len(), 40);
            // The time of a write includes its sync.
            assert!(each.operations.sync.latency.max() <= each.operations.write.latency.max());
        }
        let end = with(SyncPolicy::End).expect("runs");
        assert_eq!(end.operations.sync.requests, 2, "{}", spec.backend);
        assert!(end.end_sync_ns > 0 && end.end_sync_ns <= end.elapsed_ns);
        let none = with(SyncPolicy::None).expect("runs");
        assert_eq!(
            (
                none.operations.sync.requests,
                none.operations.sync.latency.len()
            ),
            (0, 0)
        );
        for sync in [SyncPolicy::Osync, SyncPolicy::Odsync, SyncPolicy::RwfDsync] {
            let takes_flags = spec.backend.takes_write_flags();
            match with(sync) {
                Ok(outcome) => assert_eq!(
                    (
                        outcome.operations.write.requests,
                        outcome.operations.sync.requests
                    ),
                    (40, 0)
                ),
                Err(error) => assert!(
                    spec.backend == Backend::Mmap || sync == SyncPolicy::RwfDsync && !takes_flags,
                    "{error}"
                ),
            }
        }
    }
}

#[test]
fn mixed_trials_count_both_directions() {
    let (_directory, target) = scratch(SIZE);
    let spec = TrialSpec {
        read_percent: 70,
        limit: requests(2000),
        ..spec()
    };
    let outcome = run(&spec, &target).expect("runs");
    assert_eq!(outcome.requests(), 2000);
    let reads = outcome.operations.read.requests;
    assert!((1200..=1600).contains(&reads), "{reads}");
    assert_eq!(outcome.operations.read.latency.len(), reads);
    assert_eq!(
        outcome.operations.write.bytes,
        outcome.operations.write.requests * BLOCK
    );
}

#[test]
fn completion_strategies_and_depths_all_finish() {
    let (_directory, target) = scratch(SIZE);
    let asynchronous = |spec: &TrialSpec| spec.backend.is_asynchronous();
    for spec in variants(&target).into_iter().filter(asynchronous) {
        for depth in [1, 2, 33, 512] {
            for batch in [Batch::One, Batch::Percent(50), Batch::All] {
                // Twice as many requests as can be in flight, and some.
                let region = (2 * u64::from(depth)).max(128) * BLOCK;
                let spec = TrialSpec {
                    region,
                    pattern: Pattern::Rand,
                    depth,
                    batch,
                    ..spec.clone()
                };
                let outcome = run(&spec, &target).expect("runs");
                assert_eq!((outcome.bytes(), outcome.errors), (region, 0), "{spec:?}");
            }
        }
    }
}

/// Buffers of the first threads leave no locked memory for the other rings. The limit applies to a process, so this test
/// runs itself in a process of its own.
#[test]
fn buffers_beyond_the_locked_memory_are_not_registered() {
    const IS_CHILD: &str = "IOLAB_TEST_LOCKED_MEMORY";
    if std::env::var_os(IS_CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        let own = "trial::buffers_beyond_the_locked_memory_are_not_registered";
        child.args(["--exact", own]).env(IS_CHILD, "");
        let done = child.output().expect("it starts");
        assert!(done.status.success(), "{done:?}");
        return;
    }
    needs::ordinary_user(|folder| {
        let maximum = getrlimit(Resource::Memlock).maximum;
        let current = Some(2 << 20);
        setrlimit(Resource::Memlock, Rlimit { current, maximum }).expect("a lower limit");
        let path = folder.join("data");
        fs::write(&path, vec![7; SIZE as usize]).expect("room");
        let target = Target::open(&path, &Need::reading(SIZE)).expect("an own file");
        let spec = TrialSpec {
            backend: Backend::IoUring,
            threads: 64,
            depth: 64,
            ..spec()
        };
        match run(&spec, &target) {
            Ok(outcome) => {
                assert_eq!((outcome.bytes(), outcome.errors), (SIZE, 0));
                assert!(!outcome.effective.fixed_buffers);
                insta::assert_snapshot!(outcome.effective.note, @"buffers not registered: all threads together exceed the locked-memory limit (ulimit -l)");
            }
            Err(error) if iolab_engine::asynchronous() == Backend::IoUring => panic!("{error}"),
            Err(error) => needs::skip(needs::Need::IoUring, error),
        }
    });
}

#[test]
fn null_does_no_io_at_any_depth() {
    let (_directory, target) = scratch(SIZE);
    for depth in [1, 4096] {
        let spec = TrialSpec {
            backend: Backend::Null,
            depth,
            limit: requests(100_000),
            ..spec()
        };
        let outcome = run(&spec, &target).expect("runs");
        assert_eq!((outcome.requests(), outcome.errors), (100_000, 0));
    }
}

#[test]
fn a_file_that_shrinks_is_a_counted_error() {
    let names = Backend::NAMES.iter().filter(|name| **name != "null");
    for (name, latency) in names.flat_map(|name| [(name, true), (name, false)]) {
        let backend: Backend = name.parse().expect("a name of the list");
        let directory = folder();
        let path = directory.path().join("data");
        fs::write(&path, vec![1u8; SIZE as usize]).expect("written");
        let need = Need::reading(SIZE);
        let target = Target::open(&path, &need).expect("opens");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("opens");
        file.set_len(SIZE / 2 + 100).expect("cut");
        let spec = TrialSpec {
            backend,
            latency,
            ..spec()
        };
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => {
                crate::skip(&spec, &error);
                continue;
            }
        };
        assert_eq!(
            (outcome.ended, outcome.errors),
            (Ended::Failed, 1),
            "{backend}"
        );
        let Some(Failure::Request(failure)) = outcome.failure else {
            panic!("{backend}: {:?}", outcome.failure);
        };
        let got = (
            failure.offset,
            failure.errno,
            outcome.operations.read.short_transfers,
        );
        // The first 100 bytes were there: a short read, continued, and then the end of the file. In a mapping
        // the kernel fills such a page with zeros, and the next one fails.
        let expected = match backend {
            Backend::Mmap => (SIZE / 2 + BLOCK, 0, 0),
            _ => (SIZE / 2 + 100, 0, 1),
        };
        assert_eq!(got, expected, "{backend}");
        let recorded = if latency {
            outcome.operations.read.requests
        } else {
            0
        };
        assert_eq!(outcome.operations.read.latency.len(), recorded);
    }
}

#[test]
fn the_stop_flag_ends_a_trial_early() {
    let (_directory, target) = scratch(SIZE);
    let spec = TrialSpec {
        limit: requests(u64::MAX / 8192),
        threads: 2,
        ..spec()
    };
    let raised = AtomicBool::new(true);
    let outcome = trial::run(&spec, &target, clock(), &raised).expect("runs");
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert_eq!(outcome.requests(), 2);
}

#[test]
fn unfit_settings_are_refused_before_anything_happens() {
    let (_directory, target) = scratch(SIZE);
    type Change = fn(&mut TrialSpec);
    let wrong: [Change; 16] = [
        |s| s.bs = 0,
        |s| s.bs = 2 * SIZE,
        |s| s.region = SIZE + 1,
        |s| s.offset = BLOCK,
        |s| s.offset = u64::MAX,
        |s| s.threads = 0,
        |s| s.threads = 1025,
        |s| (s.threads, s.bs) = (5, SIZE / 4),
        |s| s.depth = 0,
        |s| s.depth = 2,
        |s| (s.depth, s.backend) = (4097, Backend::IoUring),
        |s| s.read_percent = 101,
        |s| (s.read_percent, s.buffer_init) = (50, BufferInit::Untouched),
        |s| (s.backend, s.cache) = (Backend::Mmap, CacheState::Direct),
        |s| s.limit.bytes = Some(0),
        |s| (s.bs, s.cache) = (1000, CacheState::Direct),
    ];
    for change in wrong {
        let mut spec = spec();
        change(&mut spec);
        let error = run(&spec, &target).expect_err("refused");
        assert_eq!(error.kind(), Kind::Usage, "{spec:?}: {error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}

#[test]
fn accounts_show_whether_reads_reached_the_device() {
    let (_directory, target) = scratch(SIZE);
    let read = |cache| {
        let spec = TrialSpec {
            cache,
            bs: 64 << 10,
            ..spec()
        };
        run(&spec, &target)
    };
    if target.device().is_none() {
        return needs::skip(needs::Need::BlockDevice, target.path().display());
    }
    let hot = read(CacheState::Hot).expect("runs").counters;
    let Some(hot) = hot.process_io else {
        return needs::skip(
            needs::Need::IoAccount,
            "that of this process cannot be read",
        );
    };
    assert!(hot.rchar >= SIZE, "{hot:?}");
    match read(CacheState::Direct) {
        Ok(outcome) => {
            let direct = outcome.counters.process_io.expect("it was readable");
            // Other tests of this process read at the same time, so that the account may show more.
            assert!(direct.read_bytes >= SIZE, "{direct:?}");
        }
        Err(error) => needs::skip(needs::Need::DirectIo, error),
    }
}

#[test]
fn an_unaligned_write_leaves_its_neighbours_alone() {
    let (_directory, target) = scratch(SIZE);
    let before = fs::read(target.path()).expect("readable");
    let spec = TrialSpec {
        offset: 5000,
        region: 3000,
        bs: 1000,
        read_percent: 0,
        ..spec()
    };
    run(&spec, &target).expect("runs");
    let after = fs::read(target.path()).expect("readable");
    assert_eq!(after[..5000], before[..5000]);
    assert_eq!(after[8000..], before[8000..]);
    assert_ne!(after[5000..6000], before[5000..6000]);
}

/// Machines differ in the events that they count, and in the users who may count them.
#[test]
fn hardware_events_are_counted_or_explained() {
    let (_directory, target) = scratch(SIZE);
    let counted = |hardware_counters, threads| {
        let spec = TrialSpec {
            hardware_counters,
            threads,
            ..spec()
        };
        run(&spec, &target).expect("runs").counters.hardware
    };
    assert_eq!(counted(false, 2), Hardware::Missing(NoHardware::NotAsked));
    match counted(true, 2) {
        Hardware::Missing(reason) => {
            assert_ne!(reason, NoHardware::NotAsked);
            needs::skip(needs::Need::HardwareEvents, reason);
        }
        Hardware::Counted(events) => {
            let all = [
                events.cycles, events.instructions, events.llc_misses, events.dtlb_misses,
            ];
            assert!(all.into_iter().flatten().any(|count| count > 0), "{all:?}");
        }
    }
}
