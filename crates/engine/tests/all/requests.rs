//! Requests that differ from each other, and threads that pause.

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;

use iolab_engine::trial;
use iolab_storage::{Consent, Need, Target};
use iolab_workload::Error;
use iolab_workload::cpus::Cpus;
use iolab_workload::outcome::{Ended, Failure, Outcome};
use iolab_workload::trial::{
    Advice, Backend, CacheState, FileLayout, Pattern, Rate, SyncPolicy, TrialLimit, TrialSpec,
};

use crate::files::{self, clock, folder, requests, scratch};

const REGION: u64 = 4 << 20;

fn spec() -> TrialSpec {
    TrialSpec {
        region: REGION,
        cache: CacheState::Cold,
        ..TrialSpec::default()
    }
}

/// Real pauses; the simulation computes its own.
#[test]
fn threads_pause_as_often_as_asked() {
    let (_folder, target) = scratch(REGION);
    for latency in [true, false] {
        let spec = TrialSpec {
            latency,
            threads: 2,
            thinktime: Some(Duration::from_micros(200)),
            limit: requests(20),
            ..spec()
        };
        let outcome = files::run(&spec, &target).expect("runs");
        assert_eq!(outcome.requests(), 20);
        // Each thread has ten requests, and nine pauses between them.
        let pauses = 2 * 9 * 200_000;
        assert!(outcome.paused_ns >= pauses, "{}", outcome.paused_ns);
    }
}

/// A file that was there before, filled with ones, and the trial carried out on it; `None` if its file system cannot trim.
fn on_ones(spec: &TrialSpec, bytes: usize) -> Option<(Outcome, Vec<u8>)> {
    let folder = folder();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![1; bytes]).expect("written");
    let need = Need {
        consent: Consent::Destroy,
        ..Need::writing(spec.offset + spec.region)
    };
    let target = Target::open(&path, &need).expect("opens");
    let outcome = match trial::run(spec, &target, clock(), &AtomicBool::new(false)) {
        Ok(outcome) => outcome,
        Err(error) => {
            assert!(spec.trim_percent > 0, "{error}");
            needs::skip(needs::Need::Trim, error);
            return None;
        }
    };
    drop(target);
    Some((outcome, std::fs::read(&path).expect("readable")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_trim_never_leaves_the_region(
        seed: u64, before in 0u64..40, blocks in 8u64..60, behind in 0u64..40, bs in 1u64..6000,
        threads in 1u32..4,
        pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Rand, Pattern::RandReplace]),
        backend in prop::sample::select(vec![Backend::Sync, Backend::Psync, Backend::Pvsync2]),
    ) {
        let (offset, region) = (before * 1000, blocks * bs);
        let spec = TrialSpec {
            seed, bs, offset, region, threads, pattern, backend,
            read_percent: 0,
            trim_percent: 100,
            layout: FileLayout::Overlapping,
            cache: CacheState::Cold,
            limit: TrialLimit { bytes: Some(2 * blocks * bs), ..TrialLimit::default() },
            ..TrialSpec::default()
        };
        let bytes = offset + region + behind * 1000;
        if let Some((outcome, data)) = on_ones(&spec, bytes as usize) {
            if let Some(failure) = outcome.failure {
                let unknown = matches!(&failure, Failure::Request(it) if it.errno == libc::EOPNOTSUPP);
                prop_assert!(unknown, "{failure:?}");
                needs::skip(needs::Need::Trim, format!("{failure:?}"));
                return Ok(());
            }
            prop_assert_eq!(outcome.operations.trim.requests, 2 * blocks);
            prop_assert_eq!((outcome.operations.trim.bytes, outcome.operations.write.requests), (2 * blocks * bs, 0));
            prop_assert_eq!(data.len() as u64, bytes);
            let inside = offset as usize..(offset + region) as usize;
            prop_assert!(data[..inside.start].iter().all(|byte| *byte == 1));
            prop_assert!(data[inside.end..].iter().all(|byte| *byte == 1));
            if pattern != Pattern::RandReplace && threads == 1 {
                prop_assert!(data[inside].iter().all(|byte| *byte == 0));
            }
        }
    }
}

