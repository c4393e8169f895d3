//! A block device as sysfs describes it, with all devices that it lies on.
//! Sources: Documentation/ABI/stable/sysfs-block and Documentation/block/queue-sysfs.rst of Linux.

use std::fs;
use std::path::{Path, PathBuf};

use iolab_storage::sysfs;
use iolab_storage::{device_under, lies_in_memory};
use iolab_workload::counters::FlushCounter;

use crate::device_link::Transport;
use crate::device_link::{self, DeviceLink};
use crate::pseudo_files::{chosen, text_of};

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
        Some(read(sys, &folder_of(sys, (major, minor))?, DEPTH_MAX))
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

fn folder_of(sys: &Path, (major, minor): (u32, u32)) -> Option<PathBuf> {
    fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}"))).ok()
}

/// Folder of the disk that a device is a partition of, or its own folder.
fn disk_of(folder: &Path) -> &Path {
    match folder.join("partition").exists() {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    }
}

fn read(sys: &Path, folder: &Path, depth: u32) -> Device {
    let disk = disk_of(folder);
    let number = |file: &str| sysfs::value(&disk.join(file));
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
        link: device_link::read(disk, transport),
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
pub(crate) fn temperature_input(sys: &Path, number: (u32, u32)) -> Option<PathBuf> {
    let folder = folder_of(sys, number)?;
    Some(sensor(disk_of(&folder))?.join("temp1_input"))
}

/// Folder of a disk's sensor. For a disk with several paths, the first controller that has a sensor.
fn sensor(disk: &Path) -> Option<PathBuf> {
    let controllers = sysfs::nvme_controllers(disk).into_iter();
    let mut folders = controllers.flat_map(|folder| [folder.join("hwmon"), folder]);
    folders.find_map(|folder| {
        let entries = fs::read_dir(folder).ok()?;
        let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
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
            .and_then(|number| folder_of(sys, number))
            .into_iter()
            .collect();
    }
    // A partition has no slaves of its own: it is a part of its disk, which may have some.
    let lists = [folder.join("slaves"), disk.join("slaves")];
    let Some(entries) = lists.iter().find_map(|list| fs::read_dir(list).ok()) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| fs::canonicalize(entry.ok()?.path()).ok())
        .take(BELOW_MAX)
        .collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thermometer::Thermometer;
    use needs::Tree;

    /// A fake machine: an NVMe disk with a partition, LUKS on it, and a loop device elsewhere.
    fn machine() -> Tree {
        let tree = Tree::empty();
        let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
        tree.files(
            nvme,
            &[
                ("dev", "259:0"),
                ("size", "2000409264"),
                ("queue/rotational", "0"),
                ("queue/write_cache", "write back"),
                ("queue/scheduler", "[none] mq-deadline kyber"),
                ("queue/max_sectors_kb", "512"),
                ("queue/read_ahead_kb", "128"),
                ("queue/logical_block_size", "512"),
                ("queue/physical_block_size", "4096"),
                ("queue/optimal_io_size", "0"),
                ("queue/iostats", "1"),
                ("device/model", "Samsung SSD 990 PRO 1TB"),
                ("device/transport", "pcie"),
                ("device/hwmon3/temp1_input", "45850"),
                ("device/hwmon3/temp1_max", "81850"),
                ("nvme0n1p2/partition", "2"),
                ("nvme0n1p2/alignment_offset", "0"),
            ],
        );
        let mapper = "devices/virtual/block/dm-0";
        tree.files(mapper, &[("dm/uuid", "CRYPT-LUKS2-12ab-root")]);
        tree.link(
            &format!("{mapper}/slaves/nvme0n1p2"),
            &format!("{nvme}/nvme0n1p2"),
        );
        let looped = "devices/virtual/block/loop7";
        tree.files(
            looped,
            &[("loop/backing_file", "/images/a.img"), ("loop/dio", "0")],
        );
        tree.link("dev/block/259:2", &format!("{nvme}/nvme0n1p2"));
        tree.link("dev/block/253:0", mapper);
        tree.link("dev/block/7:7", looped);
        tree
    }

    #[test]
    fn a_partition_has_the_sensor_of_its_disk() {
        let tree = machine();
        let of = |number| Thermometer::of(tree.path(), [number]).read();
        assert_eq!(of((259, 2)), Some(45_850));
        assert_eq!([of((253, 0)), of((7, 7)), of((8, 0))], [None; 3]);
        // A disk with several paths: a controller has the sensor, its own folder none.
        let head = "devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1";
        let paths = "devices/virtual/nvme-subsystem/nvme-subsys1";
        tree.files(head, &[("dev", "259:9")]);
        tree.files(paths, &[("nvme2/hwmon5/temp1_input", "38850")]);
        tree.files(paths, &[("nvme3/transport", "tcp")]);
        tree.link(&format!("{head}/device"), paths);
        tree.link("dev/block/259:9", head);
        assert_eq!(of((259, 9)), Some(38_850));
        // The hottest of several disks; the sensor of a removed disk has no reading.
        let both = Thermometer::of(tree.path(), [(259, 0), (259, 2), (7, 7)]);
        assert_eq!((both.read(), both.has_sensors()), (Some(45_850), true));
        let none = Thermometer::of(tree.path(), [(7, 7)]);
        assert_eq!((none.read(), none.has_sensors()), (None, false));
    }

    #[test]
    fn a_partition_is_described_by_its_disk() {
        let tree = machine();
        let device = Device::read(tree.path(), (259, 2)).expect("there");
        assert_eq!((&*device.name, &*device.disk), ("nvme0n1p2", "nvme0n1"));
        assert_eq!(device.number, Some((259, 0)));
        assert_eq!(device.transport, Transport::Nvme);
        assert_eq!(device.bytes, Some(2_000_409_264 * 512));
        assert_eq!(device.rotational, Some(false));
        assert_eq!(device.scheduler.as_deref(), Some("none"));
        assert_eq!(device.request_max_bytes, Some(512 << 10));
        assert_eq!(device.optimal_io_bytes, None);
        assert_eq!(device.misaligned_bytes, Some(0));
        assert_eq!(device.temperature, Some((45.85, 81.85)));
        assert!(device.below.is_empty() && device.layer.is_none());
    }

    #[test]
    fn a_switch_that_has_no_effect_says_nothing() {
        let tree = Tree::empty();
        for (number, name, queues) in [(1, "sda", "mq/0/nr_tags"), (2, "zram0", "comp_algorithm")] {
            let folder = format!("devices/virtual/block/{name}");
            tree.files(&folder, &[("queue/iostats", "0"), (queues, "1")]);
            tree.link(&format!("dev/block/9:{number}"), &folder);
        }
        let counts = |number| {
            Device::read(tree.path(), (9, number))
                .expect("there")
                .counts_traffic
        };
        assert_eq!((counts(1), counts(2)), (Some(false), None));
    }

    #[test]
    fn stacks_are_followed_down() {
        let tree = machine();
        let device = Device::read(tree.path(), (253, 0)).expect("there");
        assert_eq!(device.transport, Transport::DeviceMapper);
        assert_eq!(device.chain(), "dm-0 (crypt) on nvme0n1p2");
        let names: Vec<_> = device.stack().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "nvme0n1p2"]);
    }

    #[test]
    fn flushes_are_looked_for_where_they_are_counted() {
        let tree = machine();
        let of = |number| {
            Device::read(tree.path(), number)
                .expect("there")
                .flush_counter()
        };
        // Without a queue nothing counts flushes, below or above.
        assert_eq!([(259, 2), (253, 0), (7, 7)].map(of), [None; 3]);
        let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
        tree.files(nvme, &[("mq/0/nr_tags", "1023")]);
        let looped = "devices/virtual/block/loop7";
        tree.files(looped, &[("mq/0/nr_tags", "128"), ("queue/iostats", "1")]);
        // A partition uses its disk's counter, encryption announces the cache of the disk below, a loop device
        // has its own.
        let disks = Some(FlushCounter::Disks);
        assert_eq!([(259, 2), (253, 0)].map(of), [disks, disks]);
        assert_eq!(of((7, 7)), Some(FlushCounter::Device));
        tree.link("dev/block/259:0", nvme);
        assert_eq!(of((259, 0)), Some(FlushCounter::Device));
    }

    #[test]
    fn a_circle_ends() {
        let tree = machine();
        tree.link(
            "devices/virtual/block/md9/slaves/x",
            "devices/virtual/block/md9",
        );
        tree.link("dev/block/9:9", "devices/virtual/block/md9");
        let device = Device::read(tree.path(), (9, 9)).expect("there");
        assert_eq!(device.stack().len(), DEPTH_MAX as usize + 1);
    }

    #[test]
    fn loop_devices_name_their_file() {
        let tree = machine();
        let device = Device::read(tree.path(), (7, 7)).expect("there");
        let backing = device.backing.as_ref().expect("told");
        assert_eq!(
            (&*backing.file, backing.direct),
            ("/images/a.img", Some(false))
        );
        assert!(device.below.is_empty(), "no such file");
        assert_eq!(Device::read(tree.path(), (1, 1)), None);
    }

    #[test]
    fn loop_device_lies_on_its_files_device() {
        let tree = machine();
        let file = tree.path().join("a.img");
        fs::write(&file, "x").expect("written");
        let Some((major, minor)) = device_under(&file) else {
            return needs::skip(needs::Need::BlockDevice, file.display());
        };
        tree.files(
            "devices/virtual/block/loop8",
            &[("loop/backing_file", &file.display().to_string())],
        );
        tree.link("dev/block/7:8", "devices/virtual/block/loop8");
        let nvme = "devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
        tree.link(&format!("dev/block/{major}:{minor}"), nvme);
        let device = Device::read(tree.path(), (7, 8)).expect("there");
        assert_eq!(device.chain(), "loop8 (a file) on nvme0n1");
    }

    #[test]
    fn controllers_tell_the_transport_of_a_namespace() {
        for (place, text, expected) in [
            ("device/transport", "pcie", Transport::Nvme),
            ("device/transport", "tcp", Transport::NvmeFabric),
            // Several paths, as Linux's own multipath layer shows them.
            ("device/nvme4/transport", "pcie", Transport::Nvme),
            ("device/nvme4/transport", "rdma", Transport::NvmeFabric),
        ] {
            let disk = Tree::empty();
            disk.files("", &[(place, text)]);
            let found = transport(disk.path(), "nvme0n1");
            assert_eq!(found, expected, "{place} {text}");
        }
    }

    #[test]
    fn the_way_to_the_disk_tells_the_transport() {
        use Transport::{Other, Raid, Sata, Scsi, Usb, Virtio, Zram};
        for (path, expected) in [
            ("pci0/usb2/2-1/host4/target4:0:0/block/sdb", Usb),
            ("pci0/ata1/host0/target0:0:0/block/sda", Sata),
            ("pci0/virtio2/host2/target2:0:0/block/sda", Virtio),
            ("pci0/host2/port-2:0/block/sda", Scsi),
            ("platform/block/odd", Other),
            ("virtual/block/zram0", Zram),
            ("virtual/block/md127", Raid),
        ] {
            let path = Path::new("/sys/devices").join(path);
            let name = path.file_name().and_then(|name| name.to_str());
            assert_eq!(transport(&path, name.expect("text")), expected, "{path:?}");
        }
    }
}
