//! A block device as sysfs describes it, with all devices that it lies on.
//! Sources: Documentation/ABI/stable/sysfs-block and Documentation/block/queue-sysfs.rst of Linux.
//!
//! Temperature of drives, by their sensors (hwmon: drivers `nvme` and `drivetemp`).
//!
//! Connection of a disk to the machine, and the data rate that it allows.

#[cfg(test)]
mod tests;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{chosen, text_of};
use iolab_storage::{device_under, lies_in_memory, sysfs};
use iolab_workload::counters::FlushCounter;
use iolab_workload::named;

/// Deepest stack that is followed: deeper ones do not occur, but a cycle would.
const DEPTH_MAX: u32 = 8;

/// Most devices below one device that are examined.
const BELOW_MAX: usize = 64;

/// The file that a loop device stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    /// Path of the file.
    pub file: String,
    /// Whether the loop device bypasses the page cache; `None` where the kernel does not say.
    pub direct: Option<bool>,
    /// Whether the file is in memory, so that no device has its bytes.
    pub in_memory: bool,
}

/// Names that a device reports for itself, word for word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// Vendor: a name for SCSI, a number for PCI and virtio.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// WWID, UUID of the device mapper or serial number, whichever the kernel names first.
    pub id: Option<String>,
}

/// A block device. Attributes that sysfs does not have are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    /// Kernel name: `nvme0n1p2`.
    pub name: String,
    /// Number of the whole disk: major, minor.
    pub number: Option<(u32, u32)>,
    /// Name of the whole disk, `nvme0n1`; the same as `name` for a device that is not a partition.
    pub disk: String,
    /// Name for people: vendor and model, where both are words.
    pub model: Option<String>,
    /// Names that the device reports for itself.
    pub identity: Identity,
    /// Attachment of the device.
    pub transport: Transport,
    /// Size of the disk, bytes.
    pub bytes: Option<u64>,
    /// Whether its medium can be removed.
    pub removable: Option<bool>,
    /// Whether the device is a rotating disk.
    pub rotational: Option<bool>,
    /// Write cache mode: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Read-ahead of buffered reads, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Depth of a request queue, requests.
    pub requests_max: Option<u64>,
    /// Request queues of the disk; 0 where its driver takes requests without one.
    pub queues: usize,
    /// Most memory segments in one request.
    pub segments_max: Option<u64>,
    /// Largest request that the kernel sends in one piece, bytes.
    pub request_max_bytes: Option<u64>,
    /// Smallest addressable unit, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest unit that is written without a read first, bytes.
    pub physical_block_bytes: Option<u64>,
    /// Smallest I/O size that does not cost more than its bytes, bytes.
    pub minimum_io_bytes: Option<u64>,
    /// Preferred I/O size, bytes; `None` where the device does not state one.
    pub optimal_io_bytes: Option<u64>,
    /// Offset of the device's start from its own physical blocks, bytes.
    pub misaligned_bytes: Option<u64>,
    /// Whether the kernel counts its traffic.
    pub counts_traffic: Option<bool>,
    /// Whether the kernel counts flushes: it does where it queues requests, not where a driver takes bios
    /// directly.
    pub counts_flushes: bool,
    /// Connection of the device to the machine.
    pub link: Option<DeviceLink>,
    /// Temperature, and the limit at which the device slows down, degrees Celsius.
    pub temperature: Option<(f64, f64)>,
    /// Kind of layer: `crypt`, `lvm`, `thin`, `mpath`, `raid1`.
    pub layer: Option<String>,
    /// The file that a loop device stands for.
    pub backing: Option<Backing>,
    /// Devices that it is made of.
    pub below: Vec<Device>,
}

impl Device {
    /// Reads the description of a device from `sys` (`/sys`); `None` where the device is missing there.
    pub fn read(sys: &Path, (major, minor): (u32, u32)) -> Option<Self> {
        Some(read(
            sys,
            &sysfs::folder_of(sys, (major, minor))?,
            DEPTH_MAX,
        ))
    }

