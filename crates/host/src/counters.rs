//! Kernel counters: the I/O account and resource use of this process, block devices, the processor, and
//! pressure on the machine. The difference of two snapshots is the evidence of a trial.

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

/// Reads all counters now, summed over the devices of these stacks. Slow, machine-wide sources are read first.
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

/// Kernel counters of this thread alone.
pub fn of_this_thread() -> Counters {
    Counters {
        process_io: process::read_thread_io(),
        usage: process::read_thread_usage(),
        ..Counters::default()
    }
}

/// Time for which this thread was ready to run but waited for a CPU since its start, ns; `None` where the
/// kernel does not count it.
pub fn run_delay_of_this_thread_ns() -> Option<u64> {
    process::read_thread_run_delay_ns()
}

/// Kernel counters of this process now.
pub fn of_this_process() -> Counters {
    Counters {
        usage: process::read_usage(),
        process_io: process::read_process_io(),
        ..Counters::default()
    }
}

/// Differences from an earlier snapshot, taken `ago` before now.
#[must_use]
pub fn since(earlier: &Counters, ago: Duration, stacks: &[Stack]) -> Counters {
    since_with(earlier, of_this_process(), ago, stacks)
}

/// Differences from an earlier snapshot, with the counters of this process at its end given as `process`.
/// Sources are read in reverse order, so that the cost of reading stays outside the most precise counts.
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
    // A device that does not count has unknown traffic, not zero traffic. Without an account, a trial is
    // assumed to have done I/O.
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
