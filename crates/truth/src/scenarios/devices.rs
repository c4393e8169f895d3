//! Devices and file systems made for the scenario; all need root.

use super::{Expect, Scenario};
use crate::device::{loop_over, mounted, zram};
use crate::files::{MIB, noise, text, warm};
use crate::neighbours::{CgroupLimit, Neighbour};
use crate::scene::{Scene, TargetChange};
use crate::system::{Made, needs_root};
use crate::workload::Workload;

/// A loop device on a file in memory.
pub const LOOP_IN_MEMORY: Scenario = Scenario {
    name: "loop device over a file in tmpfs",
    truth: "direct for the loop device, but the file below is memory",
    build: || {
        needs_root()?;
        let scene = Scene::new()?;
        let backing = noise(scene.folder_in_memory()?.join("backing"), 64 * MIB)?;
        let device = loop_over(&scene, &backing, false)?;
        Ok(scene.on(device))
    },
    workload: Workload {
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["page-cache"],
        flags: &["page cache"],
        ..Expect::CLEAN
    },
};

/// A loop device on a file that the page cache holds. Other processes' reads of the disk below cannot be
/// distinguished from the loop device's reads, so the verdict can be `mixed` on a busy disk.
pub const LOOP_CACHED: Scenario = Scenario {
    name: "loop device over a cached file",
    truth: "direct for the loop device, but the file below is in memory",
    build: || {
        needs_root()?;
        let scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 64 * MIB)?;
        let device = loop_over(&scene, &backing, false)?;
        warm(&backing)?;
        Ok(scene.on(device))
    },
    workload: Workload {
        bs: "1M",
        ..Workload::READ
    },
    expect: Expect {
        served_by: &["page-cache", "mixed"],
        flags: &["page cache"],
        ..Expect::CLEAN
    },
};

fn direct_loop() -> Made<Scene> {
    needs_root()?;
    let scene = Scene::new()?;
    let backing = noise(scene.folder().join("backing"), 64 * MIB)?;
    let device = loop_over(&scene, &backing, true)?;
    Ok(scene.on(device))
}

/// A loop device whose bytes come from the disk below.
pub const LOOP_DIRECT: Scenario = Scenario {
    name: "loop device past the page cache",
    truth: "every byte comes from the disk below",
    build: direct_loop,
    workload: Workload::READ,
    expect: Expect::CLEAN,
};

/// ext4 with journalled data, which has no direct I/O.
pub const REFUSES_DIRECT: Scenario = Scenario {
    name: "file system without O_DIRECT (ext4, data=journal)",
    truth: "direct I/O is not to be had",
    build: || {
        needs_root()?;
        let scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 96 * MIB)?;
        let device = loop_over(&scene, &backing, false)?;
        let at = mounted(&scene, &device, &["mkfs.ext4", "-q", "-F"], "data=journal")?;
        let file = noise(at.join("data"), 32 * MIB)?;
        Ok(scene.on(file))
    },
    workload: Workload::READ,
    expect: Expect {
        code: 2,
        served_by: &[],
        says: &["O_DIRECT", "--buffered"],
        ..Expect::CLEAN
    },
};

fn compressing() -> Made<Scene> {
    needs_root()?;
    let scene = Scene::new()?;
    let backing = noise(scene.folder().join("backing"), 256 * MIB)?;
    let device = loop_over(&scene, &backing, true)?;
    let at = mounted(
        &scene,
        &device,
        &["mkfs.btrfs", "-q", "-f"],
        "compress-force=zstd",
    )?;
    // Not a scratch file: its space is allocated first, and btrfs does not compress writes to such space.
    let file = text(at.join("data"), 32 * MIB)?;
    Ok(scene.on(file))
}

/// btrfs reads compressed data through the page cache, even when direct I/O is requested.
pub const IGNORES_DIRECT: Scenario = Scenario {
    name: "file system that ignores O_DIRECT (btrfs, compressed file)",
    truth: "direct reads are served by the page cache from the second pass on",
    build: compressing,
    // The warm-up is the first pass.
    workload: Workload {
        once: true,
        time_ms: 10_000,
        ..Workload::READ
    },
    expect: Expect::UNKNOWN,
};

/// Zeros on btrfs with compression: they shrink to nearly nothing.
pub const COMPRESSED_ZEROS: Scenario = Scenario {
    name: "btrfs, compress=zstd, zeros written",
    truth: "next to nothing reaches the device",
    build: compressing,
    workload: Workload {
        sync: "end",
        zeros: true,
        ..Workload::WRITE
    },
    expect: Expect {
        served_by: &["mixed"],
        flags: &["page cache"],
        says: &["a file system that compresses"],
        ..Expect::CLEAN
    },
};

/// iolab's own data on btrfs with compression: incompressible.
pub const COMPRESSED_NOISE: Scenario = Scenario {
    name: "btrfs, compress=zstd, incompressible data written",
    truth: "every byte reaches the device",
    build: compressing,
    workload: Workload {
        sync: "end",
        ..Workload::WRITE
    },
    expect: Expect::CLEAN,
};

/// A device as fast as memory, whose speed does not depend on other users of the machine's disks.
fn quick() -> Made<Scene> {
    let scene = Scene::new()?;
    let device = zram(&scene, 64 * MIB)?;
    Ok(scene.on(device))
}

/// Bytes per second that [`THROTTLED`] allows.
pub const LIMIT: u64 = 20_000_000;

/// A device with a limit set from outside.
pub const THROTTLED: Scenario = Scenario {
    name: "device throttled to 20 MB/s",
    truth: "20 MB/s",
    build: || {
        let mut scene = quick()?;
        scene.limit = Some(CgroupLimit::new(&scene.keeper, &scene.target, LIMIT)?);
        Ok(scene)
    },
    workload: Workload {
        time_ms: 2000,
        region: "64M",
        ..Workload::READ
    },
    expect: Expect::CLEAN,
};

/// A device that another process begins to read in the middle of the run.
pub const NEIGHBOUR: Scenario = Scenario {
    name: "noisy neighbour on the same device",
    truth: "another process reads the device too, from the middle of the run on",
    build: || {
        let mut scene = quick()?;
        // Ensures that iolab waits for the device and not for a CPU.
        scene.limit = Some(CgroupLimit::new(&scene.keeper, &scene.target, 10 * LIMIT)?);
        scene.turn = Some(TargetChange::Noise(Neighbour::new(&scene.target)?));
        Ok(scene)
    },
    workload: Workload {
        trials: 10,
        time_ms: 200,
        ..Workload::READ
    },
    expect: Expect {
        flags: &["other traffic"],
        ..Expect::CLEAN
    },
};

/// A device that fails while it is measured.
pub const BREAKS: Scenario = Scenario {
    name: "loop device, its file cut short in mid-run",
    truth: "what is gone cannot be read from the middle of the run on",
    build: || {
        needs_root()?;
        let mut scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 32 * MIB)?;
        let device = loop_over(&scene, &backing, false)?;
        scene.turn = Some(TargetChange::Cut(backing, MIB));
        Ok(scene.on(device))
    },
    workload: Workload {
        trials: 40,
        ..Workload::READ
    },
    expect: Expect {
        code: 1,
        served_by: &[],
        flags: &["errors", "page cache", "few trials"],
        says: &["pread", "Input/output error", "dmesg"],
    },
};