    /// The device and all devices below it, top first.
    pub fn stack(&self) -> Vec<&Device> {
        let mut all = vec![self];
        for below in &self.below {
            all.extend(below.stack());
        }
        all
    }

    /// Counter of the flushes of the write cache that this device announces; `None` where nothing counts them.
    /// The flushes of a partition are in the counters of its disk. A layer announces the cache of the devices
    /// below it, and a loop device a cache of its own.
    pub fn flush_counter(&self) -> Option<FlushCounter> {
        let is_own = self.below.is_empty() || self.backing.is_some();
        let mut stack = self.stack().into_iter();
        let mut ends = self.stack().into_iter().filter(|end| end.below.is_empty());
        match is_own {
            true if !self.counts_flushes => None,
            true if self.name == self.disk => Some(FlushCounter::Device),
            // A partition's counters have no flushes. Its disk's counters are the bottom's, unless the disk
            // lies on a file.
            true => self.backing.is_none().then_some(FlushCounter::Disks),
            false => (stack.all(|layer| layer.backing.is_none())
                && ends.all(|end| end.counts_flushes))
            .then_some(FlushCounter::Disks),
        }
    }

    /// Names of the device and the devices below it: `dm-0 (crypt) on nvme0n1p2`, to the bottom.
    pub fn chain(&self) -> String {
        let kind = self.backing.as_ref().map(|_| "a file");
        let own = match self.layer.as_deref().or(kind) {
            Some(kind) => format!("{} ({kind})", self.name),
            None => self.name.clone(),
        };
        let below: Vec<String> = self.below.iter().map(Device::chain).collect();
        match below.as_slice() {
            [] => own,
            [one] => format!("{own} on {one}"),
            several => format!("{own} on [{}]", several.join(", ")),
        }
    }
}

fn read(sys: &Path, folder: &Path, depth: u32) -> Device {
    let disk = sysfs::disk_of(folder);
    let number = |file: &str| sysfs::value(disk.join(file));
    let flag = |file: &str| number(file).map(|value| value != 0);
    let kib = |file: &str| number(file)?.checked_mul(1024);
    let disk_name = sysfs::name_of(disk);
    let transport = transport(disk, &disk_name);
    let backing = backing(disk);
    let has_queue = sysfs::has_requests(disk);
    let identity = Identity {
        vendor: text_of(disk.join("device/vendor")),
        model: text_of(disk.join("device/model")),
        firmware: text_of(disk.join("device/firmware_rev")),
        id: ["device/wwid", "wwid", "dm/uuid", "device/serial", "serial"]
            .into_iter()
            .find_map(|file| text_of(disk.join(file)).filter(|id| !id.trim().is_empty())),
    };
    Device {
        name: sysfs::name_of(folder),
        number: sysfs::device_number(disk),
        model: model(disk, &identity),
        identity,
        transport,
        bytes: number("size").and_then(|sectors| sectors.checked_mul(512)),
        removable: flag("removable"),
        rotational: flag("queue/rotational"),
        write_cache: text_of(disk.join("queue/write_cache")),
        scheduler: text_of(disk.join("queue/scheduler")).map(|text| chosen(&text)),
        read_ahead_bytes: kib("queue/read_ahead_kb"),
        requests_max: number("queue/nr_requests"),
        queues: fs::read_dir(disk.join("mq")).map_or(0, Iterator::count),
        segments_max: number("queue/max_segments"),
        request_max_bytes: kib("queue/max_sectors_kb"),
        logical_block_bytes: number("queue/logical_block_size"),
        physical_block_bytes: number("queue/physical_block_size"),
        minimum_io_bytes: number("queue/minimum_io_size"),
        optimal_io_bytes: number("queue/optimal_io_size").filter(|bytes| *bytes > 0),
        misaligned_bytes: text_of(folder.join("alignment_offset"))
            .and_then(|text| text.parse().ok()),
        counts_traffic: sysfs::counts_traffic(disk),
        counts_flushes: has_queue && flag("queue/iostats") == Some(true),
        link: read_link(disk, transport),
        temperature: temperature(disk),
        layer: layer(disk),
        below: match depth {
            0 => Vec::new(),
            _ => below(sys, folder, disk, backing.as_ref())
                .iter()
                .map(|folder| read(sys, folder, depth - 1))
                .collect(),
        },
        backing,
        disk: disk_name,
    }
}

