//! Whole trials whose data is verified, on a real file system.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::{KeptMemory, trial};
use iolab_storage::Target;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{
    Backend, Batch, CacheState, FileLayout, FirstOffset, Pattern, Rate, SyncPolicy, TrialLimit,
    TrialSpec,
};

use crate::files::{clock, run, scratch};

const SIZE: u64 = 4 << 20;
const BS: u64 = 4096;

fn writes() -> TrialSpec {
    TrialSpec {
        bs: BS,
        region: SIZE,
        read_percent: 0,
        cache: CacheState::Cold,
        verify: true,
        ..TrialSpec::default()
    }
}

#[track_caller]
fn clean(spec: &TrialSpec, target: &Target) -> Option<u64> {
    match run(spec, target) {
        Ok(outcome) => {
            assert_eq!(outcome.failure, None, "{spec:?}");
            let verified = outcome.verified.expect("it was read back");
            assert_eq!(verified.faulty_blocks(), 0);
            assert_eq!(verified.bytes, verified.blocks * spec.bs);
            Some(verified.blocks)
        }
        Err(error) => {
            crate::skip(spec, &error);
            None
        }
    }
}

#[test]
fn every_backend_writes_the_requested_data() {
    let (_folder, target) = scratch(SIZE);
    for name in Backend::NAMES.iter().filter(|name| **name != "null") {
        let backend: Backend = name.parse().expect("a name");
        for cache in [CacheState::Direct, CacheState::Cold, CacheState::Hot] {
            let spec = TrialSpec {
                backend,
                cache,
                depth: if backend.is_asynchronous() { 8 } else { 1 },
                pattern: Pattern::Rand,
                ..writes()
            };
            if backend == Backend::Mmap && cache == CacheState::Direct {
                continue;
            }
            if let Some(blocks) = clean(&spec, &target) {
                assert_eq!(blocks, SIZE / BS, "every block once");
            }
        }
    }
}

#[test]
fn trials_with_reused_memory_write_the_right_data() {
    let size = 16 << 20;
    let (_folder, target) = scratch(size);
    let mut kept = KeptMemory::default();
    for (seed, read_percent) in [(1, 0), (2, 50), (3, 0), (4, 0)] {
        // As many buffers as blocks: memory is kept from this size on.
        let spec = TrialSpec {
            backend: Backend::Libaio,
            pattern: Pattern::Rand,
            region: size,
            threads: 64,
            depth: 64,
            read_percent,
            seed,
            ..writes()
        };
        let stop = AtomicBool::new(false);
        let outcome = match trial::run_over(&spec, &target, clock(), &stop, &mut kept) {
            Ok(outcome) => outcome,
            Err(error) => return crate::skip(&spec, &error),
        };
        assert_eq!(outcome.failure, None, "trial {seed}");
        let verified = outcome.verified.expect("it was read back");
        assert_eq!(verified.faulty_blocks(), 0);
        assert!(read_percent > 0 || verified.blocks == size / BS);
    }
}

#[test]
fn repeatedly_written_blocks_hold_the_last_write() {
    let (_folder, target) = scratch(SIZE);
    let patterns = [
        Pattern::Seq,
        Pattern::Reverse,
        Pattern::Strided,
        Pattern::Rand,
        Pattern::RandReplace,
        Pattern::Zipf(1.1),
    ];
    for pattern in patterns {
        for (threads, depth, sync) in [(1, 1, SyncPolicy::None), (3, 4, SyncPolicy::End)] {
            let spec = TrialSpec {
                backend: Backend::IoUring,
                pattern,
                skip: 2 * BS,
                region: 32 * BS,
                threads,
                depth,
                sync,
                batch: Batch::One,
                limit: TrialLimit {
                    bytes: Some(500 * BS),
                    ..TrialLimit::default()
                },
                ..writes()
            };
            clean(&spec, &target);
        }
    }
}

