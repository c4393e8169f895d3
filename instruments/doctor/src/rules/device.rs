//! The block device below the target.

use super::{Facts, Said, fine, must_fix, shell_word, worth_knowing};
use iolab_host::device::{Device, Transport};
use iolab_workload::units::{format_bytes, significant};

/// Names the device and its layers.
pub(super) fn chain(facts: &Facts) -> Option<Said> {
    let device = facts.device.as_ref();
    let device = device.filter(|device| !device.below.is_empty())?;
    Some(fine(device.chain()))
}

/// Names the disks below the target, and their limits.
pub(super) fn what(facts: &Facts) -> Vec<Said> {
    // Layers have the sizes of the devices below; a loop device has its own.
    let is_end = |device: &Device| device.below.is_empty() || device.backing.is_some();
    each(facts, |device| {
        is_end(device).then(|| fine(description(device)))
    })
}

fn description(device: &Device) -> String {
    let bytes = |bytes: u64| format_bytes(bytes as f64);
    let mut parts = vec![format!("{}: {}", device.name, kind(device))];
    parts.extend(device.model.as_ref().map(|model| format!("model {model}")));
    let blocks = device
        .logical_block_bytes
        .zip(device.physical_block_bytes)
        .map(|(logical, physical)| match logical == physical {
            true => format!("blocks of {logical} bytes"),
            false => format!("blocks of {logical} bytes, {physical} inside"),
        });
    parts.extend(blocks);
    let optimal = device.optimal_io_bytes;
    parts.extend(optimal.map(|size| format!("prefers I/O of {}", bytes(size))));
    let largest = device.request_max_bytes;
    parts.extend(largest.map(|size| format!("requests above {} are split", bytes(size))));
    let queue = device.requests_max;
    parts.extend(queue.map(|count| format!("queues of {count} requests")));
    parts.join("; ")
}

fn kind(device: &Device) -> String {
    let size = device.bytes.map_or(String::new(), |bytes| {
        format!(" of {}", format_bytes(bytes as f64))
    });
    let medium = match (device.transport, device.rotational) {
        (Transport::Sata | Transport::Scsi | Transport::Usb, Some(true)) => " hard disk",
        (
            Transport::Nvme | Transport::Sata | Transport::Scsi | Transport::Usb | Transport::Mmc,
            Some(false),
        ) => " solid-state disk",
        _ => " device",
    };
    format!("{}{medium}{size}", device.transport)
}

/// Findings on each device of the stack.
fn each(facts: &Facts, says: impl Fn(&Device) -> Option<Said>) -> Vec<Said> {
    let stack = facts.device.as_ref().map(Device::stack);
    let stack = stack.unwrap_or_default().into_iter();
    stack.filter_map(says).collect()
}

/// Command that helps when the target is not storage.
const ON_STORAGE: &str = "findmnt --real    # choose a directory on storage";

/// Reports devices that keep their data in memory.
pub(super) fn memory(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let is_so = device.transport.is_memory() || is_file_in_memory(device);
        is_so.then(|| {
            must_fix(format!(
                "{} keeps its data in memory: results show the limits of iolab, not of storage",
                device.name
            ))
            .remedy(ON_STORAGE)
        })
    })
}

/// Whether a device is a loop device over a file in memory, which direct I/O reaches like any other.
fn is_file_in_memory(device: &Device) -> bool {
    let backing = device.backing.as_ref();
    backing.is_some_and(|backing| backing.in_memory)
}

/// Reports loop devices that go through the page cache of their file.
pub(super) fn looped(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let backing = device
            .backing
            .as_ref()
            .filter(|backing| !backing.in_memory)?;
        let whose = format!("{} is the file {}", device.name, backing.file);
        Some(match backing.direct {
            Some(true) => worth_knowing(format!(
                "{whose}, read with direct I/O: results include the file system around it"
            )),
            _ => must_fix(format!(
                "{whose}, read through the page cache of this machine: direct I/O ends there"
            ))
            .remedy(format!("sudo losetup --direct-io=on /dev/{}", device.name)),
        })
    })
}

/// Whether a device is a mapped one that reads as zeros and drops writes.
pub(super) fn stores_nothing(device: &Device) -> bool {
    device.layer.as_deref() == Some("zero") && device.below.is_empty()
}

