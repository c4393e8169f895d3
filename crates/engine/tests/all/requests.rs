//! Requests that differ from each other, and threads that pause.

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;

use iolab_engine::{flag_support, trial};
use iolab_storage::{Consent, Need, Target};
use iolab_workload::Error;
use iolab_workload::cpus::Cpus;
use iolab_workload::outcome::{Ended, Failure, Outcome};
use iolab_workload::trial::{
    Advice, Backend, CacheState, FileLayout, IoPriority, Pattern, Rate, SyncPolicy, TrialLimit,
    TrialSpec, TrimBy,
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

fn run(spec: &TrialSpec) -> Outcome {
    let (_folder, target) = scratch(REGION);
    let stop = AtomicBool::new(false);
    trial::run(spec, &target, clock(), &stop).expect("runs")
}

#[test]
fn requests_of_several_sizes_are_counted_by_size_and_by_bytes() {
    for (backend, depth) in [
        (Backend::Psync, 1),
        (Backend::Libaio, 4),
        (Backend::Null, 8),
    ] {
        for (latency, rate) in [
            (true, None),
            (false, None),
            (true, Some(Rate::Requests(100_000_000))),
        ] {
            let spec = TrialSpec {
                backend,
                depth,
                latency,
                rate,
                threads: 2,
                pattern: Pattern::Rand,
                read_percent: 60,
                bs_mix: Some("4k:50,16k:30,64k:20/8k:100".parse().expect("a mix")),
                limit: TrialLimit {
                    requests: Some(2000),
                    ..TrialLimit::default()
                },
                ..spec()
            };
            let outcome = run(&spec);
            assert_eq!(outcome.ended, Ended::Done);
            assert_eq!(outcome.requests(), 2000);
            let counts = outcome.request_sizes.counts();
            for (reads, tally) in [
                (true, &outcome.operations.read),
                (false, &outcome.operations.write),
            ] {
                let of = counts.iter().filter(|count| count.reads == reads);
                let (requests, bytes) = of.fold((0, 0), |(requests, bytes), count| {
                    (
                        requests + count.requests,
                        bytes + count.requests * count.bytes,
                    )
                });
                assert_eq!((tally.requests, tally.bytes), (requests, bytes));
            }
            assert_eq!(counts.len(), 4);
        }
    }
}

#[test]
fn a_mix_ends_with_its_bytes() {
    for bytes in [None, Some(1 << 20)] {
        let spec = TrialSpec {
            threads: 2,
            bs_mix: Some("4k:50,64k:50".parse().expect("a mix")),
            limit: TrialLimit {
                bytes,
                ..TrialLimit::default()
            },
            ..spec()
        };
        let asked = bytes.unwrap_or(REGION);
        let done = run(&spec).bytes();
        assert!(done >= asked && done < asked + 2 * 65_536, "{done}");
    }
}

#[test]
fn threads_pause_as_often_as_asked() {
    for (backend, depth) in [(Backend::Psync, 1), (Backend::Null, 4)] {
        for (latency, spin_us) in [(true, 0), (false, 0), (true, 150), (true, 200)] {
            let spec = TrialSpec {
                backend,
                depth,
                latency,
                threads: 2,
                thinktime: Some(Duration::from_micros(200)),
                thinktime_every: 5,
                thinktime_spin: Duration::from_micros(spin_us),
                limit: TrialLimit {
                    requests: Some(100),
                    ..TrialLimit::default()
                },
                ..spec()
            };
            let outcome = run(&spec);
            assert_eq!(outcome.requests(), 100);
            // Each thread has 50 requests: nine pauses between ten rows of five.
            let pauses = 2 * 9 * 200_000;
            assert!(outcome.paused_ns >= pauses, "{}", outcome.paused_ns);
            assert!(outcome.elapsed_ns >= 9 * 200_000);
        }
    }
}

#[test]
fn bursts_leave_pauses_that_end_with_the_trial() {
    let spec = TrialSpec {
        backend: Backend::Null,
        bursts: "1ms/2ms".parse().ok(),
        limit: TrialLimit {
            time: Some(Duration::from_millis(30)),
            ..TrialLimit::default()
        },
        ..spec()
    };
    let outcome = run(&spec);
    assert_eq!(outcome.ended, Ended::Time);
    assert!(outcome.requests() > 0);
    assert!(outcome.paused_ns > 0 && outcome.paused_ns < outcome.elapsed_ns);
}

/// A file that was there before, filled with ones, and the trial carried out on it; `None` where its file system cannot trim.
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
        trim_by in prop::sample::select(TrimBy::ALL.to_vec()),
        backend in prop::sample::select(vec![Backend::Sync, Backend::Psync, Backend::Pvsync2]),
    ) {
        let (offset, region) = (before * 1000, blocks * bs);
        let spec = TrialSpec {
            seed, bs, offset, region, threads, pattern, trim_by, backend,
            read_percent: 0,
            trim_percent: 100,
            layout: FileLayout::Overlapping,
            cache: CacheState::Cold,
            limit: TrialLimit { requests: Some(2 * blocks), ..TrialLimit::default() },
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
fn trims_are_counted_apart_and_the_file_is_filled_again() {
    let (_folder, target) = scratch(REGION);
    let stop = AtomicBool::new(false);
    let spec = TrialSpec {
        pattern: Pattern::Rand,
        read_percent: 50,
        trim_percent: 40,
        limit: TrialLimit {
            requests: Some(1000),
            ..TrialLimit::default()
        },
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
fn intervals_hold_what_every_operation_did() {
    let (_folder, target) = scratch(REGION);
    if let Err(error) = flag_support::trims(&target) {
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

/// Writes a file of so many blocks once, and gives its blocks of 4 KiB.
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
fn data_repeats_as_often_as_asked() {
    for dedup in [0u8, 30, 100] {
        for (backend, depth) in [(Backend::Psync, 1), (Backend::Libaio, 4)] {
            let spec = TrialSpec {
                dedup,
                backend,
                depth,
                ..TrialSpec::default()
            };
            let blocks = written(&spec, 4000);
            let distinct: std::collections::HashSet<&Vec<u8>> = blocks.iter().collect();
            // The first block of those that repeat counts as distinct.
            let repeated = (blocks.len() - distinct.len()) as f64 + f64::from(u8::from(dedup > 0));
            let p = f64::from(dedup) / 100.0;
            let bound = 6.0 * (4000.0 * p * (1.0 - p)).sqrt();
            assert!(
                (repeated - 4000.0 * p).abs() <= bound,
                "{repeated} at {dedup} %"
            );
        }
    }
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
            // The stamp is kept at 100 %, and random bytes are zero now and then.
            assert!(
                zeros + 16 >= asked && zeros <= asked + 80,
                "{zeros} of {asked}"
            );
        }
    }
}

/// What a trial came to; a refusal says what helps.
fn tried(spec: &TrialSpec) -> Result<Outcome, Error> {
    let (_folder, target) = scratch(REGION);
    let tried = trial::run(spec, &target, clock(), &AtomicBool::new(false));
    tried.inspect_err(|error| assert!(error.remedy().is_some(), "{error}"))
}

/// The same; a skip where the kernel lacks the backend or a flag of the requests.
#[track_caller]
fn flagged(spec: &TrialSpec) -> Option<Outcome> {
    let need = crate::lacking(spec).unwrap_or(needs::Need::RequestFlags);
    tried(spec).map_err(|error| needs::skip(need, error)).ok()
}

#[test]
fn dontcache_leaves_nothing_in_the_page_cache() {
    for backend in [Backend::Pvsync2, Backend::IoUring, Backend::Libaio] {
        let plain = TrialSpec { backend, ..spec() };
        let dontcache = TrialSpec {
            dontcache: true,
            ..plain.clone()
        };
        let (Some(plain), Some(dropped)) = (flagged(&plain), flagged(&dontcache)) else {
            continue;
        };
        assert_eq!(dropped.operations.read.bytes, REGION);
        let held = |outcome: &Outcome| outcome.region.after.map(|after| after.resident_bytes);
        if let (Some(plain), Some(dropped)) = (held(&plain), held(&dropped)) {
            assert!(
                dropped <= plain / 4,
                "{backend}: {dropped} of {plain} bytes"
            );
        }
    }
}

#[test]
fn requests_that_would_wait_are_counted_and_made_again() {
    let hot = TrialSpec {
        backend: Backend::Pvsync2,
        nowait: true,
        cache: CacheState::Hot,
        ..spec()
    };
    if let Some(outcome) = flagged(&hot) {
        assert_eq!(outcome.operations.read.bytes, REGION);
        assert!(
            outcome
                .waited
                .is_some_and(|waited| waited <= outcome.operations.read.requests)
        );
    }
    let cold = TrialSpec {
        cache: CacheState::Cold,
        ..hot
    };
    if let Some(outcome) = flagged(&cold) {
        assert_eq!(outcome.operations.read.bytes, REGION);
        let before = outcome
            .region
            .before
            .map_or(0, |before| before.resident_bytes);
        let waited = outcome.waited.unwrap_or(0);
        assert!(waited > 0 || before > 0, "a cold read has to wait");
    }
    assert_eq!(run(&spec()).waited, None);
}

#[test]
fn advice_priority_and_cpus_are_followed_or_refused_by_name() {
    let cpu = iolab_engine::placement::allowed().numbers()[0];
    let placed = TrialSpec {
        fadvise: Some(Advice::Random),
        ioprio: Some(IoPriority::BestEffort(7)),
        cpus: Some(Cpus::new([cpu])),
        threads: 2,
        ..spec()
    };
    let outcome = tried(&placed).expect("nothing special is asked");
    assert_eq!(outcome.cpus_used.numbers(), [cpu]);
    for wrong in [
        TrialSpec {
            cpus: Some(Cpus::new([1023])),
            ..spec()
        },
        TrialSpec {
            memory_node: Some(1023),
            ..spec()
        },
        TrialSpec {
            backend: Backend::Pvsync2,
            atomic: true,
            bs: 1 << 22,
            read_percent: 0,
            cache: CacheState::Direct,
            ..spec()
        },
    ] {
        assert!(tried(&wrong).is_err(), "{wrong:?}");
    }
}