fn model(disk: &Path, identity: &Identity) -> Option<String> {
    let vendor = identity.vendor.as_ref().filter(|vendor| {
        // SCSI vendors are names; PCI and virtio vendors are numbers.
        !vendor.starts_with("0x") && vendor.as_str() != "ATA"
    });
    let model = identity.model.clone();
    let model = model.or_else(|| text_of(disk.join("device/name")))?;
    Some(match vendor {
        Some(vendor) => format!("{vendor} {model}"),
        None => model,
    })
}

/// Transport by the disk's place in the device tree, or by its name where it has no place.
fn transport(disk: &Path, name: &str) -> Transport {
    const BY_NAME: [(&str, Transport); 12] = [
        ("loop", Transport::Loop),
        ("zram", Transport::Zram),
        ("ram", Transport::RamDisk),
        ("dm-", Transport::DeviceMapper),
        ("md", Transport::Raid),
        ("nbd", Transport::Network),
        ("rbd", Transport::Network),
        ("drbd", Transport::Network),
        ("pmem", Transport::Pmem),
        ("mmcblk", Transport::Mmc),
        ("xvd", Transport::Xen),
        ("vd", Transport::Virtio),
    ];
    if name.starts_with("nvme") {
        let mut controllers = sysfs::nvme_controllers(disk).into_iter();
        let is_fabric = controllers.any(|controller| {
            text_of(controller.join("transport")).is_some_and(|text| text != "pcie")
        });
        return match is_fabric {
            true => Transport::NvmeFabric,
            false => Transport::Nvme,
        };
    }
    if let Some((_, transport)) = BY_NAME.iter().find(|(start, _)| name.starts_with(start)) {
        return *transport;
    }
    let has = |start: &str| {
        disk.components()
            .any(|part| part.as_os_str().to_string_lossy().starts_with(start))
    };
    // USB and virtio adapters carry SCSI, so the bus that they hang on is tested first.
    if has("usb") {
        Transport::Usb
    } else if has("virtio") {
        Transport::Virtio
    } else if has("ata") {
        Transport::Sata
    } else if has("host") || has("target") {
        Transport::Scsi
    } else {
        Transport::Other
    }
}

/// Kind of layer. Device mapper: from the table, or the first part of the UUID (`CRYPT-LUKS2-...`). Software
/// RAID: the level.
fn layer(disk: &Path) -> Option<String> {
    let maker = text_of(disk.join("dm/uuid")).map(|uuid| {
        let kind = uuid.split('-').next().unwrap_or(&uuid);
        kind.to_ascii_lowercase()
    });
    // A volume may be thin or a snapshot, and a device without a UUID can be anything.
    let kinds = match maker.as_deref() {
        None | Some("" | "lvm") => sysfs::device_number(disk).map(iolab_storage::mapped_kinds),
        Some(_) => None,
    };
    let special = kinds.iter().flatten().find(|kind| *kind != "linear");
    let plain = || kinds.iter().flatten().next().cloned();
    let maker = maker.filter(|maker| !maker.is_empty());
    special
        .cloned()
        .or(maker)
        .or_else(plain)
        .or_else(|| text_of(disk.join("md/level")))
}

fn backing(disk: &Path) -> Option<Backing> {
    let file = sysfs::backing_file(disk)?;
    Some(Backing {
        in_memory: lies_in_memory(&file),
        file: file.to_string_lossy().into_owned(),
        direct: text_of(disk.join("loop/dio")).map(|text| text == "1"),
    })
}

/// File with the temperature of a device's disk, from its sensor (hwmon); `None` without a sensor.
fn temperature_input(sys: &Path, number: (u32, u32)) -> Option<PathBuf> {
    let folder = sysfs::folder_of(sys, number)?;
    Some(sensor(sysfs::disk_of(&folder))?.join("temp1_input"))
}

