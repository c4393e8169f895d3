//! Traffic of all block devices of the machine: a program's own devices are known only afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iolab_storage::{Stack, sysfs};
use iolab_workload::counters::{DeviceStat, DeviceWaits};
use iolab_workload::witness::{DiskTraffic, InFlight, ObservedDevice, TracedDisk};
use rustix::fs::{major, minor};

use super::{Number, group};
use crate::counters::{read_device, read_waits};

/// Default read-ahead, bytes.
const READ_AHEAD: u64 = 128 << 10;

/// Counters of all block devices.
#[derive(Debug, Default)]
pub(super) struct AllDevices {
    devices: BTreeMap<Number, Counted>,
}

#[derive(Debug)]
struct Counted {
    name: String,
    stat: DeviceStat,
    waits: Option<DeviceWaits>,
    /// Whether the device is a whole one that lies on no other one.
    is_disk: bool,
    /// Whether the device has a request queue; other devices take bios directly.
    has_requests: bool,
    in_flight: InFlight,
}

impl AllDevices {
    pub(super) fn read() -> Self {
        Self::read_in(Path::new("/sys"))
    }

    fn read_in(sys: &Path) -> Self {
        let entries = std::fs::read_dir(sys.join("dev/block"));
        let entries = entries.into_iter().flatten().flatten();
        let devices = entries.filter_map(|entry| {
            let number = sysfs::parse_number(entry.file_name().to_str()?)?;
            let folder = std::fs::canonicalize(entry.path()).ok()?;
            let is_part = folder.join("partition").exists();
            let below = sysfs::linked_devices(&folder.join("slaves")).unwrap_or_default();
            let counted = Counted {
                name: sysfs::name_of(&folder),
                // Read before the counters: requests that end in between count as in flight.
                in_flight: in_flight(&folder),
                stat: read_device(sys, number)?,
                waits: read_waits(sys, number),
                is_disk: !is_part && below.is_empty(),
                has_requests: sysfs::has_requests(&folder),
            };
            Some((number, counted))
        });
        Self {
            devices: devices.collect(),
        }
    }

    /// Traffic of a device since an earlier reading. For a device that appeared in between, all of its traffic.
    fn traffic(&self, earlier: &Self, number: Number) -> Option<DeviceStat> {
        let now = self.devices.get(&number)?.stat;
        let before = earlier.devices.get(&number).map(|counted| counted.stat);
        Some(now.since(before.unwrap_or_default()))
    }

    /// Requests in flight at this reading; none for a device that was not there.
    fn in_flight(&self, number: &Number) -> InFlight {
        let counted = self.devices.get(number);
        counted.map_or(InFlight::NONE, |counted| counted.in_flight)
    }

    fn waits(&self, earlier: &Self, number: Number) -> Option<DeviceWaits> {
        let before = earlier
            .devices
            .get(&number)
            .and_then(|counted| counted.waits);
        let now = self.devices.get(&number)?.waits?;
        Some(now.since(before.unwrap_or_default()))
    }

    /// Bytes assumed to be fetched per page fault with I/O: a window of the greatest read-ahead of a device,
    /// and the next one once its pages are used (`filemap_fault` of mm/filemap.c). Code is not used in order;
    /// for data used in order, the kernel fetches window after window without further faults.
    pub(super) fn fault_bytes(&self) -> u64 {
        let read_ahead = self.devices.keys().filter_map(|(major, minor)| {
            let queue = format!("/sys/dev/block/{major}:{minor}/queue/read_ahead_kb");
            Some(sysfs::value(Path::new(&queue))? << 10)
        });
        2 * read_ahead.max().unwrap_or(READ_AHEAD)
    }

    /// Disks with a size, each with whether it has a request queue.
    pub(super) fn disks(&self) -> Vec<(Number, bool)> {
        let disks = self.devices.iter().filter(|(_, counted)| counted.is_disk);
        let sized = disks.filter(|((major, minor), _)| {
            let size = Path::new("/sys/dev/block").join(format!("{major}:{minor}/size"));
            sysfs::value(&size) > Some(0)
        });
        sized
            .map(|(number, counted)| (*number, counted.has_requests))
            .collect()
    }

    /// Traffic of disks since an earlier reading, for disks with any, with the known part of the program.
    pub(super) fn disks_since(
        &self,
        earlier: &Self,
        of_group: Option<&group::Traffic>,
        traced: Option<&BTreeMap<Number, TracedDisk>>,
    ) -> Vec<DiskTraffic> {
        let disks = self.devices.iter().filter(|(_, counted)| counted.is_disk);
        let traffic = disks.filter_map(|(number, counted)| {
            let traffic = self.traffic(earlier, *number)?;
            let is_used = traffic.read_ios + traffic.write_ios + traffic.flush_ios > 0;
            is_used.then(|| DiskTraffic {
                name: counted.name.clone(),
                number: *number,
                traffic,
                of_group: of_group.map(|all| all.get(number).copied().unwrap_or_default()),
                traced: traced.map(|all| all.get(number).copied().unwrap_or_default()),
                in_flight: earlier.in_flight(number),
            })
        });
        traffic.collect()
    }

    /// Traffic of the top devices of these stacks, each once, with whether they were read, and written.
    pub(super) fn lie_on(
        &self,
        earlier: &Self,
        stacks: &[Stack],
        used: &BTreeMap<Number, (bool, bool)>,
    ) -> Vec<ObservedDevice> {
        let mut seen = BTreeSet::new();
        let devices = stacks.iter().filter_map(|stack| {
            let number = stack.device.filter(|number| seen.insert(*number))?;
            let name = |number: &Number| match self.devices.get(number) {
                Some(counted) => counted.name.clone(),
                None => format!("{}:{}", number.0, number.1),
            };
            let bottom = stack.bottom.as_deref();
            let (is_read, is_written) = used.get(&number).copied().unwrap_or_default();
            let sum = |disks: &[Number]| {
                let mut disks = disks.iter();
                disks.try_fold(DeviceStat::default(), |sum, disk| {
                    Some(sum.plus(self.traffic(earlier, *disk)?))
                })
            };
            Some(ObservedDevice {
                name: name(&number),
                disks: bottom.unwrap_or(&[number]).iter().map(name).collect(),
                traffic: self.traffic(earlier, number),
                waits: self.waits(earlier, number),
                below: bottom.and_then(sum),
                in_file: stack.in_file,
                passes_on: stack.passes_on,
                is_read,
                is_written,
                in_flight: earlier.in_flight(&number),
            })
        });
        devices.collect()
    }
}

/// Requests of a device in flight; all where the kernel does not say.
fn in_flight(folder: &Path) -> InFlight {
    let text = std::fs::read_to_string(folder.join("inflight"));
    let counts = text.unwrap_or_default();
    let mut counts = counts.split_ascii_whitespace().map(|count| count != "0");
    InFlight {
        reads: counts.next().unwrap_or(true),
        writes: counts.next().unwrap_or(true),
    }
}

/// Number of a block device by its kernel name (`vda`) or path.
pub(super) fn number_of(name: &Path) -> Option<Number> {
    if let Ok(metadata) = std::fs::metadata(name)
        && metadata.file_type().is_block_device()
    {
        return Some((major(metadata.rdev()), minor(metadata.rdev())));
    }
    let name = name
        .to_str()
        .filter(|name| !name.contains('/') && !name.starts_with('.'))?;
    sysfs::device_number(&Path::new("/sys/class/block").join(name))
}
