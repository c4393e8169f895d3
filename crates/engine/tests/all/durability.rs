//! How often writes are made durable, and on what space they go.

use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_storage::{ExtraFiles, Need, PrivateFiles, Target};
use iolab_workload::Result;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::trial::{
    Allocate, Backend, CacheState, FileLayout, SyncPolicy, TrialLimit, TrialSpec,
};

use crate::files::clock;

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
