//! Several files per worker on a real file system: every block of every file is written once, and all files are removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_storage::{ExtraFiles, Need, PrivateFiles, Target};
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{
    Allocate, Backend, CacheState, FileLayout, FileSet, Pattern, SyncPolicy, TrialSpec,
};

use crate::files::{folder, run};
use crate::skip;

const BLOCK: u64 = 4096;
const THREADS: u32 = 2;
const FILES: &str = "6/spread=4/random:2/open=4";

fn spec(files: &str) -> TrialSpec {
    TrialSpec {
        files: Some(files.parse().expect("files")),
        layout: FileLayout::Private,
        region: 200 * BLOCK,
        threads: THREADS,
        cache: CacheState::Cold,
        read_percent: 0,
        pattern: Pattern::Rand,
        ..TrialSpec::default()
    }
}

/// The target of such a trial, filled.
fn scratch(spec: &TrialSpec) -> (tempfile::TempDir, Target) {
    let directory = folder();
    let private = PrivateFiles {
        threads: spec.threads,
        bs: spec.bs,
        ranks: 1,
        files: spec.files,
    };
    let need = Need {
        beside: ExtraFiles {
            private: vec![private],
            fresh: spec.files_of_all(),
        },
        ..Need::writing(spec.region)
    };
    let target = Target::open(directory.path(), &need).expect("scratch files");
    target
        .fill(7, &AtomicBool::new(false), &mut |_| ())
        .expect("filled");
    (directory, target)
}

/// How many blocks of the files in a folder begin with the stamp of each of these offsets.
fn stamped(folder: &Path, offsets: &[u64]) -> BTreeMap<u64, usize> {
    let mut counts: BTreeMap<u64, usize> = offsets.iter().map(|offset| (*offset, 0)).collect();
    for entry in fs::read_dir(folder).expect("readable") {
        let content = fs::read(entry.expect("there").path()).expect("readable");
        for block in content.chunks_exact(BLOCK as usize) {
            let [stamp, generation] = [0, 8]
                .map(|at| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes")));
            // A block of zeros was not written by a trial.
            if let Some(count) = counts.get_mut(&stamp).filter(|_| generation > 0) {
                *count += 1;
            }
        }
    }
    counts
}

/// The offsets of a worker; each file has a slot of its own.
fn offsets(spec: &TrialSpec) -> Vec<u64> {
    let files = (0..).zip(spec.private_files(0));
    let of_file = |(number, bytes): (u64, u64)| {
        let slot = spec.file_slot();
        (0..bytes / BLOCK).map(move |block| number * slot + block * BLOCK)
    };
    files.flat_map(of_file).collect()
}

#[test]
fn any_backend_writes_each_block_once() {
    for backend in [
        Backend::Psync,
        Backend::Pvsync2,
        Backend::Libaio,
        Backend::IoUring,
        Backend::Pool,
    ] {
        let spec = TrialSpec {
            backend,
            depth: if backend.is_asynchronous() { 4 } else { 1 },
            sync: SyncPolicy::End,
            ..spec(FILES)
        };
        let (directory, target) = scratch(&spec);
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => {
                skip(&spec, &error);
                continue;
            }
        };
        assert_eq!(
            (outcome.ended, outcome.errors),
            (Ended::Done, 0),
            "{backend}"
        );
        assert_eq!(outcome.operations.write.bytes, spec.region, "{backend}");
        let files = u64::from(THREADS) * u64::from(spec.files.expect("files").count);
        assert_eq!(outcome.operations.sync.requests, files, "{backend}");
        let offsets = offsets(&spec);
        assert_eq!(offsets.len() as u64, 100);
        let seen = stamped(directory.path(), &offsets);
        assert!(
            seen.values().all(|count| *count == THREADS as usize),
            "{backend}: {seen:?}"
        );
        target.remove().expect("removed");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}

#[test]
fn fresh_files_are_made_and_removed_per_trial() {
    let spec = TrialSpec {
        allocate: Some(Allocate::Fresh),
        sync: SyncPolicy::Fdatasync,
        ..spec(FILES)
    };
    let (directory, target) = scratch(&spec);
    let before = fs::read_dir(directory.path()).expect("readable").count();
    assert_eq!(before, 1 + 12, "the scratch file, and six for each worker");
    let outcome = run(&spec, &target).expect("runs");
    assert_eq!(outcome.operations.write.bytes, spec.region);
    assert_eq!(outcome.operations.sync.requests, 200);
    let empty = outcome.region.extents.map(|extents| extents.empty_bytes());
    assert!(empty.is_none_or(|bytes| bytes == spec.region), "{empty:?}");
    let seen = stamped(directory.path(), &offsets(&spec));
    assert!(seen.values().all(|count| *count == 0), "{seen:?}");
    let after = fs::read_dir(directory.path()).expect("readable").count();
    assert_eq!(after, before);
}

#[test]
fn all_files_are_examined_and_others_refused() {
    let spec = TrialSpec {
        read_percent: 100,
        cache: CacheState::Hot,
        ..spec(FILES)
    };
    let (_directory, target) = scratch(&spec);
    // A look ends after 100 us, and pages not reached are estimated: on a busy machine not every look sees all.
    let sees_all = (0..20).any(|_| {
        let outcome = run(&spec, &target).expect("runs");
        assert_eq!(outcome.operations.read.bytes, spec.region);
        let pages = outcome.region.after.expect("they were looked at");
        assert_eq!(pages.resident_bytes, spec.region);
        pages.looked_bytes == spec.region
    });
    assert!(sees_all);
    let more = TrialSpec {
        files: Some(FileSet::of(7)),
        ..spec
    };
    assert!(run(&more, &target).is_err(), "it has six for each worker");
}
