//! Page cache, holes, and targets that are not storage.

use super::{Expect, Scenario};
use crate::files::{MIB, hole, noise, unwritten};
use crate::scene::Scene;
use crate::system::Made;
use crate::workload::Workload;

const BYTES: u64 = 32 * MIB;

fn noise_file() -> Made<Scene> {
    let scene = Scene::new()?;
    let file = noise(scene.folder().join("data"), BYTES)?;
    Ok(scene.on(file))
}

/// Reads that only the device can serve.
pub const DIRECT_READS: Scenario = Scenario {
    name: "file, direct reads",
    truth: "every byte comes from the device",
    build: noise_file,
    workload: Workload::READ,
    expect: Expect::CLEAN,
};

/// Reads after dropping the page cache before each trial.
pub const COLD_READS: Scenario = Scenario {
    name: "file, cold cache",
    truth: "every byte comes from the device, read ahead by the kernel",
    build: noise_file,
    workload: Workload {
        cache: "cold",
        once: true,
        time_ms: 5000,
        ..Workload::READ
    },
    expect: Expect::CLEAN,
};

/// Reads after one read pass before each trial: the page cache was requested, so no flag reports it.
pub const HOT_READS: Scenario = Scenario {
    name: "file, hot cache",
    truth: "every byte comes from memory",
    build: noise_file,
    workload: Workload {
        cache: "hot",
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["page-cache"],
        ..Expect::CLEAN
    },
};

/// Writes past the page cache, synced at the end.
pub const DIRECT_WRITES: Scenario = Scenario {
    name: "file, direct writes, sync at the end",
    truth: "every byte reaches the device within the timed span",
    build: noise_file,
    workload: Workload {
        sync: "end",
        ..Workload::WRITE
    },
    expect: Expect::CLEAN,
};

/// Writes into the page cache, which most tools report as write speed.
pub const BUFFERED_WRITES: Scenario = Scenario {
    name: "file, buffered writes, no sync",
    truth: "memory takes the bytes; the device gets them after the timed span",
    build: noise_file,
    workload: Workload {
        cache: "cold",
        once: true,
        ..Workload::WRITE
    },
    expect: Expect {
        served_by: &["page-cache"],
        flags: &["page cache", "write back owed"],
        ..Expect::CLEAN
    },
};

/// A sparse file.
pub const HOLE: Scenario = Scenario {
    name: "sparse file, direct reads",
    truth: "nothing was ever written: zeros are made up in memory",
    build: || {
        let scene = Scene::new()?;
        let file = hole(scene.folder().join("data"), BYTES)?;
        Ok(scene.on(file))
    },
    workload: Workload {
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["hole"],
        flags: &["hole"],
        ..Expect::CLEAN
    },
};

/// A preallocated file.
pub const UNWRITTEN: Scenario = Scenario {
    name: "preallocated file, direct reads",
    truth: "space is allocated, but never written: zeros are made up in memory",
    build: || {
        let scene = Scene::new()?;
        let file = unwritten(scene.folder().join("data"), BYTES)?;
        Ok(scene.on(file))
    },
    workload: Workload {
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["hole"],
        flags: &["hole"],
        ..Expect::CLEAN
    },
};

/// A file system in memory.
pub const TMPFS: Scenario = Scenario {
    name: "tmpfs",
    truth: "memory",
    build: || {
        let scene = Scene::new()?;
        let file = noise(scene.folder_in_memory()?.join("data"), BYTES)?;
        Ok(scene.on(file))
    },
    workload: Workload {
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["not-storage"],
        flags: &["not storage"],
        ..Expect::CLEAN
    },
};

/// Reads of `/dev/zero`, which one of the studies took for a disk.
pub const DEV_ZERO: Scenario = Scenario {
    name: "/dev/zero",
    truth: "memory is cleared",
    build: || Ok(Scene::new()?.on("/dev/zero".into())),
    workload: Workload {
        cache: "cold",
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["not-storage"],
        flags: &["not storage"],
        ..Expect::CLEAN
    },
};
