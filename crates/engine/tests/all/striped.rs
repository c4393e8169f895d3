//! Trials whose requests are striped over several targets.

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use iolab_engine::{KeptMemory, trial};
use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::Result;
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{Backend, CacheState, Pattern, SyncPolicy, TrialSpec};
use proptest::prelude::*;

use crate::files::scratch;

const BS: u64 = 4096;
const TARGETS: usize = 3;

fn run(spec: &TrialSpec, targets: &[&Target]) -> Result<Outcome> {
    let stop = AtomicBool::new(false);
    let mut kept = KeptMemory::default();
    trial::run_over(spec, targets, &Clock::calibrate(), &stop, &mut kept)
}

/// The first 8 bytes of each 4 KiB of a file: the offset in its trial that a write bears there.
fn stamps(target: &Target, bytes: u64) -> Vec<u64> {
    let stamp = |at: u64| {
        let mut head = [0; 8];
        target.file().read_exact_at(&mut head, at).expect("reads");
        u64::from_ne_bytes(head)
    };
    (0..bytes).step_by(BS as usize).map(stamp).collect()
}

/// Writes a region once, and looks where each block has gone; with `verify` whether it can be read back too.
fn check(spec: &TrialSpec, piece: u64, rows: u64) -> Result<()> {
    let each = piece * rows;
    let held: Vec<_> = (0..TARGETS).map(|_| scratch(each + piece)).collect();
    let targets: Vec<&Target> = held.iter().map(|(_, target)| target).collect();
    let before: Vec<Vec<u64>> = targets.iter().map(|t| stamps(t, each + piece)).collect();
    let spec = TrialSpec {
        stripe: Some(piece),
        region: each * TARGETS as u64,
        ..spec.clone()
    };
    let outcome = run(&spec, &targets)?;
    assert_eq!(outcome.failure, None, "{spec:?}");
    assert_eq!(outcome.operations.write.bytes, spec.region, "{spec:?}");
    if spec.sync == SyncPolicy::End {
        let of_each = u64::from(spec.threads) * TARGETS as u64;
        assert_eq!(
            outcome.operations.sync.requests, of_each,
            "one for each target"
        );
    }
    if spec.verify {
        let verified = outcome.verified.expect("read back");
        assert_eq!(
            (verified.blocks, verified.faulty_blocks()),
            (spec.region / spec.bs, 0)
        );
        return Ok(());
    }
    for (number, (target, before)) in targets.iter().zip(before).enumerate() {
        let of_piece = piece / BS;
        let expected = |block: u64| {
            let (row, within) = (block / of_piece, block % of_piece);
            (row * TARGETS as u64 + number as u64) * piece + within * BS
        };
        let mut wanted: Vec<u64> = (0..each / BS).map(expected).collect();
        // Nothing is written behind the last piece.
        wanted.extend(&before[wanted.len()..]);
        let found = stamps(target, each + piece);
        assert_eq!(found, wanted, "target {number} of {spec:?}");
    }
    Ok(())
}

const STRIPED: [Backend; 5] = [
    Backend::Psync,
    Backend::Pvsync2,
    Backend::Libaio,
    Backend::IoUring,
    Backend::Pool,
];

fn backends() -> impl Strategy<Value = Backend> {
    prop::sample::select(&STRIPED[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every block of the region lies on its target, at its place, whatever issues it and in which order.
    #[test]
    fn every_block_is_where_the_stripe_puts_it(
        backend in backends(),
        blocks in 1u64..4,
        pieces in 1u64..4,
        rows in 1u64..6,
        threads in 1u32..4,
        random: bool,
        direct: bool,
        verify: bool,
    ) {
        let spec = TrialSpec {
            backend,
            bs: BS * blocks,
            read_percent: 0,
            threads: threads.min((rows * pieces) as u32),
            depth: if backend.is_asynchronous() { 4 } else { 1 },
            pattern: if random { Pattern::Rand } else { Pattern::Seq },
            cache: if direct { CacheState::Direct } else { CacheState::Cold },
            sync: SyncPolicy::End,
            verify,
            ..TrialSpec::default()
        };
        if let Err(error) = check(&spec, BS * blocks * pieces, rows) {
            crate::skip(&spec, &error);
        }
    }
}

#[test]
fn what_one_of_the_targets_cannot_do_is_refused() {
    let (_a, small) = scratch(1 << 20);
    let (_b, large) = scratch(4 << 20);
    let spec = TrialSpec {
        bs: BS,
        region: 4 << 20,
        cache: CacheState::Cold,
        ..TrialSpec::default()
    };
    let error = run(&spec, &[&small, &large]).expect_err("the first is too small");
    insta::assert_snapshot!(error.message(), @"the region ends at byte 2097152, beyond the target's 1048576 bytes");
    let sync = TrialSpec {
        backend: Backend::Sync,
        region: 1 << 20,
        ..spec
    };
    let error = run(&sync, &[&small, &large]).expect_err("one position");
    insta::assert_snapshot!(error.message(), @"backend sync striped over several targets");
}
