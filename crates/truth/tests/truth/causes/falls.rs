//! Writes to a real device whose throughput drops after a known number of bytes.

use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::device::{loop_over, mounted};
use iolab_truth::fuse::{Behaviour, Credits};
use iolab_truth::system::{Made, unless_missing};
use serde_json::Value;

use super::{World, explain, unexplained};
use crate::stage::alone;

/// A cache drained at 9.5 MB/s, which writes of 64 KiB at 4 ms each fill within half a second.
const FILLS: Credits = Credits {
    full: 3 << 20,
    refill: 9.5e6,
};

/// A file system on a loop device over a server.
pub(super) fn mounted_over(behaviour: Behaviour) -> Made<Scene> {
    let scene = Scene::on_fuse(behaviour)?;
    let device = loop_over(&scene, &scene.target, true)?;
    // Tables that the kernel initialises after mounting would fill the cache too.
    let make = [
        "mkfs.ext4",
        "-q",
        "-F",
        "-E",
        "lazy_itable_init=0,lazy_journal_init=0",
    ];
    let at = mounted(&scene, &device, &make, "noatime")?;
    Ok(scene.on(at))
}

/// A single trial from its beginning, after idle time that drains the cache filled with the scratch file.
const SOAK: [&str; 16] = [
    "write-random", "--direct", "--bs", "64k", "--set", "sync=none", "--set", "region=8M", "--set",
    "bytes=none", "--set", "idle=1s", "--soak", "2500ms", "--budget", "30s",
];

/// Claims of `iolab why` on a run on a server of one request at a time, 4 ms each; `None` if something is
/// missing.
fn explained(behaviour: Behaviour, planted: &'static [&'static str]) -> Option<Vec<Value>> {
    let scene = unless_missing(mounted_over(Behaviour {
        bytes: 128 << 20,
        delay: |_| Duration::from_millis(4),
        serial: true,
        ..behaviour
    }))?;
    let world = World {
        shown_by: &SOAK,
        planted,
        budget: "4min",
        more: &[],
    };
    Some(explain(&scene, &world))
}

/// The amount of written data is the cause: reads of as many bytes do not slow down.
#[test]
fn a_write_cache_that_fills_is_named() {
    let _alone = alone();
    let behaviour = Behaviour {
        write_credits: Some(FILLS),
        ..Behaviour::default()
    };
    explained(behaviour, &["written-data"]);
}

/// Credits of reads and of writes: reads slow down as well as writes, and no tried suspect is accused.
#[test]
#[ignore = "takes four minutes, as the other one does"]
fn credits_of_all_bytes_remain_without_writes() {
    let _alone = alone();
    let behaviour = Behaviour {
        credits: Some(FILLS),
        write_credits: Some(FILLS),
        ..Behaviour::default()
    };
    let Some(all) = explained(behaviour, &[]) else {
        return;
    };
    let rest = unexplained(&all);
    assert!(rest.is_some_and(|share| share > 0.8), "{rest:?}");
}
