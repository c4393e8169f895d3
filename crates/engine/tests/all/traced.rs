//! Traced trials on a real device: each request is joined with its events, and its stages are its time.

use iolab_workload::operation::Operation;
use iolab_workload::stages::{CarriedBy, Stage, Traced};
use iolab_workload::trial::{Backend, CacheState, Pattern, SyncPolicy, TrialSpec};
use needs::Need;

use crate::files::{requests, run, scratch};

const SIZE: u64 = 16 << 20;

fn traced() -> TrialSpec {
    TrialSpec {
        region: SIZE,
        pattern: Pattern::Rand,
        cache: CacheState::Direct,
        limit: requests(2000),
        trace: true,
        ..TrialSpec::default()
    }
}

/// Variants of a trial that differ in how requests are issued.
fn variants() -> Vec<TrialSpec> {
    let of = |backend, depth| TrialSpec {
        backend,
        depth,
        ..traced()
    };
    let mut all = vec![
        of(Backend::Psync, 1),
        of(Backend::Pvsync2, 1),
        of(Backend::Sync, 1),
        of(Backend::Libaio, 1),
        of(Backend::Libaio, 32),
        of(Backend::IoUring, 1),
        of(Backend::IoUring, 32),
        of(Backend::Pool, 8),
    ];
    all.push(TrialSpec {
        sqpoll: true,
        ..of(Backend::IoUring, 8)
    });
    all.push(TrialSpec {
        threads: 4,
        ..of(Backend::Psync, 1)
    });
    // Sequential requests at once may be merged, large ones split.
    all.push(TrialSpec {
        pattern: Pattern::Seq,
        ..of(Backend::IoUring, 32)
    });
    all.push(TrialSpec {
        bs: 4 << 20,
        limit: requests(20),
        ..of(Backend::Psync, 1)
    });
    let writing = |spec: &TrialSpec| TrialSpec {
        read_percent: 50,
        ..spec.clone()
    };
    let mixed: Vec<TrialSpec> = all.iter().map(writing).collect();
    all.extend(mixed);
    // Syncs after all writes, and after every third one.
    let syncing = |backend, depth, sync_every| TrialSpec {
        sync: SyncPolicy::Each,
        sync_every,
        read_percent: 20,
        limit: requests(200),
        ..of(backend, depth)
    };
    all.push(syncing(Backend::Psync, 1, 1));
    all.push(syncing(Backend::Psync, 1, 3));
    all.push(syncing(Backend::IoUring, 8, 1));
    all.push(TrialSpec {
        sync: SyncPolicy::Fdatasync,
        threads: 2,
        ..syncing(Backend::Psync, 1, 1)
    });
    // Writes that sync themselves.
    for sync in [SyncPolicy::Osync, SyncPolicy::Odsync, SyncPolicy::RwfDsync] {
        all.push(TrialSpec {
            sync,
            threads: 2,
            ..syncing(Backend::Pvsync2, 1, 1)
        });
    }
    all
}

#[test]
fn the_stages_of_every_request_are_its_time() {
    let (_folder, target) = scratch(SIZE);
    if let Err(why) = target.traced_disk() {
        return needs::skip(Need::BlockDevice, why);
    }
    if let Err(error) = iolab_host::tracing::check() {
        return needs::skip(Need::TraceEvents, error);
    }
    for spec in variants() {
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => {
                crate::skip(&spec, &error);
                continue;
            }
        };
        let name = format!(
            "{} depth {} threads {} reads {} % sync {}",
            spec.backend, spec.depth, spec.threads, spec.read_percent, spec.sync
        );
        let Traced {
            counts,
            note,
            carried_by,
            journal,
            stages,
        } = outcome.traced.expect("traced");
        let done = outcome.operations.moved().requests();
        assert_eq!(counts.joined + counts.unjoined, done, "{name}");
        assert_eq!(carried_by, CarriedBy::Disk, "{name}");
        let stages = stages.unwrap_or_else(|| panic!("{name}: {note}, {counts:?}"));
        let mean = |stage| {
            stages.histograms[stage]
                .as_ref()
                .map_or(0.0, |of| of.mean())
        };
        let sum_of = |parts: &[Stage]| -> f64 { parts.iter().map(|stage| mean(*stage)).sum() };
        let syncs = &outcome.operations.sync;
        let written = outcome.operations.write.requests;
        match spec.sync.is_in_write() {
            // Writes that a device carries out past its cache need no sync.
            true => assert!(counts.syncs.syncs <= written, "{name}"),
            false => assert_eq!(counts.syncs.syncs, syncs.requests, "{name}"),
        }
        assert_eq!(journal.is_some(), counts.syncs.syncs > 0, "{name}");
        let sync_share = counts.syncs.syncs as f64 / done as f64;
        if syncs.requests > 0 {
            let (whole, latency) = (sum_of(&Stage::SYNC), syncs.latency.mean());
            assert!(
                (whole / latency - 1.0).abs() < 0.003,
                "{name}: {whole} {latency}"
            );
        }
        // A sync is a part of the recorded time of the write that it follows, or is within.
        let whole = sum_of(&Stage::WHOLE) + sync_share * sum_of(&Stage::SYNC);
        let latency: f64 = [Operation::Read, Operation::Write]
            .map(|operation| &outcome.operations[operation].latency)
            .map(|latency| {
                if latency.is_empty() {
                    0.0
                } else {
                    latency.mean() * latency.len() as f64
                }
            })
            .iter()
            .sum::<f64>()
            / done as f64;
        // Histograms have three digits.
        assert!(
            (whole / latency - 1.0).abs() < 0.003,
            "{name}: {whole} {latency}"
        );
    }
}