#[test]
fn trims_count_apart_and_are_filled_again() {
    let (_folder, target) = scratch(REGION);
    let stop = AtomicBool::new(false);
    let spec = TrialSpec {
        pattern: Pattern::Rand,
        read_percent: 50,
        trim_percent: 40,
        limit: requests(1000),
        ..spec()
    };
    let outcome = match trial::run(&spec, &target, clock(), &stop) {
        Ok(outcome) if outcome.ended == Ended::Done => outcome,
        Err(error) => return needs::skip(needs::Need::Trim, error),
        other => panic!("{other:?}"),
    };
    assert_eq!(outcome.requests(), 1000);
    let operations = &outcome.operations;
    for tally in [&operations.read, &operations.write, &operations.trim] {
        assert!(tally.requests > 0);
        assert_eq!(tally.latency.len(), tally.requests);
        assert_eq!(tally.bytes, tally.requests * 4096);
    }
    let mut block = [0; 4096];
    for offset in (0..REGION).step_by(4096) {
        target
            .file()
            .read_exact_at(&mut block, offset)
            .expect("readable");
        assert!(block.iter().any(|byte| *byte != 0), "a hole at {offset}");
    }
}

#[test]
fn intervals_hold_the_work_of_every_operation() {
    let (_folder, target) = scratch(REGION);
    if let Err(error) = trial::check_trims(&target) {
        return needs::skip(needs::Need::Trim, error);
    }
    for rate in [None, Some(Rate::Requests(20_000))] {
        let spec = TrialSpec {
            rate,
            pattern: Pattern::Rand,
            read_percent: 40,
            trim_percent: 50,
            sync: SyncPolicy::Each,
            limit: requests(200),
            latency_over_time: true,
            threads: 2,
            ..spec()
        };
        let outcome = files::run(&spec, &target).expect("runs");
        let done = outcome.operations.moved();
        let over_time = outcome.latency_over_time.as_ref().expect("kept");
        for (operation, own) in over_time.iter() {
            let tally = &outcome.operations[operation];
            let waits = tally.waits.as_ref().map(|waits| &waits.response);
            let all = waits.unwrap_or(&tally.latency);
            assert_eq!(own.total(), all.len(), "{operation}");
            let (coarse, fine) = (own.whole().max_ns, all.max());
            assert!(
                coarse <= fine && fine - coarse <= fine / 500,
                "{coarse} {fine}"
            );
        }
        assert!(done.iter().all(|(_, moved)| moved.requests > 0), "{done:?}");
        assert_eq!(outcome.series.total(), done);
    }
}

/// Writes a file of `blocks` blocks once and returns its blocks of 4 KiB.
fn written(spec: &TrialSpec, blocks: usize) -> Vec<Vec<u8>> {
    let spec = TrialSpec {
        region: blocks as u64 * 4096,
        read_percent: 0,
        cache: CacheState::Cold,
        pattern: Pattern::Rand,
        threads: 2,
        ..spec.clone()
    };
    let (outcome, data) = on_ones(&spec, blocks * 4096).expect("nothing special is asked");
    assert_eq!(outcome.operations.write.bytes, blocks as u64 * 4096);
    data.chunks(4096).map(<[u8]>::to_vec).collect()
}

#[test]
fn data_is_compressible_as_far_as_asked() {
    for compressible in [0u8, 25, 80, 100] {
        let spec = TrialSpec {
            compressible,
            ..TrialSpec::default()
        };
        for block in written(&spec, 64) {
            let zeros = block.iter().filter(|byte| **byte == 0).count();
            let asked = 4096 * usize::from(compressible) / 100;
            // Data has a stamp, and random bytes are zero now and then.
            assert!(
                zeros + 16 >= asked && zeros <= asked + 80,
                "{zeros} of {asked}"
            );
        }
    }
}

/// The result of a trial; a refusal names a remedy.
fn tried(spec: &TrialSpec) -> Result<Outcome, Error> {
    let (_folder, target) = scratch(REGION);
    let tried = trial::run(spec, &target, clock(), &AtomicBool::new(false));
    tried.inspect_err(|error| assert!(error.remedy().is_some(), "{error}"))
}

#[test]
fn advice_and_cpus_are_followed_or_refused() {
    let cpu = iolab_engine::placement::allowed().numbers()[0];
    let placed = TrialSpec {
        fadvise: Some(Advice::Random),
        cpus: Some(Cpus::new([cpu])),
        threads: 2,
        ..spec()
    };
    let outcome = tried(&placed).expect("nothing special is asked");
    assert_eq!(outcome.cpus_used.numbers(), [cpu]);
    let wrong = TrialSpec {
        cpus: Some(Cpus::new([1023])),
        ..spec()
    };
    assert!(tried(&wrong).is_err());
}
