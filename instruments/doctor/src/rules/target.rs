//! The target and its file system.
//!
//! Layers of an overlay, which the root of nearly every container is.
//!
//! Caches that may stand in for the device: of this machine, of the device, of a host below.

use std::path::Path;

use super::{Facts, Said, fine, must_fix, shell_word, worth_knowing};
use crate::facts::Direct;
use iolab_host::device::Device;
use iolab_storage::{Layering, Layers, TargetKind};
use iolab_workload::table;
use iolab_workload::units::{format_bytes, format_percent};

/// Share of free space below which file systems and drives behave differently.
const FREE_SHARE_LOW: f64 = 0.1;

/// Names the target: its kind, size and file system.
pub(super) fn what(facts: &Facts) -> Option<Said> {
    let place = &facts.place;
    let size = place.bytes.map_or(String::new(), |bytes| {
        format!(" of {}", format_bytes(bytes as f64))
    });
    let what = match place.kind {
        TargetKind::Scratch => {
            "a directory: scratch files are made in it and removed at the end".to_owned()
        }
        TargetKind::File => format!("a file{size}"),
        TargetKind::BlockDevice => format!("a block device{size}"),
        TargetKind::CharDevice => "a character device".to_owned(),
    };
    let on = facts.file_system.as_ref().map_or(String::new(), |fs| {
        // The source of an overlay's mount is an arbitrary name; its layers are reported separately.
        let source = match facts.layering {
            Some(_) => String::new(),
            None => format!(" of {}", fs.source),
        };
        format!(
            "; {}{source}, mounted at {}",
            fs.kind,
            fs.mount_point.display()
        )
    });
    Some(fine(format!("{what}{on}")))
}

/// Warns of targets in memory.
pub(super) fn memory_file_system(facts: &Facts) -> Option<Said> {
    if !facts.place.is_memory {
        return None;
    }
    let kind = match &facts.file_system {
        Some(fs) if facts.layering.is_some() => {
            format!("the layer of this {} lies in memory", fs.kind)
        }
        Some(fs) => format!("{} lives in memory", fs.kind),
        None => format!("{} is not storage", facts.place.named),
    };
    let finding = must_fix(format!(
        "{kind}: what is measured here is memory, not a device"
    ));
    Some(finding.remedy("findmnt --real    # choose a directory on one of these"))
}

/// Reports file systems that pass requests on to something else.
pub(super) fn kind_of_file_system(facts: &Facts) -> Option<Said> {
    let fs = facts.file_system.as_ref()?;
    let kind = fs.kind.as_str();
    let what = match kind {
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "lustre" | "afs"
        | "glusterfs" => {
            "the data is on a server or a host: its caches, its network and its other clients affect every result, and no block device counts the bytes"
        }
        "zfs" => "zfs has its own cache, which dropping the page cache does not empty",
        _ if kind.starts_with("fuse") => {
            "requests pass through a program in user space, which may cache, reorder or serialise them"
        }
        _ => return None,
    };
    Some(worth_knowing(format!("{kind}: {what}")))
}

/// Reports mount options that change results.
pub(super) fn mount_options(facts: &Facts) -> Vec<Said> {
    const KNOWN: [(&str, &str); 7] = table! {
        ("sync", "every write is synchronous, whatever the experiment asks for");
        ("nobarrier", "fsync does not flush the device's cache: synced writes are fast but not durable");
        ("barrier=0", "fsync does not flush the device's cache: synced writes are fast but not durable");
        ("data=journal", "data is written twice, and O_DIRECT goes through the page cache");
        ("dax", "files bypass the page cache: hot and cold are the same");
        ("dax=always", "files bypass the page cache: hot and cold are the same");
        ("discard", "the file system trims deleted files at once, which can disturb the next run: pause between runs (--settle 10s)");
    };
    let Some(fs) = &facts.file_system else {
        return Vec::new();
    };
    let options: Vec<&str> = fs.mount_options.split(',').collect();
    KNOWN
        .iter()
        .filter(|(option, _)| options.contains(option))
        .map(|(option, meaning)| worth_knowing(format!("mounted with {option}: {meaning}")))
        .collect()
}

/// Reports too little space for the scratch file, and a nearly full file system.
pub(super) fn space(facts: &Facts) -> Option<Said> {
    let space = facts.space.filter(|space| space.total > 0)?;
    let share = space.free as f64 / space.total as f64;
    let free = format!(
        "{} of {} are free ({})",
        format_bytes(space.free as f64),
        format_bytes(space.total as f64),
        format_percent(share)
    );
    let makes_files = facts.place.kind == TargetKind::Scratch;
    let finding = if makes_files && space.free < facts.region_bytes {
        let wanted = format_bytes(facts.region_bytes as f64);
        worth_knowing(format!("{free}: less than the {wanted} that the default experiments use; they use a smaller region"))
        .remedy(format!("du -xhd1 {}    # see what takes the space", mount_point(facts)))
    } else if share < FREE_SHARE_LOW {
        worth_knowing(format!("{free}: nearly full file systems break files up, and nearly full drives write more slowly"))
        .remedy(format!("du -xhd1 {}    # see what takes the space", mount_point(facts)))
    } else {
        fine(free)
    };
    Some(finding)
}

fn mount_point(facts: &Facts) -> String {
    let point = facts
        .file_system
        .as_ref()
        .map(|fs| fs.mount_point.display());
    shell_word(&point.map_or_else(|| facts.place.named.clone(), |point| point.to_string()))
}

