//! Syncs by layer, on ext4 with and without a journal, on XFS and on a device.

use std::path::Path;

use iolab_truth::device::{loop_over, mounted, on_zram};
use iolab_truth::files::{MIB, hole};
use iolab_truth::iolab::{Seen, run, told};
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use serde_json::Value;

use crate::stage::alone;

const PARTS: [&str; 6] = ["admission", "host", "write", "journal", "flush", "delivery"];
/// Tolerance of a mean, as a share: histograms have three digits.
const OFF: f64 = 0.003;
/// Requests that the file system may make just before and after a trial.
const BESIDE: f64 = 10.0;
const EXT4: [&str; 3] = ["mkfs.ext4", "-q", "-F"];
const BARE_EXT4: [&str; 5] = ["mkfs.ext4", "-q", "-F", "-O", "^has_journal"];
const XFS: [&str; 3] = ["mkfs.xfs", "-q", "-f"];

/// Writes to growing files, one per thread.
const GROWING: [&str; 6] = [
    "--set", "pattern=seq", "--set", "allocate=append", "--set", "layout=private",
];

/// A run and the stages of its trials.
struct Traced {
    seen: Seen,
    stages: Vec<Value>,
}

/// Runs traced writes of two threads on a path, each followed by a sync.
#[track_caller]
fn traced(scene: &Scene, target: &Path, more: &[&str]) -> Option<Traced> {
    traced_with(scene, target, "sync=each", more)
}

/// As [`traced`], with a given sync policy.
#[track_caller]
fn traced_with(scene: &Scene, target: &Path, sync: &str, more: &[&str]) -> Option<Traced> {
    if !needs::root() {
        return None;
    }
    let target = target.display().to_string();
    let own = [
        "--bs", "4k", "--size", "4M", "--time", "200ms", "--budget", "8s", "--threads", "2",
        "--set", "trace=true", "--set", sync,
    ];
    let seen = run(scene, "write-size", &target, &[&own[..], more].concat());
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let file = scene
        .folder()
        .join("write-size.iolab")
        .display()
        .to_string();
    let stages = told(scene, &["export", &file, "--format", "json"]);
    let stages: Value = serde_json::from_str(&stages).expect("JSON");
    let stages = stages.as_array().expect("rows").clone();
    Some(Traced { seen, stages })
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or(0.0)
}

impl Traced {
    /// Checks properties of every trial: the stages of syncs add up to their recorded latency, and the traced
    /// requests equal the device's counts.
    fn adds_up(&self) {
        let mut equal = 0;
        for row in &self.stages {
            let sample = self.seen.samples.iter();
            let sample = sample
                .filter(|sample| sample["sample"] == row["sample"])
                .collect::<Vec<_>>()[0];
            let mean = number(sample, "sync_latency_mean_ns");
            let sum: f64 = PARTS
                .iter()
                .map(|part| number(row, &format!("stage_sync_{part}_mean_ns")))
                .sum();
            assert!((sum / mean - 1.0).abs() <= OFF, "{sum} and {mean} ns");
            assert_eq!(row["traced_syncs"], sample["syncs"]);
            let sum = |row: &Value, names: &[&str]| -> f64 {
                names.iter().map(|name| number(row, name)).sum()
            };
            let traced = sum(
                row,
                &[
                    "carrying_requests", "other_requests", "device_flushes", "flush_waits",
                ],
            );
            let counted = sum(
                sample,
                &["device_read_ios", "device_write_ios", "device_flush_ios"],
            );
            // The counters are read slightly before and after, when the file system may write.
            assert!(
                traced <= counted && counted <= traced + BESIDE,
                "{traced} {counted}"
            );
            equal += usize::from(traced == counted);
        }
        let trials = self.stages.len();
        assert!(2 * equal > trials, "{equal} of {trials} trials");
        assert_eq!(self.seen.number("unjoined_share_max"), 0.0);
    }

    fn share(&self, part: &str) -> f64 {
        self.seen.number(&format!("stage_sync_{part}_share"))
    }
}

/// A loop device past the page cache, with room for any of the file systems.
fn over_loop() -> Made<(Scene, std::path::PathBuf)> {
    let scene = Scene::new()?;
    let file = hole(scene.folder().join("backing"), 400 * MIB)?;
    let device = loop_over(&scene, &file, true)?;
    Ok((scene, device))
}

fn on(make: &[&str]) -> Made<(Scene, std::path::PathBuf)> {
    let (scene, device) = over_loop()?;
    let at = mounted(&scene, &device, make, "noatime")?;
    Ok((scene, at))
}

#[test]
fn journal_shows_commits_shared_by_two_threads() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on(&EXT4)) else {
        return;
    };
    // Growing files change their inode with every write, so every sync waits for a commit.
    let Some(traced) = traced(&scene, &at, &GROWING) else {
        return;
    };
    traced.adds_up();
    assert_eq!(traced.seen.cell("trace_journal"), "commits");
    let [syncs, commits, shared] =
        ["traced_syncs", "sync_commits", "shared_commits"].map(|name| traced.seen.number(name));
    assert!(commits > 0.0 && commits <= syncs, "{commits} of {syncs}");
    assert!(shared > 0.0, "{shared} of {commits} commits of two threads");
    // Low bounds: on a busy machine threads wait for a CPU most of the time.
    assert!(traced.share("journal") > 0.05, "{}", traced.seen.text);
    assert!(traced.share("flush") > 0.05, "{}", traced.seen.text);
}

