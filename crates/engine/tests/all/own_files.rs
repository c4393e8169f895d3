//! Files of workers on a real file system, one or several each: every block of every file is written once, by any backend, to files that
//! are filled, grow or are made for the trial; and what is left of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use iolab_storage::{ExtraFiles, Need, PrivateFiles, Target};
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{Backend, FileLayout, TrialSpec};

use crate::files::{folder, run};
use crate::skip;
use needs::settings;

const BLOCK: u64 = 4096;
const SIZE: u64 = 200 * BLOCK;
const SEVERAL: &str = "6";
/// Backends that take files of their own in different ways.
const BACKENDS: [Backend; 6] = [
    Backend::Sync,
    Backend::Psync,
    Backend::Pvsync2,
    Backend::Libaio,
    Backend::IoUring,
    Backend::Pool,
];

fn spec(sets: &str) -> TrialSpec {
    let common = "region=800k threads=3 cache=cold read_percent=0 pattern=rand";
    settings(&format!("{common} {sets}"))
}

fn need(spec: &TrialSpec, fresh: u32) -> Need {
    let private = PrivateFiles {
        threads: spec.threads,
        bs: spec.bs,
        ranks: 1,
        files: spec.files,
    };
    let private = match spec.layout {
        FileLayout::Private => vec![private],
        _ => Vec::new(),
    };
    Need {
        beside: ExtraFiles { private, fresh },
        ..Need::writing(spec.region)
    }
}

/// The target of such a trial, filled.
fn scratch(spec: &TrialSpec) -> (tempfile::TempDir, Target) {
    let directory = folder();
    let need = need(spec, spec.files_of_all());
    let target = Target::open(directory.path(), &need).expect("scratch files");
    let mut last = 0;
    target
        .fill(7, &AtomicBool::new(false), &mut |done| last = done)
        .expect("filled");
    assert_eq!(last, target.fill_bytes());
    (directory, target)
}

fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).expect("readable");
    entries.map(|entry| entry.expect("there").path())
}

/// Contents of the files in the folders of a folder, by path.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = paths(folder).flat_map(|own| paths(&own));
    let content = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a file of iolab's");
        (path, bytes)
    };
    files.map(content).collect()
}

/// Lengths of the files of a folder, the smallest first.
fn lengths(folder: &Path) -> Vec<usize> {
    let mut lengths: Vec<usize> = contents(folder).values().map(Vec::len).collect();
    lengths.sort_unstable();
    lengths
}

/// How often each offset of the workers' blocks is to be found as a stamp: each file has a slot of its own.
fn expected(spec: &TrialSpec) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for worker in 0..spec.threads {
        for (number, bytes) in (0..).zip(spec.private_files(worker)) {
            for block in 0..bytes / BLOCK {
                let offset = number * spec.file_slot() + block * BLOCK;
                *counts.entry(offset).or_default() += 1;
            }
        }
    }
    counts
}

