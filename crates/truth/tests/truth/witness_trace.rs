//! `iolab witness --trace`: a program's syncs are its own, with the flushes within them, and its requests are
//! its threads', whoever else uses the disk.

use std::path::PathBuf;

use iolab_truth::device::{loop_over, mounted, on_zram};
use iolab_truth::files::{MIB, hole, noise};
use iolab_truth::iolab::witness_with;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use serde_json::Value;

use crate::stage::{alone, within};

const EXT4: [&str; 3] = ["mkfs.ext4", "-q", "-F"];
const XFS: [&str; 3] = ["mkfs.xfs", "-q", "-f"];
const SYNCS: u64 = 40;

/// A file system on a loop device past the page cache, with a volatile cache.
fn on_loop(make: &[&str]) -> Made<(Scene, PathBuf)> {
    let scene = Scene::new()?;
    let file = hole(scene.folder().join("backing"), 400 * MIB)?;
    let device = loop_over(&scene, &file, true)?;
    let at = mounted(&scene, &device, make, "noatime")?;
    Ok((scene, at))
}

/// Evidence of a script with a trace, while another process runs `other` all the time.
fn traced(scene: &Scene, script: &str, other: &str) -> Option<Value> {
    if !needs::root() {
        return None;
    }
    let mut neighbour = std::process::Command::new("sh")
        .args(["-c", &format!("while :; do {other}; done")])
        .current_dir(scene.folder())
        .spawn()
        .expect("sh is everywhere");
    let (output, evidence) = witness_with(scene, &["--trace", "--", "sh", "-c", script], |_| ());
    neighbour.kill().expect("it runs");
    neighbour.wait().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    Some(evidence)
}

fn number(evidence: &Value, pointer: &str) -> u64 {
    let found = evidence.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{pointer}: {evidence:#}"))
}

/// Each way to request a sync, by a child as well.
fn script(at: &std::path::Path) -> String {
    let file = at.join("file").display().to_string();
    format!(
        "dd if=/dev/zero of={file} bs=4k count=20 oflag=dsync status=none
        (dd if=/dev/zero of={file}2 bs=4k count=10 oflag=sync status=none)
        for n in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of={file}3 bs=4k count=1 conv=fsync status=none; done"
    )
}

/// Another process's syncs on the same file system, which are not the program's.
fn neighbour(at: &std::path::Path) -> String {
    let file = at.join("other").display().to_string();
    format!("dd if=/dev/zero of={file} bs=4k count=5 oflag=dsync status=none")
}

#[test]
fn syncs_are_the_programs_own_with_a_flush() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_loop(&EXT4)) else {
        return;
    };
    let Some(evidence) = traced(&scene, &script(&at), &neighbour(&at)) else {
        return;
    };
    for (name, expected) in [
        ("syncs", SYNCS),
        ("timed", SYNCS),
        ("flushed", SYNCS),
        ("uncached", 0),
    ] {
        assert_eq!(
            number(&evidence, &format!("/trace/syncs/{name}")),
            expected,
            "{evidence:#}"
        );
    }
    let claims = evidence["claims"].as_array().expect("a list");
    let own = claims
        .iter()
        .find(|claim| claim["kind"] == "syncs")
        .expect("it has syncs");
    assert_eq!(own["evidence"]["syncs"], SYNCS, "{own:#}");
    let parts = ["flush_ns", "journal_ns", "write_ns", "host_ns"];
    let sum: f64 = parts
        .iter()
        .filter_map(|part| evidence["trace"]["syncs"][part].as_f64())
        .sum();
    let mean = evidence["trace"]["syncs"]["mean_ns"]
        .as_f64()
        .expect("they are timed");
    assert!(within(sum, mean, 0.01), "{evidence:#}");
}

#[test]
fn a_disk_without_a_volatile_cache_is_told() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_zram(&EXT4)) else {
        return;
    };
    let Some(evidence) = traced(&scene, &script(&at), "sleep 1") else {
        return;
    };
    for (name, expected) in [("syncs", SYNCS), ("flushed", 0), ("uncached", SYNCS)] {
        assert_eq!(
            number(&evidence, &format!("/trace/syncs/{name}")),
            expected,
            "{evidence:#}"
        );
    }
}

/// XFS has no event for the end of a sync: the calls of fsync end it, and syncs within writes are only counted.
#[test]
fn syncs_of_xfs_are_counted_calls_timed() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(on_loop(&XFS)) else {
        return;
    };
    // A sync of a directory too.
    let of_folder = format!("touch {at}/new; sync {at}", at = at.display());
    let script = format!("{}\n{of_folder}", script(&at));
    let Some(evidence) = traced(&scene, &script, "sleep 1") else {
        return;
    };
    for (name, expected) in [("syncs", SYNCS + 1), ("timed", 11), ("flushed", 11)] {
        assert_eq!(
            number(&evidence, &format!("/trace/syncs/{name}")),
            expected,
            "{evidence:#}"
        );
    }
}

/// Two senders read the same device past the page cache. The trace distinguishes them; the device's counters
/// include both.
#[test]
fn requests_of_a_disk_are_attributed_to_senders() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let file = noise(scene.folder().join("backing"), 16 * MIB)?;
        let device = loop_over(&scene, &file, true)?;
        Ok((scene, device))
    });
    let Some((scene, device)) = unless_missing(made) else {
        return;
    };
    let device = device.display().to_string();
    let read = |bs: &str, count: u32| {
        format!("dd if={device} of=/dev/null iflag=direct status=none bs={bs} count={count}")
    };
    let Some(evidence) = traced(&scene, &read("64k", 128), &read("4k", 200)) else {
        return;
    };
    let name = device.trim_start_matches("/dev/");
    let disks = evidence["trace"]["disks"].as_array().expect("a list");
    let disk = disks.iter().find(|disk| disk["name"] == name);
    let disk = disk.unwrap_or_else(|| panic!("{evidence:#}"));
    assert_eq!(number(disk, "/reads/bytes"), 8 * MIB, "{evidence:#}");
    assert_eq!(number(disk, "/reads/requests"), 128, "{evidence:#}");
    assert!(number(disk, "/other_requests") > 0, "{evidence:#}");
}
