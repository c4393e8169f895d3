//! Attachment of devices to the machine.

use std::fmt;

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
