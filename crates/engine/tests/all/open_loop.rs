//! Trials at a given rate on a real file system, with every backend.

use std::time::Duration;

use iolab_storage::Target;
use iolab_workload::Kind;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{Backend, Batch, CacheState, Pattern, TrialLimit, TrialSpec};
use iolab_workload::trial::{RATE_MAX, Rate};

use crate::files::{requests, run, scratch};

const SIZE: u64 = 1 << 20;

/// Every backend with each cache state it can have here; the others are skips.
fn variants(target: &Target) -> Vec<TrialSpec> {
    let mut found = Vec::new();
    for name in Backend::NAMES {
        for cache in [CacheState::Direct, CacheState::Cold] {
            let backend: Backend = name.parse().expect("a name of the list");
            if backend == Backend::Mmap && cache == CacheState::Direct {
                continue;
            }
            let spec = TrialSpec {
                backend,
                cache,
                region: SIZE,
                pattern: Pattern::Rand,
                depth: if backend.is_asynchronous() { 8 } else { 1 },
                limit: requests(4),
                ..TrialSpec::default()
            };
            match run(&spec, target) {
                Ok(outcome) => {
                    assert_eq!(outcome.errors, 0, "{name} {cache}: {:?}", outcome.failure);
                    found.push(spec);
                }
                Err(error) => crate::skip(&spec, &error),
            }
        }
    }
    assert!(
        found.len() >= 5,
        "sync, psync, mmap and null work everywhere"
    );
    found
}

#[test]
fn a_time_bound_ends_a_long_trial() {
    let (_directory, target) = scratch(SIZE);
    for variant in variants(&target) {
        let spec = TrialSpec {
            rate: Some(Rate::Requests(200)),
            threads: 2,
            limit: TrialLimit {
                time: Some(Duration::from_millis(100)),
                ..TrialLimit::default()
            },
            ..variant
        };
        let outcome = run(&spec, &target).expect("it ran before");
        let what = format!("{} {}", spec.backend, spec.cache);
        assert_eq!(outcome.ended, Ended::Time, "{what}");
        // 20 requests are due; a slow machine reports those that it did not make.
        let rate_report = outcome.rate_report.expect("a rate was asked for");
        assert!(outcome.requests() <= 20, "{what}: {}", outcome.requests());
        assert!(
            outcome.requests() + rate_report.backlog_end >= 20,
            "{what}: {rate_report:?}"
        );
        assert!(outcome.elapsed_ns >= 99_000_000, "{what}");
    }
}

#[test]
fn no_storage_holds_the_greatest_rate() {
    let (_directory, target) = scratch(SIZE);
    for variant in variants(&target) {
        let spec = TrialSpec {
            rate: Some(Rate::Requests(RATE_MAX)),
            limit: TrialLimit {
                time: Some(Duration::from_millis(20)),
                ..TrialLimit::default()
            },
            ..variant
        };
        let outcome = run(&spec, &target).expect("it ran before");
        let rate_report = outcome.rate_report.expect("a rate was asked for");
        let what = format!("{} {}: {rate_report:?}", spec.backend, spec.cache);
        assert_eq!(outcome.ended, Ended::Time, "{what}");
        assert!(rate_report.rate_achieved < 0.5e9, "{what}");
        assert!(rate_report.backlog_end > 10_000_000, "{what}");
        assert!(outcome.requests() > 0, "{what}");
    }
}

#[test]
fn rates_that_cannot_be_are_refused() {
    let (_directory, target) = scratch(SIZE);
    let rated = |rate| TrialSpec {
        rate: Some(Rate::Requests(rate)),
        region: SIZE,
        cache: CacheState::Cold,
        ..TrialSpec::default()
    };
    let wrong = [
        rated(0),
        rated(RATE_MAX + 1),
        TrialSpec {
            latency: false,
            ..rated(1000)
        },
        TrialSpec {
            backend: Backend::IoUring,
            depth: 8,
            batch: Batch::All,
            ..rated(1000)
        },
    ];
    for spec in wrong {
        let error = run(&spec, &target).expect_err("refused");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}
