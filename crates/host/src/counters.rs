//! What the kernel says happened: the process's own I/O account, its resource use, the block devices' counters, the
//! processor's, and the pressure on the machine. Differences of two snapshots are the evidence of a trial.

use std::path::Path;
use std::time::Duration;

mod device;
mod extents;
mod file_layout;
mod memory;
mod nfs;
mod pressure;
mod process;
mod spread_pieces;
mod suspended_time;

pub use extents::extents;
pub use file_layout::FileBlocks;
pub use memory::residency;
pub use spread_pieces::FileRange;

pub(crate) use device::{read_device, read_waits, thermometer};
pub(crate) use nfs::NfsMounts;
pub(crate) use process::{
    OpenAccount, account_of, account_of_collected, cancelled_by_this_process, parse_run_delay_ns,
    resource_use,
};

use device::Counted;
use iolab_workload::counters::{Counters, DeviceStat, Hardware};

use iolab_storage::Stack;

/// Reads everything now, of the devices of these stacks together; what is read slowly and concerns the whole machine first.
pub fn snapshot(stacks: &[Stack]) -> Counters {
    let pressure = pressure::read();
    let disks = device::read_disks(stacks);
    let device = device::read_devices(stacks);
    Counters {
        process_io: process::read_process_io(),
        nfs: nfs::read(stacks),
        usage: process::read_usage(),
        device: device.map(|counted| counted.stat),
        bottom: disks.map(|counted| device::bottom(stacks, counted.stat)),
        hardware: Hardware::default(),
        pressure,
        buffer_piece_bytes: None,
        drive_millidegrees: None,
    }
}

/// What the kernel counts of this thread alone.
pub fn of_this_thread() -> Counters {
    Counters {
        process_io: process::read_thread_io(),
        usage: process::read_thread_usage(),
        ..Counters::default()
    }
}

/// Time in which this thread was ready to run and waited for a CPU since it began, ns; `None` where the kernel does not count it.
pub fn run_delay_of_this_thread_ns() -> Option<u64> {
    process::read_thread_run_delay_ns()
}

/// What the kernel counts of this process now.
pub fn of_this_process() -> Counters {
    Counters {
        usage: process::read_usage(),
        process_io: process::read_process_io(),
        ..Counters::default()
    }
}

/// What happened since a snapshot was taken, which is so long ago.
#[must_use]
pub fn since(earlier: &Counters, ago: Duration, stacks: &[Stack]) -> Counters {
    since_with(earlier, of_this_process(), ago, stacks)
}

/// The same, where `process` is what was counted of this process at its end. The order of reading is turned round, so that what reading
/// itself costs lies outside of what is counted finest.
#[must_use]
pub fn since_with(
    earlier: &Counters,
    process: Counters,
    ago: Duration,
    stacks: &[Stack],
) -> Counters {
    let Counters {
        usage, process_io, ..
    } = process;
    let device = device::read_devices(stacks);
    let disks = device::read_disks(stacks);
    // Of a device that does not count, what others did is unknown, and not nothing. Without an account, a trial is taken to have
    // done I/O.
    let spent = process_io
        .zip(earlier.process_io)
        .map(|(now, then)| now.since(then));
    let did_io = spent.is_none_or(|io| io.read_bytes > 0 || io.write_bytes > 0);
    let known = |counted: Option<Counted>, earlier: Option<DeviceStat>| {
        let can_be = |counted: &Counted| earlier.is_some_and(|e| counted.can_follow(&e, did_io));
        counted.filter(can_be).map(|counted| counted.stat)
    };
    let below = known(disks, earlier.bottom.map(|bottom| bottom.stat));
    let now = Counters {
        process_io,
        nfs: nfs::read(stacks),
        usage,
        device: known(device, earlier.device),
        bottom: below.map(|stat| device::bottom(stacks, stat)),
        hardware: earlier.hardware,
        pressure: pressure::with_frequency(pressure::known_after(ago, pressure::read())),
        buffer_piece_bytes: None,
        drive_millidegrees: thermometer(Path::new("/sys"), stacks).read(),
    };
    now.since(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_cpu_and_faults() {
        let nowhere = [Stack::default()];
        let before = snapshot(&nowhere);
        // More than an allocator keeps of memory that others gave back.
        let fresh = std::hint::black_box(vec![1u8; 40 << 20]);
        let spent = since(&before, Duration::from_secs(1), &nowhere);
        assert!(spent.usage.minor_faults > 0, "{} bytes", fresh.len());
        assert_eq!((spent.device, spent.bottom), (None, None));
    }
}
