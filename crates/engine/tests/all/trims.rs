//! Trims of a file that was there before: no byte outside of the region changes, and those inside become zeros.

use proptest::prelude::*;

use iolab_storage::{Consent, Need, Target};
use iolab_workload::outcome::{Failure, Outcome};
use iolab_workload::trial::{Backend, CacheState, FileLayout, Pattern, TrialLimit, TrialSpec};

use crate::files::{folder, run};

/// A file filled with ones, and the trial carried out on it; `None` if its file system cannot trim.
fn on_ones(spec: &TrialSpec, bytes: usize) -> Option<(Outcome, Vec<u8>)> {
    let folder = folder();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![1; bytes]).expect("written");
    let need = Need {
        consent: Consent::Destroy,
        ..Need::writing(spec.offset + spec.region)
    };
    let target = Target::open(&path, &need).expect("opens");
    let outcome = run(spec, &target).map_err(|error| needs::skip(needs::Need::Trim, error));
    drop(target);
    Some((outcome.ok()?, std::fs::read(&path).expect("readable")))
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
