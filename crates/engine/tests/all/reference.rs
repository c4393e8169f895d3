//! Trials of every backend against a reference that carries the settings out on paper: how many requests of each kind, which bytes they
//! write or trim, which they leave alone, when they pause.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use iolab_engine::placement;
use iolab_storage::Target;
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::pattern::{Mix, Offsets, quota};
use iolab_workload::system_settings::Cpus;
use iolab_workload::trial::{
    Advice, Backend, Batch, CacheState, Descriptors, FileLayout, FirstOffset, Pattern, Rate,
    SyncPolicy, TrialLimit, TrialSpec,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::files::scratch;
use crate::trial::run;

/// Distance of the stamps in written data, bytes: each is at the start of its part.
const STAMPED: u64 = 4096;
const SIZE: u64 = 2 << 20;

/// Requests of a trial with some settings, computed independently of the engine.
#[derive(Default)]
struct Reference {
    reads: u64,
    writes: u64,
    syncs: u64,
    /// Offsets of the blocks that are written.
    written: BTreeSet<u64>,
}

impl Reference {
    fn of(spec: &TrialSpec) -> Self {
        let mut all = Self::default();
        for worker in 0..spec.threads {
            let (mut offsets, mut mix) = (Offsets::new(spec, worker), Mix::new(spec, worker));
            let mut writes = 0;
            for _ in 0..quota(spec, worker) {
                let offset = offsets.next_offset();
                if mix.next_is_read() {
                    all.reads += 1;
                } else {
                    writes += 1;
                    all.written.insert(offset);
                }
            }
            all.writes += writes;
            all.syncs += match spec.sync {
                SyncPolicy::Each | SyncPolicy::Fdatasync => writes / u64::from(spec.sync_every),
                // A worker that wrote nothing has nothing to make durable.
                SyncPolicy::End => u64::from(writes > 0),
                _ => 0,
            };
        }
        all
    }

    /// Compares the counts of a trial.
    fn counts_as(&self, spec: &TrialSpec, outcome: &Outcome) {
        let operations = &outcome.operations;
        let [read, write, trim, sync] = [
            &operations.read, &operations.write, &operations.trim, &operations.sync,
        ]
        .map(|one| one.requests);
        let found = [read, write + trim, sync];
        assert_eq!(found, [self.reads, self.writes, self.syncs], "{spec:?}");
        match spec.trim_percent {
            0 => assert_eq!(trim, 0, "{spec:?}"),
            100 => assert_eq!(write, 0, "{spec:?}"),
            _ => {}
        }
        assert_eq!(
            (outcome.ended, outcome.errors),
            (Ended::Done, 0),
            "{spec:?}"
        );
        assert!(outcome.all_active_ns <= outcome.elapsed_ns, "{spec:?}");
        assert!(outcome.paused_ns >= self.paused_ns(spec), "{spec:?}");
        if let Some(cpus) = &spec.cpus {
            assert_eq!(&outcome.cpus_used, cpus, "{spec:?}");
        }
        let is_kept = outcome.latency_over_time.is_some();
        assert_eq!(is_kept, spec.latency_over_time, "{spec:?}");
        for tally in [&operations.read, &operations.write, &operations.trim] {
            assert_eq!(tally.bytes, tally.requests * spec.bs, "{spec:?}");
            let timed = if spec.latency { tally.requests } else { 0 };
            assert_eq!(tally.latency.len(), timed, "{spec:?}");
            // Histograms keep three digits.
            assert!(
                tally.latency.max() <= outcome.elapsed_ns / 998 * 1000 + 1000,
                "{spec:?}"
            );
            let Some(waits) = tally.waits.as_ref().filter(|_| tally.requests > 0) else {
                assert!(spec.rate.is_none() || tally.requests == 0, "{spec:?}");
                continue;
            };
            assert_eq!(waits.response.len(), tally.requests, "{spec:?}");
            assert_eq!(waits.lateness.len(), tally.requests, "{spec:?}");
            let sum = tally.latency.mean() + waits.lateness.mean();
            assert!((waits.response.mean() / sum - 1.0).abs() < 0.01, "{spec:?}");
        }
        let is_owed = match spec.sync {
            SyncPolicy::None => write > 0,
            SyncPolicy::Each | SyncPolicy::Fdatasync => {
                self.syncs * u64::from(spec.sync_every) < self.writes
            }
            _ => false,
        };
        assert_eq!(outcome.region.owed_sync_ns.is_some(), is_owed, "{spec:?}");
        let blocks = outcome.verified.map(|verified| {
            assert_eq!(verified.faulty_blocks(), 0, "{spec:?}");
            verified.blocks
        });
        let written = self.written.len() as u64;
        assert_eq!(blocks, spec.verify.then_some(written), "{spec:?}");
    }

    /// Least time of all pauses: each worker has one between two of its requests.
    fn paused_ns(&self, spec: &TrialSpec) -> u64 {
        let pause = spec.thinktime.map_or(0, |time| time.as_nanos() as u64);
        let pauses = (self.reads + self.writes).saturating_sub(spec.threads.into());
        match spec.depth {
            1 => pauses * pause,
            _ => 0,
        }
    }

    /// Compares the data before and after a trial.
    fn wrote(&self, spec: &TrialSpec, before: &[u8], after: &[u8]) {
        let mut expected = before.to_vec();
        if spec.trim_percent > 0 {
            // Which requests trim is not computed here: no others change, and trimmed blocks are filled again.
            let region = spec.offset as usize..(spec.offset + spec.region) as usize;
            let mut blocks = after[region.clone()].chunks_exact(STAMPED as usize);
            let is_filled = blocks.all(|block| block.iter().any(|byte| *byte != 0));
            assert!(is_filled || spec.bs < STAMPED, "{spec:?}");
            expected[region.clone()].copy_from_slice(&after[region]);
            return assert!(expected == after, "bytes outside: {spec:?}");
        }
        for offset in &self.written {
            let block = *offset as usize..(*offset + spec.bs) as usize;
            assert!(
                after[block.clone()] != before[block.clone()],
                "{offset}: {spec:?}"
            );
            // Data that is verified has a header of its own.
            let is_stamped = spec.bs.is_multiple_of(STAMPED) && !spec.verify;
            if is_stamped {
                let (count, asked) = (spec.bs as usize, usize::from(spec.compressible));
                let zeros = after[block.clone()].iter().filter(|byte| **byte == 0);
                let (zeros, least) = (zeros.count(), count * asked / 100);
                // Data has a stamp, and random bytes are zero now and then; reads leave their data in the buffers.
                let within = least - count.min(least).min(count / 256)..=least + count / 50;
                let is_read_into = spec.read_percent > 0;
                assert!(
                    is_read_into || within.contains(&zeros),
                    "{zeros} zeros: {spec:?}"
                );
            }
            for at in block
                .clone()
                .step_by(STAMPED as usize)
                .filter(|_| is_stamped)
            {
                assert_eq!(after[at..at + 8], (at as u64).to_le_bytes(), "{spec:?}");
            }
            expected[block.clone()].copy_from_slice(&after[block]);
        }
        assert!(expected == after, "bytes that no request writes: {spec:?}");
    }
}

fn data(target: &Target) -> Vec<u8> {
    let mut data = vec![0; SIZE as usize];
    target.file().read_exact_at(&mut data, 0).expect("readable");
    data
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let named = [
        "zipf:1.1", "pareto:0.2", "normal:10", "zones:50/5:30/15:20/80",
    ];
    let named = named.map(|name| name.parse().expect("a pattern"));
    let plain = [
        Pattern::Seq,
        Pattern::Reverse,
        Pattern::Strided,
        Pattern::Rand,
        Pattern::Rand,
        Pattern::RandReplace,
    ];
    prop::sample::select([&named[..], &plain].concat())
}

prop_compose! {
    /// Settings of a backend; not every backend takes all of them.
    pub(crate) fn specs()(
        (pattern, bs, blocks, start, threads) in (
            patterns(), prop::sample::select(vec![512, 1536, 2300, 4096, 4096, 16384_u64]), 12..60_u64, 0..5_u64, 1..=4_u32,
        ),
        (read_percent, layout, descriptors, first_offset) in (
            prop::sample::select(vec![100, 0, 0, 30, 50_u8]),
            prop::sample::select(vec![FileLayout::Shared, FileLayout::Interleaved, FileLayout::Overlapping]),
            prop::sample::select(vec![Descriptors::Private, Descriptors::Shared]),
            prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
        ),
        (sync, sync_every) in (
            prop::sample::select(vec![
                SyncPolicy::None, SyncPolicy::None, SyncPolicy::End, SyncPolicy::Each, SyncPolicy::Fdatasync, SyncPolicy::Osync,
                SyncPolicy::Odsync, SyncPolicy::RwfDsync,
            ]),
            1..8_u32,
        ),
        (passes, cache, latency, rate, verify, compressible) in (
            prop::option::of(0.2..4.0_f64),
            prop::sample::select(vec![CacheState::Direct, CacheState::Cold, CacheState::Hot]),
            any::<bool>(), prop::option::weighted(0.3, prop::sample::select(vec![10_000_000, 50_000].into_iter().map(Rate::Requests).collect::<Vec<_>>())), any::<bool>(),
            prop::sample::select(vec![0, 25, 50, 80_u8]),
        ),
        (trim_percent, thinktime, is_placed, is_advised, over_time) in (
            prop::sample::select(vec![0, 0, 0, 40, 100_u8]),
            prop::option::weighted(0.2, Just(Duration::from_micros(50))),
            prop::bool::weighted(0.2), prop::bool::weighted(0.2), any::<bool>(),
        ),
        (depth, batch, seed) in (
            prop::sample::select(vec![1, 2, 8, 33_u32]),
            prop::sample::select(vec![Batch::One, Batch::Percent(50), Batch::All]),
            any::<u64>(),
        ),
    ) -> TrialSpec {
        let region = blocks * bs;
        let bytes = passes.map(|passes| ((blocks as f64 * passes).ceil() as u64).max(u64::from(threads)) * bs);
        let has_every = matches!(sync, SyncPolicy::Each | SyncPolicy::Fdatasync);
        let is_aligned = bs.is_multiple_of(STAMPED);
        let trim_percent = if sync == SyncPolicy::None && read_percent < 100 { trim_percent } else { 0 };
        let cache = if is_aligned { cache } else { CacheState::Cold };
        let timed = latency || rate.is_some();
        TrialSpec {
            trim_percent, cache,
            cpus: is_placed.then(|| Cpus::new(placement::allowed().numbers().first().copied())),
            thinktime: if rate.is_none() { thinktime } else { None },
            fadvise: (is_advised && cache != CacheState::Direct).then_some(Advice::Random),
            latency_over_time: over_time && timed,
            pattern, bs, region, threads, read_percent, layout, descriptors, first_offset, sync, rate, depth, seed,
            compressible: if read_percent < 100 { compressible } else { 0 },
            skip: if pattern == Pattern::Strided { 2 * bs } else { 0 },
            offset: start * if is_aligned { STAMPED } else { 1000 },
            sync_every: if has_every { sync_every } else { 1 },
            // A rate times every request, and takes each completion as it comes.
            latency: timed,
            batch: if rate.is_some() { Batch::One } else { batch },
            verify: verify && read_percent < 100 && trim_percent == 0 && bs.is_multiple_of(512),
            limit: TrialLimit { bytes, ..TrialLimit::default() },
            ..TrialSpec::default()
        }
    }
}

/// The settings with this backend, without what it does not have.
pub(crate) fn with_backend(spec: &TrialSpec, backend: Backend) -> TrialSpec {
    let mut spec = TrialSpec {
        backend,
        ..spec.clone()
    };
    if !backend.is_asynchronous() {
        (spec.depth, spec.batch) = (1, Batch::One);
    }
    if spec.sync == SyncPolicy::RwfDsync && !backend.takes_write_flags() {
        spec.sync = SyncPolicy::Odsync;
    }
    if !spec.sharing_applies() {
        spec.descriptors = Descriptors::Private;
    }
    if matches!(backend, Backend::Mmap | Backend::Libaio | Backend::IoUring) {
        spec.trim_percent = 0;
    }
    if backend == Backend::Mmap {
        spec.fadvise = None;
        if spec.cache == CacheState::Direct {
            spec.cache = CacheState::Cold;
        }
        if matches!(spec.sync, SyncPolicy::Osync | SyncPolicy::Odsync) {
            spec.sync = SyncPolicy::Each;
        }
        // Copies of several threads into a mapping of the same block cannot be verified.
        spec.verify &= spec.threads == 1;
    }
    spec
}

#[test]
fn every_backend_does_what_the_settings_say() {
    let (_folder, target) = scratch(SIZE);
    let names = || (0..).zip(Backend::NAMES.iter().filter(|name| **name != "null"));
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(60)
    });
    let ran = runner.run(&specs(), |spec| {
        for (number, name) in names() {
            let mut spec = with_backend(&spec, name.parse().expect("a name of the list"));
            prop_assume!(spec.check().is_ok());
            // Each backend writes data of its own.
            spec.seed = spec.seed.wrapping_add(number);
            let before = data(&target);
            match run(&spec, &target) {
                Ok(outcome) => {
                    let reference = Reference::of(&spec);
                    reference.counts_as(&spec, &outcome);
                    reference.wrote(&spec, &before, &data(&target));
                }
                Err(error) => crate::skip(&spec, &error),
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|failed| panic!("{failed}"));
}
