//! Verdicts on files whose state is known: holes, unwritten space, hot and cold pages, write-back that is owed.

use std::fs::File;
use std::path::Path;

use needs::Need;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::support::{exported, folder, run_tiny};

const SIZE: u64 = 4 << 20;

/// A file of 4 MiB without data: space that is allocated to `allocated`, then a hole. `None` where the file system
/// cannot do that.
fn file(folder: &Path, allocated: u64) -> Option<()> {
    let file = File::create_new(folder.join("mine")).expect("a new file");
    file.set_len(SIZE).expect("sized");
    if allocated > 0 {
        fallocate(&file, FallocateFlags::empty(), 0, allocated).ok()?;
    }
    file.sync_all().expect("durable");
    Some(())
}

/// The samples of a run over the file, through the page cache or past it; a skip where direct I/O is refused.
#[track_caller]
fn reads(folder: &Path, mode: &[&str]) -> Option<Vec<Value>> {
    let name = format!("run{}.iolab", mode.concat());
    let arguments = [&["mine", "-o", &name], mode].concat();
    let done = run_tiny(folder, "read-size", &arguments);
    if done.code == Some(2) && done.stderr.contains("direct I/O") {
        needs::skip(Need::DirectIo, done.stderr);
        return None;
    }
    done.expect(0);
    Some(exported(folder, &name))
}

#[test]
fn bytes_never_written_are_hole_in_every_mode() {
    for (allocated, column, need) in [
        (0, "hole_bytes", Need::Holes),
        (SIZE, "unwritten_bytes", Need::Fiemap),
    ] {
        let folder = folder();
        if file(folder.path(), allocated).is_none() {
            needs::skip(Need::Fallocate, "it fails");
            continue;
        }
        for mode in [&["--direct"][..], &["--buffered"], &["--set", "cache=hot"]] {
            let Some(rows) = reads(folder.path(), mode) else {
                continue;
            };
            if rows[0][column].as_u64() != Some(SIZE) {
                needs::skip(need, "a file without data looks full");
                continue;
            }
            let is_hole = |row: &Value| row["served_by"] == "hole" && row["device_fraction"] == 0.0;
            assert!(rows.iter().all(is_hole), "{mode:?} {column}");
        }
    }
}

#[test]
fn cached_bytes_are_reported_for_hot_and_cold() {
    let folder = folder();
    for (cache, resident) in [("hot", SIZE), ("cold", 0)] {
        let (set, name) = (format!("cache={cache}"), format!("{cache}.iolab"));
        let arguments = ["--set", &set, "-o", &name];
        run_tiny(folder.path(), "read-size", &arguments).expect(0);
        for row in exported(folder.path(), &name) {
            let Some(before) = row["cache_before_bytes"].as_u64() else {
                return needs::skip(Need::Cachestat, "nothing is known of the page cache");
            };
            if cache == "cold" && before > 0 {
                return needs::skip(Need::ColdCache, "pages stay");
            }
            // The kernel may take a few pages back at any time.
            assert!(
                before <= resident && before >= resident - resident / 64,
                "{row}"
            );
            if cache == "hot" {
                assert_eq!(row["served_by"], "page-cache", "{row}");
            }
        }
    }
}

#[test]
fn buffered_writes_without_sync_owe_bytes() {
    let folder = folder();
    for (sync, owes) in [("none", true), ("end", false)] {
        let (set, name) = (format!("sync={sync}"), format!("{sync}.iolab"));
        let arguments = ["--buffered", "--set", &set, "-o", &name];
        run_tiny(folder.path(), "write-size", &arguments).expect(0);
        let rows = exported(folder.path(), &name);
        for row in &rows {
            assert_eq!(row["owed_sync_ns"].is_number(), owes, "{row}");
            assert!(
                row["evidence_ns"].as_u64().is_some_and(|ns| ns > 0),
                "{row}"
            );
        }
        // iolab syncs the file after its last trial.
        if let Some(dirty) = rows
            .last()
            .and_then(|row| row["cache_before_dirty_bytes"].as_u64())
        {
            assert_eq!(dirty, 0);
        }
    }
}
