//! Trials that record no latency do the same as those that do.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::trial;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{Backend, CacheState, Pattern, SyncPolicy, TrialLimit, TrialSpec};

use crate::files::{clock, requests, scratch};
use crate::trial::{BLOCK, SIZE, run, spec, variants};

#[test]
fn untimed_trials_differ_only_in_latency() {
    let (_directory, target) = scratch(SIZE);
    for spec in variants(&target) {
        for read_percent in [100, 0, 50] {
            let spec = TrialSpec {
                read_percent,
                latency: false,
                pattern: Pattern::Rand,
                threads: 2,
                sync: SyncPolicy::End,
                ..spec.clone()
            };
            let outcome = run(&spec, &target).expect("runs");
            let what = format!("{} {} {read_percent}", spec.backend, spec.cache);
            assert_eq!((outcome.bytes(), outcome.errors), (SIZE, 0), "{what}");
            assert_eq!(outcome.requests(), SIZE / BLOCK, "{what}");
            assert!(
                outcome.operations.read.latency.is_empty()
                    && outcome.operations.write.latency.is_empty()
            );
            assert_eq!(
                outcome.operations.sync.requests > 0,
                read_percent < 100,
                "{what}"
            );
            assert!(
                outcome.elapsed_ns > 0 && outcome.all_active_ns <= outcome.elapsed_ns,
                "{what}"
            );
        }
    }
}

#[test]
fn untimed_writes_are_followed_by_their_sync() {
    let (_directory, target) = scratch(SIZE);
    for spec in variants(&target) {
        let spec = TrialSpec {
            read_percent: 0,
            latency: false,
            sync: SyncPolicy::Each,
            limit: requests(20),
            ..spec
        };
        let outcome = run(&spec, &target).expect("runs");
        assert_eq!(
            (
                outcome.operations.sync.requests,
                outcome.operations.write.requests
            ),
            (20, 20)
        );
        assert_eq!(outcome.operations.write.bytes, 20 * BLOCK);
    }
}

#[test]
fn untimed_trials_keep_their_bounds() {
    let (_directory, target) = scratch(SIZE);
    let untimed = |limit| TrialSpec {
        latency: false,
        backend: Backend::Sync,
        cache: CacheState::Hot,
        bs: 8,
        limit,
        ..spec()
    };
    let time = TrialLimit {
        time: Some(Duration::from_millis(50)),
        ..TrialLimit::default()
    };
    let timed = run(&untimed(time), &target).expect("runs");
    assert_eq!(timed.ended, Ended::Time);
    assert!(timed.elapsed_ns >= 50_000_000);
    assert_eq!(
        timed.operations.read.bytes,
        timed.operations.read.requests * 8
    );
    let of_bytes = |bytes| TrialLimit {
        bytes: Some(bytes),
        ..TrialLimit::default()
    };
    let counted = run(&untimed(of_bytes(8 * 12_345)), &target).expect("runs");
    assert_eq!((counted.requests(), counted.ended), (12_345, Ended::Done));
    let raised = AtomicBool::new(true);
    let endless = TrialSpec {
        cache: CacheState::Cold,
        ..untimed(of_bytes(u64::MAX / 16))
    };
    let stopped = trial::run(&endless, &target, clock(), &raised).expect("runs");
    assert_eq!(stopped.ended, Ended::Interrupted);
}
