//! What the kernel says happened: the process's own I/O account, its resource use, the block devices' counters, the
//! processor's, and the pressure on the machine. Differences of two snapshots are the evidence of a trial.

mod device;
mod extents;
mod fiemap;
mod hardware;
mod layout;
mod memory;
mod pieces;
mod pressure;
mod process;

pub use device::{Bottom, DeviceStat};
pub use extents::Extents;
pub use hardware::{Hardware, HardwareEvents, NoHardware};
pub use layout::Layout;
pub use memory::Residency;
pub use pressure::Pressure;
pub use process::{ProcessIo, ResourceUse};

pub(crate) use extents::extents;
pub(crate) use memory::residency;
pub(crate) use pieces::Part;
pub(crate) use process::{process_io_of, resource_use};

use crate::target::Stack;

/// One snapshot, or the difference of two. A part is `None` where the system does not offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The process's I/O account.
    pub process_io: Option<ProcessIo>,
    /// Resource use; always there.
    pub usage: ResourceUse,
    /// The device's counters, when the target lies on one block device.
    pub device: Option<DeviceStat>,
    /// The disks at the bottom of a stacked device; `None` where the device itself is the bottom, or it is not known.
    pub bottom: Option<Bottom>,
    /// What the processor counted. Every worker counts for itself, so that a snapshot has none.
    pub hardware: Hardware,
    /// What the machine as a whole went through.
    pub pressure: Pressure,
}

impl Counters {
    /// Reads everything now, what is read slowly and concerns the whole machine first.
    pub fn snapshot(stack: &Stack) -> Self {
        let pressure = Pressure::read();
        let bottom = device::read_bottom(stack);
        let device = stack.device.and_then(device::read_device);
        Self {
            process_io: process::read_process_io(),
            usage: process::read_usage(),
            device,
            bottom,
            hardware: Hardware::default(),
            pressure,
        }
    }

    /// What happened since this snapshot was taken. The order of reading is turned round, so that what reading itself
    /// costs lies outside of what is counted finest.
    #[must_use]
    pub fn until_now(&self, stack: &Stack) -> Self {
        let usage = process::read_usage();
        let process_io = process::read_process_io();
        let device = stack.device.and_then(device::read_device);
        let bottom = device::read_bottom(stack);
        let now = Self {
            process_io,
            usage,
            device,
            bottom,
            hardware: self.hardware,
            pressure: Pressure::read().with_frequency(),
        };
        now.since(self)
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            process_io: both(self.process_io, earlier.process_io, ProcessIo::since),
            usage: self.usage.since(earlier.usage),
            device: both(self.device, earlier.device, DeviceStat::since),
            bottom: both(self.bottom, earlier.bottom, Bottom::since),
            hardware: self.hardware,
            pressure: self.pressure.since(&earlier.pressure),
        }
    }
}

fn both<T>(now: Option<T>, earlier: Option<T>, since: impl Fn(T, T) -> T) -> Option<T> {
    now.zip(earlier).map(|(now, earlier)| since(now, earlier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_cpu_and_faults() {
        let nowhere = Stack::default();
        let before = Counters::snapshot(&nowhere);
        // More than an allocator keeps of memory that others gave back.
        let fresh = std::hint::black_box(vec![1u8; 40 << 20]);
        let spent = before.until_now(&nowhere);
        assert!(spent.usage.minor_faults > 0, "{} bytes", fresh.len());
        assert_eq!((spent.device, spent.bottom), (None, None));
    }
}