#[test]
fn reading_back_follows_all_offset_settings() {
    let (_folder, target) = scratch(SIZE);
    let random = |read_percent, threads| TrialSpec {
        pattern: Pattern::Rand,
        read_percent,
        threads,
        ..writes()
    };
    let strided = TrialSpec {
        pattern: Pattern::Strided,
        skip: 2 * BS,
        ..writes()
    };
    let moved = TrialSpec {
        offset: SIZE / 2,
        region: SIZE / 4,
        ..random(0, 1)
    };
    let drawn = TrialSpec {
        pattern: Pattern::Seq,
        first_offset: FirstOffset::Random,
        ..writes()
    };
    let paused = TrialSpec {
        thinktime: Some(Duration::from_micros(1)),
        ..random(30, 1)
    };
    let replaced = TrialSpec {
        pattern: Pattern::RandReplace,
        ..random(50, 2)
    };
    let patterns = ["pareto:0.2", "normal:10", "zones:50/5:30/15:20/80"].map(|pattern| TrialSpec {
        pattern: pattern.parse().expect("a pattern"),
        ..random(0, 1)
    });
    let interleaved = TrialSpec {
        layout: FileLayout::Interleaved,
        threads: 4,
        ..writes()
    };
    let others = [
        random(0, 1),
        random(0, 3),
        strided,
        moved,
        drawn,
        paused,
        replaced,
        interleaved,
    ];
    for spec in others.into_iter().chain(patterns) {
        let blocks = clean(&spec, &target).expect("it runs");
        assert!(blocks > 0, "{spec:?}");
    }
}

#[test]
fn a_block_of_several_threads_holds_one_write() {
    let (_folder, target) = scratch(SIZE);
    for pattern in [Pattern::Seq, Pattern::Rand, Pattern::Strided] {
        let spec = TrialSpec {
            pattern,
            layout: FileLayout::Overlapping,
            skip: BS,
            region: 16 * BS,
            threads: 4,
            limit: TrialLimit {
                bytes: Some(2000 * BS),
                ..TrialLimit::default()
            },
            ..writes()
        };
        assert_eq!(clean(&spec, &target), Some(16));
    }
}

#[test]
fn reads_between_the_writes_do_not_matter() {
    let (_folder, target) = scratch(SIZE);
    let spec = TrialSpec {
        pattern: Pattern::Rand,
        read_percent: 60,
        ..writes()
    };
    let outcome = run(&spec, &target).expect("it runs");
    let verified = outcome.verified.expect("it was read back");
    assert_eq!(
        verified.blocks, outcome.operations.write.requests,
        "one pass"
    );
    assert!(verified.blocks < SIZE / BS);
    assert_eq!(outcome.failure, None);
}

#[test]
fn loops_with_and_without_a_rate_are_verified() {
    let (_folder, target) = scratch(SIZE);
    for (rate, latency) in [
        (Some(Rate::Requests(20_000)), true),
        (None, true),
        (None, false),
    ] {
        let spec = TrialSpec {
            rate,
            latency,
            limit: TrialLimit {
                time: Some(Duration::from_millis(50)),
                ..TrialLimit::default()
            },
            bs: 3 * 512,
            ..writes()
        };
        assert!(clean(&spec, &target).is_some_and(|blocks| blocks > 0));
    }
}

#[test]
fn trials_follow_each_other() {
    let (_folder, target) = scratch(SIZE);
    for _ in 0..3 {
        assert!(clean(&writes(), &target).is_some());
    }
}

#[test]
fn reading_back_is_not_measured() {
    let (_folder, target) = scratch(SIZE);
    let outcome = run(&writes(), &target).expect("it runs");
    assert_eq!(outcome.ended, Ended::Done);
    assert_eq!(
        (
            outcome.operations.read.requests,
            outcome.operations.read.bytes
        ),
        (0, 0)
    );
    assert_eq!(outcome.operations.write.bytes, SIZE);
    let without = run(
        &TrialSpec {
            verify: false,
            ..writes()
        },
        &target,
    )
    .expect("it runs");
    assert_eq!(without.verified, None);
}