/// Reports layers that change the cost of a request.
pub(super) fn layers(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        if stores_nothing(device) {
            let what = "stores nothing: it reads as zeros; results show the limits of iolab, not of storage";
            let what = format!("{} {what}", device.name);
            return Some(must_fix(what).remedy(ON_STORAGE));
        }
        let what = match (device.transport, device.layer.as_deref()) {
            (_, Some("crypt")) => "encrypts: part of every request is CPU time",
            (Transport::Raid, _) => {
                "spreads or mirrors: one request may become several, and writes may read first"
            }
            (_, Some("delay")) => "delays every request by its table",
            (_, Some("flakey" | "error" | "dust")) => {
                "fails, drops or corrupts requests by its table: it is made for tests"
            }
            (_, Some("zero")) => "stores nothing in a part of it, which reads as zeros",
            (_, Some("thin")) => {
                "allocates space on the first write to a block: such a write takes longer than the next"
            }
            (_, Some("snapshot" | "snapshot-origin")) => {
                "copies a block before the first write to it: such a write takes longer than the next"
            }
            (_, Some("cache" | "writecache" | "era")) => {
                "keeps part of the data on a faster device: results depend on what lies there"
            }
            (_, Some("mpath" | "multipath")) => "chooses between several paths to the same device",
            (Transport::Network | Transport::NvmeFabric, _) => {
                "is on a network: the server's caches and other traffic affect every result"
            }
            (Transport::Usb, _) => {
                "is attached by USB: the bridge limits throughput and may ignore flushes"
            }
            (Transport::DeviceMapper, None) => "is a device-mapper layer of unknown function",
            _ => return None,
        };
        Some(worth_knowing(format!("{} {what}", device.name)))
    })
}

/// Warns of a device without counters: the source of bytes cannot be verified there.
pub(super) fn traffic_is_counted(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let is_so = device.counts_traffic == Some(false);
        is_so.then(|| {
            must_fix(format!("the kernel does not count the traffic of {}: iolab cannot see which bytes reached it", device.disk))
            .remedy(format!("echo 1 | sudo tee /sys/block/{}/queue/iostats", shell_word(&device.disk.replace('/', "!"))))
        })
    })
}

/// Reports the connection, and its data rate.
pub(super) fn link(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let link = device.link.as_ref()?;
        let ceiling = link.ceiling_mb_s.map_or(String::new(), |mb| {
            format!("; the limit is {} MB/s", significant(mb))
        });
        Some(match &link.best {
            None => fine(format!(
                "{} is connected with {}{ceiling}",
                device.disk, link.now
            )),
            Some(best) => worth_knowing(format!(
                "{} is connected with {} although it can do {best}{ceiling}",
                device.disk, link.now
            )),
        })
    })
}

/// Reports schedulers that cost more than a fast device's own time.
pub(super) fn scheduler(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let name = device.scheduler.as_deref()?;
        let is_slow_for = name == "bfq" && device.rotational == Some(false);
        Some(if is_slow_for {
            worth_knowing(format!("the scheduler of {} is bfq, which takes longer per request than a fast device does", device.disk))
            .remedy(format!("echo none | sudo tee /sys/block/{}/queue/scheduler", shell_word(&device.disk.replace('/', "!"))))
        } else {
            fine(format!("the scheduler of {} is {name}", device.disk))
        })
    })
}

/// Reports a cache in the device that loses data when the power fails.
pub(super) fn write_cache(facts: &Facts) -> Vec<Said> {
    // Layers only repeat the properties of the devices below them.
    let is_bottom = |device: &Device| device.below.is_empty() && !stores_nothing(device);
    each(facts, |device| {
        let cache = device.write_cache.as_deref().filter(|_| is_bottom(device));
        let what = match cache? {
            "write back" => {
                "has a volatile write cache: a write is durable after a flush only, as with sync=end or sync=each"
            }
            "write through" => {
                "announces no volatile write cache: writes are durable when they complete, and a flush costs nothing"
            }
            _ => return None,
        };
        Some(fine(format!("{} {what}", device.disk)))
    })
}

/// Reports rotating disks; virtual disks often claim to be one.
pub(super) fn rotation(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        if device.rotational != Some(true) || !device.below.is_empty() || device.backing.is_some() {
            return None;
        }
        Some(
            if device.transport.is_virtual() || facts.is_virtual == Some(true) {
                fine(format!(
                    "{} reports itself as rotational; virtual disks do that regardless of the real device",
                    device.disk
                ))
            } else {
                worth_knowing(format!(
                    "{} is a hard disk: throughput falls towards the inner tracks, and a small region hides most of the seek time",
                    device.disk
                ))
            },
        )
    })
}

/// Reports a partition that does not start at a physical block.
pub(super) fn alignment(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let bytes = device.misaligned_bytes.filter(|bytes| *bytes > 0)?;
        Some(worth_knowing(format!(
            "{} is misaligned by {bytes} bytes to the device's physical blocks: small writes touch two blocks",
            device.name
        )))
    })
}

/// Reports a device at its thermal limit.
pub(super) fn heat(facts: &Facts) -> Vec<Said> {
    each(facts, |device| {
        let (now, limit) = device.temperature.filter(|(_, limit)| *limit > 0.0)?;
        let text = format!(
            "{} is at {now:.0} degrees Celsius, its limit is {limit:.0}",
            device.disk
        );
        Some(if now >= limit {
            worth_knowing(format!("{text}: it may throttle; let it cool first"))
        } else {
            fine(text)
        })
    })
}