#[test]
fn no_journal_is_an_answer() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on(&BARE_EXT4)) else {
        return;
    };
    let Some(traced) = traced(&scene, &at, &["--set", "pattern=rand"]) else {
        return;
    };
    traced.adds_up();
    assert_eq!(traced.seen.cell("trace_journal"), "none");
    assert_eq!(traced.seen.cell("sync_commits"), 0);
    assert!(traced.seen.cell("stage_sync_journal_mean_ns").is_null());
    assert!(traced.share("flush") > 0.05, "{}", traced.seen.text);
    assert!(
        traced.seen.says("There is no journal."),
        "{}",
        traced.seen.text
    );
}

#[test]
fn disk_without_volatile_cache_has_no_flush() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_zram(&EXT4)) else {
        return;
    };
    let Some(traced) = traced(&scene, &at, &GROWING) else {
        return;
    };
    assert_eq!(traced.seen.cell("sync_flushes"), 0);
    assert_eq!(traced.seen.cell("trace_journal"), "commits");
    assert!(traced.seen.number("sync_commits") > 0.0);
    assert!(traced.share("journal") > 0.0, "{}", traced.seen.text);
    assert!(traced.seen.cell("stage_queue_mean_ns").is_null());
}

#[test]
fn the_log_of_xfs_shows_by_its_writes() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on(&XFS)) else {
        return;
    };
    let Some(traced) = traced(&scene, &at, &GROWING) else {
        return;
    };
    traced.adds_up();
    assert_eq!(traced.seen.cell("trace_journal"), "metadata-writes");
    assert!(traced.share("journal") > 0.02, "{}", traced.seen.text);
}

#[test]
fn a_sync_of_a_device_is_its_flush() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(over_loop()) else {
        return;
    };
    let Some(traced) = traced(
        &scene,
        &device,
        &["--destroy-data", "--set", "pattern=rand"],
    ) else {
        return;
    };
    traced.adds_up();
    assert_eq!(traced.seen.cell("trace_journal"), "none");
    assert!(traced.share("flush") > 0.3, "{}", traced.seen.text);
}

/// Writes that sync themselves: together with the sync they take the recorded time, and the sync shows its
/// flush and its journal.
#[test]
fn sync_within_a_write_is_separated() {
    let _alone = alone();
    for (make, journal) in [
        (&EXT4[..], "commits"),
        (&BARE_EXT4, "none"),
        (&XFS, "metadata-writes"),
    ] {
        let Some((scene, at)) = unless_missing(on(make)) else {
            continue;
        };
        for (sync, backend) in [
            ("osync", "psync"),
            ("odsync", "io_uring"),
            ("rwf_dsync", "pvsync2"),
        ] {
            let [sync, backend] = [format!("sync={sync}"), format!("backend={backend}")];
            let more = [&GROWING[..], &["--set", &backend]].concat();
            let Some(traced) = traced_with(&scene, &at, &sync, &more) else {
                return;
            };
            let name = format!("{make:?} {sync} {backend}: {}", traced.seen.text);
            assert_eq!(traced.seen.number("unjoined_share_max"), 0.0, "{name}");
            assert_eq!(traced.seen.cell("trace_journal"), journal, "{name}");
            assert!(traced.share("flush") > 0.05, "{name}");
            for row in &traced.stages {
                let sample = traced.seen.samples.iter();
                let sample = sample
                    .filter(|sample| sample["sample"] == row["sample"])
                    .collect::<Vec<_>>()[0];
                // Growing files change their inode, so every write waits for a sync.
                assert_eq!(row["traced_syncs"], row["joined_requests"], "{name}");
                let sum: f64 = ["admission", "queue", "device", "delivery"]
                    .iter()
                    .map(|part| number(row, &format!("stage_{part}_mean_ns")))
                    .chain(
                        PARTS
                            .iter()
                            .map(|part| number(row, &format!("stage_sync_{part}_mean_ns"))),
                    )
                    .sum();
                let mean = number(sample, "write_latency_mean_ns");
                assert!(
                    (sum / mean - 1.0).abs() <= OFF,
                    "{name}: {sum} and {mean} ns"
                );
            }
            let run = scene.folder().join("write-size.iolab");
            std::fs::remove_file(run).expect("the next run has the same name");
        }
    }
}

#[test]
fn sync_within_a_device_write_is_refused() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(over_loop()) else {
        return;
    };
    if !needs::root() {
        return;
    }
    let device = device.display().to_string();
    let more = [
        "--destroy-data", "--set", "trace=true", "--set", "sync=odsync",
    ];
    let seen = run(&scene, "write-size", &device, &more);
    assert_eq!(seen.code, Some(2), "{}", seen.text);
    assert!(seen.says("only ext4 and XFS have events"), "{}", seen.text);
}
