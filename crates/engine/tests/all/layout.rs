//! Layouts, descriptors and fresh files on a real file system: the bytes that each worker touches, and the files left after
//! it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iolab_storage::{ExtraFiles, Need, PrivateFiles, Size, Target};
use iolab_workload::Kind;
use iolab_workload::outcome::Ended;
use iolab_workload::trial::{Allocate, CacheState, FileLayout, Pattern, SyncPolicy, TrialSpec};

use crate::files::{folder, run};

const SIZE: u64 = 1 << 20;
const BLOCK: u64 = 4096;
const THREADS: u32 = 3;

fn need(fresh: u32) -> Need {
    let private = [1, THREADS].map(|threads| PrivateFiles {
        threads,
        bs: BLOCK,
        ranks: 1,
        files: None,
    });
    Need {
        beside: ExtraFiles {
            private: private.to_vec(),
            fresh,
        },
        ..Need::writing(SIZE)
    }
}

fn scratch() -> (tempfile::TempDir, Target) {
    let directory = folder();
    let target = Target::open(directory.path(), &need(THREADS)).expect("scratch files");
    let mut last = 0;
    target
        .fill(7, &AtomicBool::new(false), &mut |done| last = done)
        .expect("filled");
    assert_eq!(last, target.fill_bytes());
    (directory, target)
}

fn spec(layout: FileLayout) -> TrialSpec {
    TrialSpec {
        region: SIZE,
        threads: THREADS,
        cache: CacheState::Cold,
        layout,
        ..TrialSpec::default()
    }
}

/// Sizes of the files of a folder, the smallest first.
fn sizes(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).expect("readable");
    let mut sizes: Vec<u64> = entries
        .map(|entry| {
            entry
                .and_then(|entry| entry.metadata())
                .expect("there")
                .len()
        })
        .collect();
    sizes.sort_unstable();
    sizes
}

/// The offset that iolab stamps on every 4 KiB it writes, of each block of each file whose stamp is a block's.
fn stamps(folder: &Path) -> Vec<Vec<u64>> {
    let entries = fs::read_dir(folder).expect("readable");
    entries
        .map(|entry| {
            let content = fs::read(entry.expect("there").path()).expect("readable");
            content
                .chunks_exact(BLOCK as usize)
                .map(|block| u64::from_le_bytes(block[..8].try_into().expect("eight bytes")))
                .collect()
        })
        .collect()
}

#[test]
fn workers_fill_their_own_files() {
    for pattern in [Pattern::Seq, Pattern::Rand, Pattern::Reverse] {
        let (directory, target) = scratch();
        let spec = TrialSpec {
            pattern,
            read_percent: 0,
            ..spec(FileLayout::Private)
        };
        let outcome = run(&spec, &target).expect("runs");
        assert_eq!(outcome.ended, Ended::Done);
        assert_eq!(
            outcome.operations.write.bytes, SIZE,
            "one pass over all files together"
        );
        // 256 blocks over three workers: 86, 85 and 85; the first file is large enough for a single worker.
        let mut written: Vec<usize> = stamps(directory.path())
            .into_iter()
            .map(|stamps| {
                (0..)
                    .take_while(|n| stamps.get(*n) == Some(&(*n as u64 * BLOCK)))
                    .count()
            })
            .filter(|count| *count > 0)
            .collect();
        written.sort_unstable();
        assert_eq!(written, [85, 85, 86], "{pattern}");
        let untouched = fs::read(target.path()).expect("readable");
        assert_ne!(
            untouched[..8],
            0u64.to_le_bytes(),
            "the shared file is left alone"
        );
    }
}

#[test]
fn writes_use_fresh_files_and_reads_filled_ones() {
    let (directory, target) = scratch();
    let before = (sizes(directory.path()), stamps(directory.path()));
    for (layout, sync) in [
        (FileLayout::Shared, SyncPolicy::None),
        (FileLayout::Private, SyncPolicy::End),
    ] {
        let spec = TrialSpec {
            read_percent: 0,
            allocate: Some(Allocate::Fresh),
            sync,
            ..spec(layout)
        };
        for _ in 0..2 {
            let outcome = run(&spec, &target).expect("runs");
            assert_eq!(
                (outcome.operations.write.bytes, outcome.errors),
                (SIZE, 0),
                "{layout}"
            );
            let empty = outcome.region.extents.map(|extents| extents.empty_bytes());
            assert!(
                empty.is_none_or(|bytes| bytes == SIZE),
                "{layout}: {empty:?}"
            );
        }
        let spec = TrialSpec {
            read_percent: 100,
            ..spec
        };
        let outcome = run(&spec, &target).expect("runs");
        let empty = outcome.region.extents.map(|extents| extents.empty_bytes());
        assert!(empty.is_none_or(|bytes| bytes == 0), "{layout}: {empty:?}");
    }
    assert_eq!(before, (sizes(directory.path()), stamps(directory.path())));
}

#[test]
fn files_have_their_sizes_and_are_removed_together() {
    let (directory, target) = scratch();
    // 256 blocks: one worker has them all, of three the second and third have 86 at most.
    let share = 86 * BLOCK;
    assert_eq!(sizes(directory.path()), [share, share, SIZE, SIZE + 65536]);
    target.remove().expect("removed");
    assert_eq!(sizes(directory.path()), [0u64; 0]);
    drop(Target::open(directory.path(), &need(0)).expect("again"));
    assert_eq!(sizes(directory.path()), [0u64; 0]);
}

#[test]
fn lookalikes_of_a_killed_runs_files_stay() {
    let (directory, target) = scratch();
    let share = 86 * BLOCK;
    let left = directory.path().join("left");
    fs::create_dir(&left).expect("made");
    let files: HashSet<_> = fs::read_dir(directory.path())
        .expect("readable")
        .map(|entry| entry.expect("there").path())
        .filter(|path| path.is_file())
        .collect();
    // Copies with these names and contents, without a holder of the lock. The footer lists other files under these names.
    for file in &files {
        fs::copy(file, left.join(file.file_name().expect("a name"))).expect("copied");
    }
    drop(target);
    let next = Target::open(&left, &need(0)).expect("again");
    drop(next);
    assert_eq!(sizes(&left), [share, share, SIZE]);
}

#[test]
fn impossible_layouts_are_refused() {
    let directory = folder();
    let path = directory.path().join("file");
    fs::write(&path, vec![1; SIZE as usize]).expect("written");
    let error = Target::open(&path, &need(0)).expect_err("a file");
    assert_eq!(error.kind(), Kind::Usage);
    let message = error.message().replace(&path.display().to_string(), "FILE");
    insta::assert_snapshot!(message, @"layout=private needs a file per thread, but FILE is one existing file or device");

    let plain = Need {
        write: false,
        beside: ExtraFiles::default(),
        ..need(0)
    };
    let file = Target::open(&path, &plain).expect("to read");
    let error = run(&spec(FileLayout::Private), &file).expect_err("no files beside it");
    assert_eq!(error.kind(), Kind::Usage);

    let huge = Need {
        size: Size::Exactly(1 << 50),
        ..need(THREADS)
    };
    let error = Target::open(directory.path(), &huge).expect_err("too large");
    assert_eq!(error.kind(), Kind::Refused);
}