/// Folder of a disk's sensor. For a disk with several paths, the first controller that has a sensor.
fn sensor(disk: &Path) -> Option<PathBuf> {
    let controllers = sysfs::nvme_controllers(disk).into_iter();
    let mut folders = controllers.flat_map(|folder| [folder.join("hwmon"), folder]);
    folders.find_map(|folder| {
        let mut paths = sysfs::paths_in(folder).into_iter();
        paths.find(|path| {
            sysfs::name_of(path).starts_with("hwmon") && path.join("temp1_input").exists()
        })
    })
}

/// Temperature of the disk and its limit by the sensor, degrees Celsius.
fn temperature(disk: &Path) -> Option<(f64, f64)> {
    let sensor = sensor(disk)?;
    let degrees = |file: &str| {
        let thousandths: f64 = text_of(sensor.join(file))?.parse().ok()?;
        Some(thousandths / 1000.0)
    };
    Some((degrees("temp1_input")?, degrees("temp1_max")?))
}

/// Folders in sysfs of the devices directly below: a layer's members, or the device that a loop device's file
/// lies on.
fn below(sys: &Path, folder: &Path, disk: &Path, backing: Option<&Backing>) -> Vec<PathBuf> {
    if let Some(backing) = backing {
        let number = device_under(Path::new(&backing.file));
        return number
            .and_then(|number| sysfs::folder_of(sys, number))
            .into_iter()
            .collect();
    }
    // A partition has no slaves of its own: it is a part of its disk, which may have some.
    let lists = [folder.join("slaves"), disk.join("slaves")];
    let list = lists.into_iter().find(|list| list.exists());
    let members = list.map(sysfs::paths_in).unwrap_or_default();
    let mut folders: Vec<PathBuf> = members
        .into_iter()
        .filter_map(|member| fs::canonicalize(member).ok())
        .take(BELOW_MAX)
        .collect();
    folders.sort();
    folders
}

/// Temperature sensors of some disks, found once. A reading makes the kernel ask the drive (SMART log or SCT
/// status), NVMe drives at most once a second.
#[derive(Debug, Clone, Default)]
pub struct Thermometer {
    inputs: Vec<PathBuf>,
}

impl Thermometer {
    /// Sensors of these disks, as far as they have any.
    pub(crate) fn of(sys: &Path, disks: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let inputs = disks.into_iter();
        let mut inputs: Vec<PathBuf> = inputs
            .filter_map(|disk| temperature_input(sys, disk))
            .collect();
        inputs.sort_unstable();
        inputs.dedup();
        Self { inputs }
    }

    /// Whether there is a sensor.
    pub fn has_sensors(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Temperature of the hottest disk, thousandths of a degree Celsius; `None` without a sensor, and below
    /// zero.
    pub fn read(&self) -> Option<u64> {
        self.inputs.iter().filter_map(sysfs::value).max()
    }
}

/// A connection: its present and its best speed.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceLink {
    /// Present speed: `16.0 GT/s x4`, `6.0 Gbps`.
    pub now: String,
    /// Best speed, if it is known and above the present one.
    pub best: Option<String>,
    /// Present data rate without protocol overhead, MB/s; `None` where the speed is unknown.
    pub ceiling_mb_s: Option<f64>,
}

/// Connection of a disk, by its folder in sysfs.
pub fn read_link(disk: &Path, transport: Transport) -> Option<DeviceLink> {
    match transport {
        Transport::Nvme => pci(disk),
        Transport::Sata => sata(disk),
        _ => None,
    }
}

