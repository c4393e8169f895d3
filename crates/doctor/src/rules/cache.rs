//! Caches that may stand in for the device: of this machine, of the device, of a host below.

use iolab_storage::TargetKind;

use super::super::facts::Direct;
use super::{Facts, Said, fine, worth_knowing};
use iolab_host::device::Device;
use iolab_workload::quantity::format_bytes;

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
