//! How often writes are made durable, and on what space they go.

use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_storage::{ExtraFiles, Need, PrivateFiles, Target};
use iolab_workload::Result;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::{
    Allocate, Backend, CacheState, FileLayout, SyncPolicy, TrialLimit, TrialSpec,
};

use crate::files::{clock, scratch};
use crate::trial::{SIZE, variants};

/// The mean size of an entry in the log of etcd, and no multiple of anything.
const ENTRY: u64 = 2300;
const REGION: u64 = 64 * ENTRY;

fn log(sync: SyncPolicy) -> TrialSpec {
    TrialSpec {
        bs: ENTRY,
        region: REGION,
        read_percent: 0,
        cache: CacheState::Cold,
        sync,
        ..TrialSpec::default()
    }
}

fn run(spec: &TrialSpec) -> Result<Outcome> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let private = match spec.layout {
        FileLayout::Private => vec![PrivateFiles {
            threads: spec.threads,
            bs: spec.bs,
            ranks: 1,
            files: None,
        }],
        _ => Vec::new(),
    };
    let need = Need {
        beside: ExtraFiles {
            private,
            fresh: if spec.starts_fresh() {
                spec.files_of_all()
            } else {
                0
            },
        },
        ..Need::writing(REGION)
    };
    let target = Target::open(directory.path(), &need)?;
    let stop = AtomicBool::new(false);
    let outcome = trial::run(spec, &target, clock(), &stop);
    // A trial removes the files that it made.
    let left = std::fs::read_dir(directory.path()).expect("readable");
    let private = usize::try_from(spec.threads).expect("few");
    let own = match spec.layout {
        FileLayout::Private => 1 + private,
        _ => 1,
    };
    assert_eq!(left.count(), own);
    outcome
}

#[test]
fn any_size_can_be_written_through_the_cache() {
    for sync in [
        SyncPolicy::None,
        SyncPolicy::Each,
        SyncPolicy::Fdatasync,
        SyncPolicy::Odsync,
    ] {
        let outcome = run(&log(sync)).expect("runs");
        assert_eq!(
            (
                outcome.operations.write.requests,
                outcome.operations.write.bytes
            ),
            (64, REGION)
        );
        assert_eq!(outcome.ended, Ended::Done);
    }
}

#[test]
fn a_sync_follows_every_so_many_writes() {
    for (every, syncs) in [(1, 64), (2, 32), (10, 6), (64, 1), (65, 0)] {
        for sync in [SyncPolicy::Each, SyncPolicy::Fdatasync] {
            for latency in [true, false] {
                let spec = TrialSpec {
                    sync_every: every,
                    latency,
                    ..log(sync)
                };
                let outcome = run(&spec).expect("runs");
                assert_eq!(
                    (
                        outcome.operations.sync.requests,
                        outcome.operations.write.requests
                    ),
                    (syncs, 64)
                );
                assert_eq!(outcome.operations.write.bytes, REGION);
                let timed = if latency { syncs } else { 0 };
                assert_eq!(outcome.operations.sync.latency.len(), timed);
                // Writes after the last sync are written out before the next trial.
                let is_left = syncs * u64::from(every) < 64;
                assert_eq!(outcome.region.owed_sync_ns.is_some(), is_left);
            }
        }
    }
}

#[test]
fn syncs_are_counted_per_thread() {
    let spec = TrialSpec {
        threads: 4,
        sync_every: 5,
        ..log(SyncPolicy::Fdatasync)
    };
    // Each of four threads has 16 writes.
    assert_eq!(run(&spec).expect("runs").operations.sync.requests, 12);
}

#[test]
fn a_write_takes_at_least_its_sync() {
    let outcome = run(&log(SyncPolicy::Fdatasync)).expect("runs");
    let (writes, syncs) = (
        &outcome.operations.write.latency,
        &outcome.operations.sync.latency,
    );
    assert_eq!((writes.len(), syncs.len()), (64, 64));
    assert!(writes.mean() > syncs.mean() && writes.min() >= syncs.min());
}

#[test]
fn a_new_file_is_filled_once() {
    for allocate in [Allocate::Append, Allocate::Preallocated] {
        for (layout, threads) in [(FileLayout::Shared, 1), (FileLayout::Private, 4)] {
            for backend in [Backend::Sync, Backend::Psync, Backend::Pvsync2] {
                let spec = TrialSpec {
                    allocate: Some(allocate),
                    layout,
                    threads,
                    backend,
                    // Time for many passes: there is one.
                    limit: TrialLimit {
                        time: Some(std::time::Duration::from_secs(60)),
                        ..TrialLimit::default()
                    },
                    ..log(SyncPolicy::Fdatasync)
                };
                let outcome = match run(&spec) {
                    Ok(outcome) => outcome,
                    Err(error) if error.message().contains("fallocate") => {
                        needs::skip(needs::Need::Fallocate, error);
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(outcome.ended, Ended::Done);
                assert_eq!(
                    (
                        outcome.operations.write.bytes,
                        outcome.operations.sync.requests
                    ),
                    (REGION, 64)
                );
            }
        }
    }
}

/// Past the page cache too: the drive's cache is written out before another trial reads.
#[test]
fn unsynced_writes_are_written_out_after_the_trial() {
    let (_directory, target) = scratch(SIZE);
    for spec in variants(&target) {
        for (sync, read_percent, is_left) in [
            (SyncPolicy::None, 0, true),
            (SyncPolicy::None, 100, false),
            (SyncPolicy::End, 0, false),
        ] {
            let spec = TrialSpec {
                read_percent,
                sync,
                ..spec.clone()
            };
            let region = trial::run(&spec, &target, clock(), &AtomicBool::new(false))
                .expect("runs")
                .region;
            let what = format!("{} {} {sync} {read_percent}", spec.backend, spec.cache);
            assert_eq!(region.owed_sync_ns.is_some(), is_left, "{what}");
        }
    }
}