/// PCI link of the nearest PCI device above the disk (Documentation/ABI/testing/sysfs-bus-pci).
fn pci(disk: &Path) -> Option<DeviceLink> {
    let folder = disk
        .ancestors()
        .find(|folder| folder.join("current_link_speed").exists())?;
    let text = |file: &str| text_of(folder.join(file));
    let (speed, width) = (text("current_link_speed")?, text("current_link_width")?);
    let mb_s = pci_mb_s(&speed, &width)?;
    let words = |speed: &str, width: &str| format!("{} x{width}", speed.trim_end_matches(" PCIe"));
    let best = text("max_link_speed").zip(text("max_link_width"));
    let best = best.filter(|(speed, width)| pci_mb_s(speed, width).is_some_and(|of| of > mb_s));
    Some(DeviceLink {
        now: words(&speed, &width),
        best: best.map(|(speed, width)| words(&speed, &width)),
        ceiling_mb_s: Some(mb_s),
    })
}

/// Data that a link carries, MB/s. That of a virtual device has no lanes: `Unknown`, x0 or x63.
fn pci_mb_s(speed: &str, width: &str) -> Option<f64> {
    let lanes = width.parse().ok();
    let lanes = lanes.filter(|lanes: &u32| (1..=32).contains(lanes))?;
    Some(pci_lane_mb_s(speed)? * f64::from(lanes))
}

/// Data that one lane carries, MB/s: 8 bits in 10 up to 5 GT/s, 128 in 130 up to 32 GT/s, 236 bytes in 256 at
/// 64 GT/s. Source: PCI Express Base Specification 5.0, 4.2.1 and 4.2.2; 6.0, 4.2.3.
fn pci_lane_mb_s(speed: &str) -> Option<f64> {
    let gigatransfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let share = match gigatransfers {
        g if g <= 5.0 => 8.0 / 10.0,
        g if g <= 32.0 => 128.0 / 130.0,
        _ => 236.0 / 256.0,
    };
    Some(gigatransfers * 1000.0 / 8.0 * share)
}

/// SATA link of the port above the disk; 8 bits in 10 are data (Serial ATA 3.1, 7.2).
fn sata(disk: &Path) -> Option<DeviceLink> {
    let (port, number) = disk.ancestors().find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        let number = name.strip_prefix("ata")?;
        number.parse::<u32>().ok().map(|number| (folder, number))
    })?;
    let folder = port.join(format!("link{number}/ata_link/link{number}"));
    let now = text_of(folder.join("sata_spd"))?;
    let speed: f64 = now.split_whitespace().next()?.parse().ok()?;
    // `hw_sata_spd_limit` is the limit of the port, which the disk may not reach.
    Some(DeviceLink {
        now,
        best: None,
        ceiling_mb_s: Some(speed * 100.0),
    })
}

named! {
    /// Attachment of a device, or the mechanism that stands in for a device.
    #[derive(Default)]
    pub enum Transport: "transport" {
        /// NVMe on PCI Express.
        Nvme = "nvme",
        /// NVMe over a network.
        NvmeFabric = "nvme-fabric",
        /// SATA or ATA.
        Sata = "sata",
        /// USB.
        Usb = "usb",
        /// SCSI of another kind: SAS, Fibre Channel, iSCSI, a virtual adapter.
        Scsi = "scsi",
        /// A memory card or soldered flash.
        Mmc = "mmc",
        /// Virtual, through virtio.
        Virtio = "virtio",
        /// Virtual, through Xen.
        Xen = "xen",
        /// Persistent memory.
        Pmem = "pmem",
        /// File used as a device.
        Loop = "loop",
        /// Compressed memory.
        Zram = "zram",
        /// Memory.
        RamDisk = "ram-disk",
        /// A server on the network: nbd, rbd, DRBD.
        Network = "network",
        /// Device mapper: LVM, encryption, multipath.
        DeviceMapper = "device-mapper",
        /// Software RAID.
        Raid = "raid",
        /// Anything else.
        #[default]
        Other = "other",
    }
}

impl Transport {
    /// Whether the device keeps its data in memory, and so is not storage.
    pub fn is_memory(self) -> bool {
        matches!(self, Transport::Zram | Transport::RamDisk)
    }

    /// Whether a hypervisor provides the device.
    pub fn is_virtual(self) -> bool {
        matches!(self, Transport::Virtio | Transport::Xen)
    }
}