/// Most layers that are named.
const NAMED_MAX: usize = 6;

/// Names the layers, and the one that is measured.
pub(super) fn layers(facts: &Facts) -> Option<Said> {
    let layering = facts.layering.as_ref()?;
    let measured = measured(facts, layering, layering.holder.as_ref()?);
    Some(worth_knowing(format!("{}; {measured}", made_of(layering))))
}

/// Reports layers of which none is visible.
pub(super) fn out_of_reach(facts: &Facts) -> Option<Said> {
    let layering = facts
        .layering
        .as_ref()
        .filter(|layering| layering.holder.is_none())?;
    let said = worth_knowing(format!(
        "{}; the file that holds the bytes is not visible from here, so its device is unknown: reads and direct writes are judged by the I/O account of this process, buffered writes cannot be judged, and other traffic on the device is not detected",
        made_of(layering)
    ));
    Some(said.remedy("findmnt --real    # a volume that is mounted into the container has a device that is known"))
}

fn made_of(layering: &Layering) -> String {
    match &layering.layers {
        Some(layers) => format!("overlay of {}", list(layers)),
        None => "overlay of layers that cannot be seen from here".to_owned(),
    }
}

fn list(layers: &Layers) -> String {
    let upper = layers
        .upper
        .as_ref()
        .map(|upper| format!("{} (upper)", upper.display()));
    let lower = layers
        .lower
        .iter()
        .map(|lower| format!("{} (lower)", lower.display()));
    let mut names: Vec<String> = upper.into_iter().chain(lower).collect();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

fn measured(facts: &Facts, layering: &Layering, holder: &Path) -> String {
    match facts.place.kind {
        TargetKind::Scratch => {
            "scratch files are in the upper layer; an existing file of a lower layer is read there, maybe from another device".to_owned()
        }
        _ if is_lower(layering, holder) => format!(
            "this file is read from {}, and copied into the upper layer when it is opened for writing",
            holder.display()
        ),
        _ => format!("this file is {}", holder.display()),
    }
}

fn is_lower(layering: &Layering, holder: &Path) -> bool {
    let upper = layering.layers.as_ref().map(|layers| &layers.upper);
    match upper {
        Some(Some(upper)) => upper.is_absolute() && !holder.starts_with(upper),
        Some(None) | None => false,
    }
}

/// Largest cache of common disks and drives, bytes; RAID adapters have larger ones.
const DEVICE_CACHE: u64 = 256 << 20;

fn is_storage(facts: &Facts) -> bool {
    !facts.place.is_memory && facts.place.kind != TargetKind::CharDevice
}

/// Bytes that the default experiments use here, at most the size of the target.
fn region(facts: &Facts) -> u64 {
    facts
        .place
        .bytes
        .map_or(facts.region_bytes, |bytes| facts.region_bytes.min(bytes))
}

/// First of the disks at the bottom of the stack.
fn bottom(facts: &Facts) -> Option<&Device> {
    let disks = facts.device.as_ref()?.stack();
    disks.into_iter().find(|device| device.below.is_empty())
}

/// Reports the page cache.
pub(super) fn memory(facts: &Facts) -> Option<Said> {
    let memory = facts.memory_bytes.filter(|_| is_storage(facts))?;
    let memory = facts
        .cgroup
        .memory_bytes
        .map_or(memory, |limit| limit.min(memory));
    let region = region(facts);
    if region == 0 {
        return None;
    }
    let (small, large) = (format_bytes(region as f64), format_bytes(memory as f64));
    let is_passed = !matches!(facts.direct, Some(Direct::Refused(_)));
    Some(if region > memory {
        fine(format!(
            "the region of the default experiments ({small}) is larger than memory ({large})"
        ))
    } else if is_passed {
        fine(format!(
            "the region of the default experiments ({small}) fits into memory ({large}); direct I/O bypasses the page cache"
        ))
    } else {
        worth_knowing(format!(
            "the region of the default experiments ({small}) fits into memory ({large}); without direct I/O, iolab has to drop the page cache before each trial"
        ))
    })
}

/// Reports the cache of the device itself.
pub(super) fn of_device(facts: &Facts) -> Option<Said> {
    let region = region(facts);
    let is_real = |disk: &Device| disk.backing.is_none() && !disk.transport.is_virtual();
    if !bottom(facts).is_some_and(is_real)
        || !is_storage(facts)
        || region == 0
        || region > DEVICE_CACHE
    {
        return None;
    }
    Some(worth_knowing(format!(
        "the region is only {}: a device's own cache of up to {} may hold all of it",
        format_bytes(region as f64),
        format_bytes(DEVICE_CACHE as f64)
    )))
}

/// Reports a possible cache of the host, which the guest cannot see or drop.
pub(super) fn of_host(facts: &Facts) -> Option<Said> {
    if facts.is_virtual != Some(true) || !is_storage(facts) {
        return None;
    }
    let disk = bottom(facts)?;
    if disk.transport.is_memory() || disk.backing.is_some() {
        return None;
    }
    let machine = facts
        .machine
        .as_ref()
        .map_or(String::new(), |name| format!(" ({name})"));
    Some(worth_knowing(format!(
        "{} belongs to a virtual machine{machine}: the host may cache, limit or share it, and this guest cannot see that; a region several times the host's memory excludes the host's cache",
        disk.disk
    )))
}
