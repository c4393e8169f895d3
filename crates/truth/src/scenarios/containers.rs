//! Overlays and bind mounts, as in containers; all need root.

use super::{Expect, Scenario};
use crate::files::{MIB, noise};
use crate::overlay::{Overlay, bound, hide, lower};
use crate::scene::Scene;
use crate::system::Made;
use crate::workload::Workload;

const BYTES: u64 = 32 * MIB;

const HOT: Workload = Workload {
    cache: "hot",
    bs: "1M",
    ..Workload::READ
};

const COLD: Workload = Workload {
    cache: "cold",
    once: true,
    time_ms: 5000,
    ..Workload::READ
};

const PAGE_CACHE: Expect = Expect {
    served_by: &["page-cache"],
    ..Expect::CLEAN
};

/// A file of the lower layer.
fn below() -> Made<Scene> {
    below_in(Scene::new()?)
}

fn below_in(scene: Scene) -> Made<Scene> {
    let overlay = Overlay::over(&scene, "root", &lower(&scene, BYTES)?)?;
    Ok(scene.on(overlay.root.join("data")))
}

/// A file of the upper layer.
fn above() -> Made<Scene> {
    let scene = Scene::new()?;
    let overlay = Overlay::over(&scene, "root", &lower(&scene, MIB)?)?;
    let file = noise(overlay.root.join("written"), BYTES)?;
    Ok(scene.on(file))
}

/// A file of the lower layer, in a folder that this process cannot reach.
fn hidden() -> Made<Scene> {
    let scene = Scene::new()?;
    let lower = lower(&scene, BYTES)?;
    let overlay = Overlay::over(&scene, "root", &lower)?;
    hide(&scene, &lower)?;
    overlay.hide_upper(&scene)?;
    Ok(scene.on(overlay.root.join("data")))
}

/// A container's image, cached in memory.
pub const LOWER_HOT: Scenario = Scenario {
    name: "overlay, lower layer, hot cache",
    truth: "every byte comes from memory, from pages of the layer's file",
    build: below,
    workload: HOT,
    expect: PAGE_CACHE,
};

/// A container's image, on disk.
pub const LOWER_COLD: Scenario = Scenario {
    name: "overlay, lower layer, cold cache",
    truth: "every byte comes from the device below the layer",
    build: below,
    workload: COLD,
    expect: Expect::CLEAN,
};

/// A container's image, past the page cache.
pub const LOWER_DIRECT: Scenario = Scenario {
    name: "overlay, lower layer, direct reads",
    truth: "every byte comes from the device below the layer",
    build: below,
    workload: Workload::READ,
    expect: Expect::CLEAN,
};

/// A container's image, through a mapping.
pub const LOWER_MAPPED: Scenario = Scenario {
    name: "overlay, lower layer, mmap, hot cache",
    truth: "every byte comes from memory, from pages of the layer's file",
    build: below,
    workload: Workload {
        mapped: true,
        ..HOT
    },
    expect: PAGE_CACHE,
};

/// Data written by a container, cached in memory.
pub const UPPER_HOT: Scenario = Scenario {
    name: "overlay, upper layer, hot cache",
    truth: "every byte comes from memory, from pages of the layer's file",
    build: above,
    workload: HOT,
    expect: PAGE_CACHE,
};

/// Data written by a container, on disk.
pub const UPPER_COLD: Scenario = Scenario {
    name: "overlay, upper layer, cold cache",
    truth: "every byte comes from the device below the layer",
    build: above,
    workload: COLD,
    expect: Expect::CLEAN,
};

/// Writes by a container.
pub const UPPER_BUFFERED_WRITES: Scenario = Scenario {
    name: "overlay, buffered writes, no sync",
    truth: "memory takes the bytes; the device below the layer gets them after the timed span",
    build: above,
    workload: Workload {
        cache: "cold",
        once: true,
        ..Workload::WRITE
    },
    expect: Expect {
        flags: &["page cache", "write back owed"],
        ..PAGE_CACHE
    },
};

/// An upper layer in memory, as in live systems.
pub const UPPER_IN_MEMORY: Scenario = Scenario {
    name: "overlay, upper layer in tmpfs",
    truth: "memory",
    build: || {
        let scene = Scene::new()?;
        let (lower, layers) = (lower(&scene, MIB)?, scene.folder_in_memory()?);
        let overlay = Overlay::with_upper(&scene, "root", &lower, &layers)?;
        let file = noise(overlay.root.join("written"), BYTES)?;
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

/// A container within a container.
pub const NESTED_HOT: Scenario = Scenario {
    name: "overlay over an overlay, hot cache",
    truth: "every byte comes from memory, from pages of the lowest layer's file",
    build: || {
        let scene = Scene::new()?;
        let first = Overlay::over(&scene, "first", &lower(&scene, BYTES)?)?;
        let second = Overlay::over(&scene, "second", &first.root)?;
        Ok(scene.on(second.root.join("data")))
    },
    workload: HOT,
    expect: PAGE_CACHE,
};

/// A folder of the image as a volume.
pub const BOUND_HOT: Scenario = Scenario {
    name: "bind mount of an overlay's folder, hot cache",
    truth: "every byte comes from memory, from pages of the layer's file",
    build: || {
        let scene = below()?;
        let root = scene.target.parent().unwrap_or(scene.folder());
        let volume = bound(&scene, "volume", root)?;
        Ok(scene.on(volume.join("data")))
    },
    workload: HOT,
    expect: PAGE_CACHE,
};

/// A root without access to its layers, as inside a container.
pub const HIDDEN_HOT: Scenario = Scenario {
    name: "overlay, layers out of reach, hot cache",
    truth: "every byte comes from memory, though no file that has the pages can be opened",
    build: hidden,
    workload: HOT,
    expect: PAGE_CACHE,
};

/// A root without access to its layers, on disk.
pub const HIDDEN_COLD: Scenario = Scenario {
    name: "overlay, layers out of reach, cold cache",
    truth: "every byte comes from a device, though it is not known which",
    build: hidden,
    workload: COLD,
    expect: Expect::CLEAN,
};

/// A root without access to its layers, written.
pub const HIDDEN_BUFFERED_WRITES: Scenario = Scenario {
    name: "overlay, layers out of reach, buffered writes",
    truth: "memory takes the bytes, and no device is known that would count them later",
    build: || {
        let scene = hidden()?;
        let root = scene.target.parent().unwrap_or(scene.folder()).to_owned();
        Ok(scene.on(root))
    },
    workload: Workload {
        cache: "cold",
        once: true,
        ..Workload::WRITE
    },
    expect: Expect {
        served_by: &["unknown"],
        flags: &["write back owed"],
        ..Expect::CLEAN
    },
};

/// A file of another user without write permission: the kernel reports every page as resident.
pub const STRANGERS_HOT: Scenario = Scenario {
    name: "overlay, file of another user, hot cache",
    truth: "every byte comes from memory, and the kernel does not tell this user which pages are there",
    build: || below_in(Scene::open_to_all()?)?.as_nobody(),
    workload: HOT,
    expect: PAGE_CACHE,
};

/// A file of another user without write permission, on disk.
pub const STRANGERS_COLD: Scenario = Scenario {
    name: "overlay, file of another user, cold cache",
    truth: "every byte comes from the device, and the kernel calls every page resident all the same",
    build: || below_in(Scene::open_to_all()?)?.as_nobody(),
    workload: COLD,
    expect: Expect::CLEAN,
};
