//! Devices and file systems that are made for the purpose; all need root.

use super::{Expect, Scenario};
use crate::device::{Limit, Neighbour, loop_over, mounted};
use crate::files::{MIB, noise, warm};
use crate::fuse::{Behaviour, Mounted};
use crate::scene::Scene;
use crate::system::{Made, needs_root};
use crate::workload::Workload;

/// A device over a file that the page cache holds.
pub const LOOP_CACHED: Scenario = Scenario {
    name: "loop device over a cached file",
    truth: "direct for the loop device, but the file below is in memory",
    build: || {
        needs_root()?;
        let mut scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 64 * MIB)?;
        let device = loop_over(&mut scene, &backing, false)?;
        warm(&backing)?;
        Ok(scene.on(device))
    },
    workload: Workload::READ,
    expect: Expect { served_by: "page-cache", flags: &["page cache"], ..Expect::CLEAN },
};

fn direct_loop() -> Made<Scene> {
    needs_root()?;
    let mut scene = Scene::new()?;
    let backing = noise(scene.folder().join("backing"), 64 * MIB)?;
    let device = loop_over(&mut scene, &backing, true)?;
    Ok(scene.on(device))
}

/// A device whose bytes come from the disk below.
pub const LOOP_DIRECT: Scenario = Scenario {
    name: "loop device past the page cache",
    truth: "every byte comes from the disk below",
    build: direct_loop,
    workload: Workload::READ,
    expect: Expect::CLEAN,
};

/// ext4 that journals data has no direct I/O.
pub const REFUSES_DIRECT: Scenario = Scenario {
    name: "file system without O_DIRECT (ext4, data=journal)",
    truth: "direct I/O is not to be had",
    build: || {
        needs_root()?;
        let mut scene = Scene::new()?;
        let backing = noise(scene.folder().join("backing"), 96 * MIB)?;
        let device = loop_over(&mut scene, &backing, false)?;
        let at = mounted(&mut scene, &device, &["mkfs.ext4", "-q", "-F"], "data=journal")?;
        let file = noise(at.join("data"), 32 * MIB)?;
        Ok(scene.on(file))
    },
    workload: Workload::READ,
    expect: Expect { code: 2, served_by: "", says: &["O_DIRECT", "--buffered"], ..Expect::CLEAN },
};

/// The kernel hands requests through to a file that was opened without O_DIRECT.
pub const IGNORES_DIRECT: Scenario = Scenario {
    name: "file system that ignores O_DIRECT (FUSE passthrough)",
    truth: "direct reads are served by the page cache of the file behind",
    build: || {
        needs_root()?;
        let mut scene = Scene::new()?;
        let behind = noise(scene.folder().join("behind"), 32 * MIB)?;
        warm(&behind)?;
        let at = scene.subfolder("mount")?;
        let behaviour = Behaviour { passthrough: Some(behind), ..Behaviour::default() };
        let mounted = Mounted::new(&at, behaviour)?;
        let file = mounted.file();
        scene.fuse = Some(mounted);
        Ok(scene.on(file))
    },
    workload: Workload::READ,
    expect: Expect::UNKNOWN,
};

fn compressing() -> Made<Scene> {
    needs_root()?;
    let mut scene = Scene::new()?;
    let backing = noise(scene.folder().join("backing"), 256 * MIB)?;
    let device = loop_over(&mut scene, &backing, true)?;
    let at = mounted(&mut scene, &device, &["mkfs.btrfs", "-q", "-f"], "compress-force=zstd")?;
    Ok(scene.on(at))
}

/// Zeros shrink to next to nothing.
pub const COMPRESSED_ZEROS: Scenario = Scenario {
    name: "btrfs, compress=zstd, zeros written",
    truth: "next to nothing reaches the device",
    build: compressing,
    workload: Workload { sync: "end", zeros: true, ..Workload::WRITE },
    expect: Expect::UNKNOWN,
};

/// iolab's own data does not shrink.
pub const COMPRESSED_NOISE: Scenario = Scenario {
    name: "btrfs, compress=zstd, incompressible data written",
    truth: "every byte reaches the device",
    build: compressing,
    workload: Workload { sync: "end", ..Workload::WRITE },
    expect: Expect::CLEAN,
};

/// Bytes per second that [`THROTTLED`] allows.
pub const LIMIT: u64 = 20_000_000;

/// A limit set from outside.
pub const THROTTLED: Scenario = Scenario {
    name: "device throttled to 20 MB/s",
    truth: "20 MB/s",
    build: || {
        let mut scene = direct_loop()?;
        scene.limit = Some(Limit::new(&scene.target, LIMIT)?);
        Ok(scene)
    },
    workload: Workload { time_ms: 2000, region: "64M", ..Workload::READ },
    expect: Expect::CLEAN,
};

/// Somebody else begins to read the same device in mid-run.
pub const NEIGHBOUR: Scenario = Scenario {
    name: "noisy neighbour on the same device",
    truth: "another process reads the device too, from the middle of the run on",
    build: || {
        let mut scene = direct_loop()?;
        scene.neighbour = Some(Neighbour::new(&scene.target)?);
        Ok(scene)
    },
    workload: Workload { trials: 10, time_ms: 200, ..Workload::READ },
    expect: Expect { flags: &["others"], ..Expect::CLEAN },
};