/// How often these offsets are the stamps of blocks in a folder. A block of zeros was not written by a trial.
fn stamped(folder: &Path, offsets: &BTreeMap<u64, usize>) -> BTreeMap<u64, usize> {
    let mut counts: BTreeMap<u64, usize> = offsets.keys().map(|offset| (*offset, 0)).collect();
    let all = contents(folder);
    for block in all
        .values()
        .flat_map(|content| content.chunks_exact(BLOCK as usize))
    {
        let [stamp, generation] =
            [0, 8].map(|at| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes")));
        if let Some(count) = counts.get_mut(&stamp).filter(|_| generation > 0) {
            *count += 1;
        }
    }
    counts
}

#[test]
fn any_backend_writes_each_block_once() {
    for (files, pattern, backend) in ["none", SEVERAL].into_iter().flat_map(|files| {
        let patterns = ["seq", "rand", "reverse"].into_iter();
        let ways = BACKENDS.into_iter().zip(patterns.cycle());
        ways.map(move |(backend, pattern)| (files, pattern, backend))
    }) {
        // Files of their own have their requests in any order.
        let pattern = if files == SEVERAL { "rand" } else { pattern };
        let depth = if backend.is_asynchronous() { 4 } else { 1 };
        let what = format!("backend={backend} pattern={pattern} depth={depth} files={files}");
        let spec = spec(&format!("layout=private sync=end {what}"));
        if spec.check().is_err() {
            continue;
        }
        let (directory, target) = scratch(&spec);
        let outcome = match run(&spec, &target) {
            Ok(outcome) => outcome,
            Err(error) => {
                skip(&spec, &error);
                continue;
            }
        };
        assert_eq!((outcome.ended, outcome.errors), (Ended::Done, 0), "{what}");
        assert_eq!(outcome.operations.write.bytes, SIZE, "{what}");
        let syncs = outcome.operations.sync.requests;
        assert_eq!(syncs, u64::from(spec.files_of_all()), "{what}");
        let expected = expected(&spec);
        assert_eq!(stamped(directory.path(), &expected), expected, "{what}");
        target.remove().expect("removed");
        assert!(paths(directory.path()).next().is_none(), "{what}");
    }
}

#[test]
fn writes_use_fresh_files_and_reads_filled_ones() {
    let several = format!("layout=private sync=fdatasync files={SEVERAL}");
    for (sets, syncs) in [
        ("layout=shared sync=none", 0),
        ("layout=private sync=end", 3),
        (&several, 200),
    ] {
        let spec = spec(&format!("allocate=fresh {sets}"));
        let (directory, target) = scratch(&spec);
        let before = contents(directory.path());
        for _ in 0..2 {
            let outcome = run(&spec, &target).expect("runs");
            let operations = &outcome.operations;
            assert_eq!((operations.write.bytes, outcome.errors), (SIZE, 0));
            assert_eq!(operations.sync.requests, syncs, "{sets}");
            let empty = outcome.region.extents.map(|extents| extents.empty_bytes());
            assert!(empty.is_none_or(|bytes| bytes == SIZE), "{sets}");
        }
        let reads = TrialSpec {
            read_percent: 100,
            ..spec
        };
        let outcome = run(&reads, &target).expect("runs");
        let empty = outcome.region.extents.map(|extents| extents.empty_bytes());
        assert!(empty.is_none_or(|bytes| bytes == 0), "{sets}: {empty:?}");
        assert!(before == contents(directory.path()), "{sets}");
    }
}

/// Entries of 2300 bytes: the mean size in the log of etcd, and no multiple of anything. There is time for many passes, and one is made.
#[test]
fn a_new_file_is_filled_once() {
    let entries = "bs=2300 region=147200 sync=fdatasync pattern=seq time=60s";
    for (allocate, place) in ["append", "preallocated"].into_iter().flat_map(|how| {
        let places = ["layout=shared threads=1", "layout=private threads=4"];
        places.map(|place| (how, place))
    }) {
        for backend in BACKENDS.into_iter().take(3) {
            let way = format!("{place} backend={backend} allocate={allocate}");
            let spec = spec(&format!("{entries} {way}"));
            let directory = folder();
            let need = need(&spec, spec.files_of_all());
            let target = Target::open(directory.path(), &need).expect("scratch files");
            let before = lengths(directory.path()).len();
            let outcome = match run(&spec, &target) {
                Ok(outcome) => outcome,
                Err(error) if error.message().contains("fallocate") => {
                    needs::skip(needs::Need::Fallocate, error);
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            assert_eq!(outcome.ended, Ended::Done);
            let (writes, syncs) = (&outcome.operations.write, &outcome.operations.sync);
            assert_eq!((writes.bytes, syncs.requests), (spec.region, 64));
            // A write takes at least its sync.
            assert!(writes.latency.min() >= syncs.latency.min());
            assert_eq!(lengths(directory.path()).len(), before);
        }
    }
}

#[test]
fn all_files_are_examined_and_others_refused() {
    let several = format!("layout=private files={SEVERAL}");
    let spec = spec(&format!("read_percent=100 cache=hot {several}"));
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
        files: Some(7),
        ..spec
    };
    assert!(run(&more, &target).is_err(), "it has six for each worker");
}
