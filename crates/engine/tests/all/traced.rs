//! Traced trials on a real device: each request is joined with its events, and its stages are its time.

use iolab_workload::operation::Operation;
use iolab_workload::stages::{Stage, Traced};
use iolab_workload::trial::{Backend, CacheState, Pattern, TrialSpec};
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
        registered: false,
        ..of(Backend::IoUring, 32)
    });
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
    all
}

#[test]
fn the_stages_of_every_request_are_its_time() {
    let (_folder, target) = scratch(SIZE);
    if let Err(error) = iolab_host::tracing::check() {
        return needs::skip(Need::TraceEvents, error);
    }
    if let Err(why) = target.disk() {
        return needs::skip(Need::BlockDevice, why);
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
            "{} depth {} threads {} reads {} %",
            spec.backend, spec.depth, spec.threads, spec.read_percent
        );
        let Traced {
            counts,
            note,
            stages,
        } = outcome.traced.expect("traced");
        let done = outcome.operations.moved().requests();
        assert_eq!(counts.joined + counts.unjoined, done, "{name}");
        let stages = stages.unwrap_or_else(|| panic!("{name}: {note}, {counts:?}"));
        let mean = |stage| {
            stages.histograms[stage]
                .as_ref()
                .map_or(0.0, |of| of.mean())
        };
        let whole: f64 = Stage::WHOLE.iter().map(|stage| mean(*stage)).sum();
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
