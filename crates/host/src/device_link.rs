//! Connection of a disk to the machine, and the data rate that it allows.

use std::fmt;
use std::path::Path;

use crate::pseudo_files::text_of;

/// A connection: its present and its best speed.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceLink {
    /// Present speed: `16.0 GT/s x4`, `6.0 Gbps`.
    pub now: String,
    /// Best speed that the device supports; equal to `now` when it runs at that.
    pub best: String,
    /// Present data rate without protocol overhead, MB/s; `None` where the speed is unknown.
    pub ceiling_mb_s: Option<f64>,
}

/// Connection of a disk, by its folder in sysfs.
pub fn read(disk: &Path, transport: Transport) -> Option<DeviceLink> {
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
    let (best_speed, best_width) = (text("max_link_speed")?, text("max_link_width")?);
    // The link of a virtual device has no lanes: `Unknown`, x0 or x63.
    let lanes = width
        .parse()
        .ok()
        .filter(|lanes: &u32| (1..=32).contains(lanes))?;
    let lane = pci_lane_mb_s(&speed)?;
    let words = |speed: &str, width: &str| format!("{} x{width}", speed.trim_end_matches(" PCIe"));
    Some(DeviceLink {
        now: words(&speed, &width),
        best: words(&best_speed, &best_width),
        ceiling_mb_s: Some(lane * f64::from(lanes)),
    })
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
    let gigabits = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
    let speed = gigabits(&now)?;
    let best = text_of(folder.join("hw_sata_spd_limit"))
        .filter(|text| gigabits(text).is_some_and(|limit| limit > speed));
    Some(DeviceLink {
        best: best.unwrap_or_else(|| now.clone()),
        now,
        ceiling_mb_s: Some(speed * 100.0),
    })
}

/// Attachment of a device, or the mechanism that stands in for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// NVMe on PCI Express.
    Nvme,
    /// NVMe over a network.
    NvmeFabric,
    /// SATA or ATA.
    Sata,
    /// USB.
    Usb,
    /// SCSI of another kind: SAS, Fibre Channel, iSCSI, a virtual adapter.
    Scsi,
    /// A memory card or soldered flash.
    Mmc,
    /// Virtual, through virtio.
    Virtio,
    /// Virtual, through Xen.
    Xen,
    /// Persistent memory.
    Pmem,
    /// File used as a device.
    Loop,
    /// Compressed memory.
    Zram,
    /// Memory.
    RamDisk,
    /// A server on the network: nbd, rbd, DRBD.
    Network,
    /// Device mapper: LVM, encryption, multipath.
    DeviceMapper,
    /// Software RAID.
    Raid,
    /// Anything else.
    #[default]
    Other,
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

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Nvme => "nvme",
            Transport::NvmeFabric => "nvme-fabric",
            Transport::Sata => "sata",
            Transport::Usb => "usb",
            Transport::Scsi => "scsi",
            Transport::Mmc => "mmc",
            Transport::Virtio => "virtio",
            Transport::Xen => "xen",
            Transport::Pmem => "pmem",
            Transport::Loop => "loop",
            Transport::Zram => "zram",
            Transport::RamDisk => "ram-disk",
            Transport::Network => "network",
            Transport::DeviceMapper => "device-mapper",
            Transport::Raid => "raid",
            Transport::Other => "other",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use needs::Tree;

    #[test]
    fn a_narrow_pci_link_shows() {
        let tree = Tree::empty();
        tree.file("devices/0000:03:00.0/current_link_speed", "8.0 GT/s PCIe");
        tree.file("devices/0000:03:00.0/current_link_width", "2");
        tree.file("devices/0000:03:00.0/max_link_speed", "16.0 GT/s PCIe");
        tree.file("devices/0000:03:00.0/max_link_width", "4");
        tree.file("devices/0000:03:00.0/nvme/nvme0/nvme0n1/size", "8");
        let disk = tree.path().join("devices/0000:03:00.0/nvme/nvme0/nvme0n1");
        let link = read(&disk, Transport::Nvme).expect("there");
        assert_eq!((&*link.now, &*link.best), ("8.0 GT/s x2", "16.0 GT/s x4"));
        assert!(
            link.ceiling_mb_s
                .is_some_and(|mb| (mb - 1969.2).abs() < 0.1)
        );
        assert_eq!(read(&disk, Transport::Virtio), None);
    }

    #[test]
    fn a_link_without_lanes_or_speed_is_none() {
        for (speed, width) in [("Unknown", "0"), ("2.5 GT/s PCIe", "63"), ("Unknown", "4")] {
            let tree = Tree::empty();
            tree.file("devices/0000:00:01.0/current_link_speed", speed);
            tree.file("devices/0000:00:01.0/current_link_width", width);
            tree.file("devices/0000:00:01.0/max_link_speed", "Unknown");
            tree.file("devices/0000:00:01.0/max_link_width", "0");
            tree.file("devices/0000:00:01.0/nvme/nvme0/nvme0n1/size", "8");
            let disk = tree.path().join("devices/0000:00:01.0/nvme/nvme0/nvme0n1");
            assert_eq!(read(&disk, Transport::Nvme), None, "{speed} x{width}");
        }
    }

    #[test]
    fn sata_speeds_are_read_from_the_port() {
        let tree = Tree::empty();
        tree.file("devices/ata3/link3/ata_link/link3/sata_spd", "3.0 Gbps");
        tree.file(
            "devices/ata3/link3/ata_link/link3/hw_sata_spd_limit",
            "6.0 Gbps",
        );
        tree.file("devices/ata3/host2/block/sda/size", "8");
        let disk = tree.path().join("devices/ata3/host2/block/sda");
        let link = read(&disk, Transport::Sata).expect("there");
        assert_eq!((&*link.now, &*link.best), ("3.0 Gbps", "6.0 Gbps"));
        assert_eq!(link.ceiling_mb_s, Some(300.0));
    }

    #[test]
    fn lanes_carry_what_the_standard_says() {
        for (speed, expected) in [
            ("2.5 GT/s PCIe", 250.0),
            ("5.0 GT/s PCIe", 500.0),
            ("8.0 GT/s PCIe", 984.6),
            ("16.0 GT/s PCIe", 1969.2),
            ("32.0 GT/s PCIe", 3938.5),
        ] {
            let lane = pci_lane_mb_s(speed).expect("a number");
            assert!((lane - expected).abs() < 0.1, "{speed}: {lane}");
        }
        assert_eq!(pci_lane_mb_s("Unknown"), None);
    }
}
