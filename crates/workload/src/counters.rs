//! Counters of the kernel: the I/O account and the resource use of the process, the counters of block devices and of the
//! processor, and pressure on the machine. The difference of two snapshots is the evidence of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::named;
use crate::units::significant;

/// The type of a counter in a [`counter_set`]: always available, or optional.
pub(crate) trait Number: Copy {
    fn known(self) -> Option<u64>;
    fn of(known: Option<u64>) -> Option<Self>;
}

impl Number for u64 {
    fn known(self) -> Option<u64> {
        Some(self)
    }

    fn of(known: Option<u64>) -> Option<Self> {
        known
    }
}

impl Number for Option<u64> {
    fn known(self) -> Option<u64> {
        self
    }

    fn of(known: Option<u64>) -> Option<Self> {
        Some(known)
    }
}

/// A struct of counters. Sums and differences follow from its list of fields, so that a new counter
/// is part of them. `known` or `either` after the colon gives the sum or difference if one side lacks a value.
macro_rules! counter_set {
    (
        $(#[$about:meta])*
        pub struct $name:ident $(: $join:ident)? {
            $($(#[$doc:meta])* pub $field:ident: $number:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$doc])* pub $field: $number,)*
        }

        impl $name {
            /// Combines each value with the other's. If `join` gives no value for a counter that is always available, it
            /// becomes 0.
            #[must_use]
            pub fn with(self, other: Self, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
                Self {
                    $($field: <$number>::of(join(self.$field.known(), other.$field.known())).unwrap_or_default(),)*
                }
            }
            $(
                /// The sum, for two threads, processes, hosts or devices.
                #[must_use]
                pub fn plus(self, other: Self) -> Self {
                    self.with(other, $join(u64::saturating_add))
                }

                /// The difference since `earlier`.
                #[must_use]
                pub fn since(self, earlier: Self) -> Self {
                    self.with(earlier, $join(u64::saturating_sub))
                }
            )?
        }
    };
}
pub(crate) use counter_set;

/// Combines two values; `None` unless both are known.
pub(crate) fn known(
    join: impl Fn(u64, u64) -> u64,
) -> impl Fn(Option<u64>, Option<u64>) -> Option<u64> {
    move |a, b| a.zip(b).map(|(a, b)| join(a, b))
}

/// Combines two values; if only one is known, returns it.
pub fn either<T>(join: impl Fn(T, T) -> T) -> impl Fn(Option<T>, Option<T>) -> Option<T> {
    move |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (one, other) => one.or(other),
    }
}

/// One snapshot, or the difference of two. `None` if the system does not offer a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// I/O account of the process.
    pub process_io: Option<ProcessIo>,
    /// Bytes that the NFS client sent and received; `None` if no target is on NFS.
    pub nfs: Option<NfsIo>,
    /// Resource use of the process.
    pub usage: ResourceUse,
    /// Counters of the device, if the target is on one block device.
    pub device: Option<DeviceStat>,
    /// Counters of the disks below a stacked device; `None` if it is not stacked, or they are unknown.
    pub bottom: Option<Bottom>,
    /// Events of the processor. Each worker counts its own, so that a snapshot has none.
    pub hardware: Hardware,
    /// Pressure on the whole machine.
    pub pressure: Pressure,
    /// Mean length of physically contiguous pieces of the I/O buffers, bytes, from up to 16 MiB of each worker. `None` without
    /// CAP_SYS_ADMIN, since the kernel then hides it.
    pub buffer_piece_bytes: Option<u64>,
    /// Temperature of the hottest disk after the trial, thousandths of a degree Celsius; `None` without a sensor.
    pub drive_millidegrees: Option<u64>,
}

impl Counters {
    /// The difference since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            process_io: both(self.process_io, earlier.process_io, ProcessIo::since),
            nfs: both(self.nfs, earlier.nfs, NfsIo::since),
            usage: self.usage.since(earlier.usage),
            device: both(self.device, earlier.device, DeviceStat::since),
            bottom: both(self.bottom, earlier.bottom, Bottom::since),
            hardware: self.hardware,
            pressure: self.pressure.since(earlier.pressure),
            buffer_piece_bytes: self.buffer_piece_bytes,
            drive_millidegrees: self.drive_millidegrees,
        }
    }
}

fn both<T>(now: Option<T>, earlier: Option<T>, since: impl Fn(T, T) -> T) -> Option<T> {
    now.zip(earlier).map(|(now, earlier)| since(now, earlier))
}

counter_set! {
    /// `/proc/self/io`: bytes and calls of all threads of the process.
    pub struct ProcessIo: known {
        /// Bytes that read calls returned, from any source.
        pub rchar: u64,
        /// Bytes given to write calls.
        pub wchar: u64,
        /// Read system calls.
        pub syscr: u64,
        /// Write system calls.
        pub syscw: u64,
        /// Bytes read from storage.
        pub read_bytes: u64,
        /// Bytes written to storage, including bytes only dirtied in the page cache.
        pub write_bytes: u64,
    }
}

counter_set! {
    /// `/proc/self/mountstats`, for the mounts used; counts all processes of the host.
    pub struct NfsIo: known {
        /// Bytes received from the server.
        pub read_bytes: u64,
        /// Bytes sent to the server.
        pub write_bytes: u64,
    }
}

/// A counter of the kernel that several clients of a trial read, so that their traffic cannot be separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedAccount {
    /// The first client, by its first rank.
    pub first: u64,
    /// Number of clients.
    pub clients: u64,
}

/// Counters of a client that other clients of the trial read as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SharedAccounts {
    /// The counters of the device.
    pub device: Option<SharedAccount>,
    /// The counters of the disks below it.
    pub disks: Option<SharedAccount>,
    /// The counters of the NFS mount.
    pub nfs: Option<SharedAccount>,
}

counter_set! {
    /// `getrusage(RUSAGE_SELF)`.
    pub struct ResourceUse: known {
        /// CPU time in user mode, ns.
        pub user_ns: u64,
        /// CPU time in the kernel, ns.
        pub system_ns: u64,
        /// Page faults served without I/O.
        pub minor_faults: u64,
        /// Page faults that needed I/O.
        pub major_faults: u64,
        /// Number of times a thread gave up the CPU, mostly to wait.
        pub voluntary_switches: u64,
        /// Number of times a thread was preempted.
        pub involuntary_switches: u64,
    }
}

counter_set! {
    /// `/sys/dev/block/MAJOR:MINOR/stat`: counts the traffic of all processes.
    pub struct DeviceStat: either {
        /// Read requests completed.
        pub read_ios: u64,
        /// Read requests merged into others.
        pub read_merges: u64,
        /// Bytes read.
        pub read_bytes: u64,
        /// Write requests completed.
        pub write_ios: u64,
        /// Write requests merged into others.
        pub write_merges: u64,
        /// Bytes written.
        pub write_bytes: u64,
        /// Flush requests completed.
        pub flush_ios: u64,
        /// Time in which the device had requests in flight, ms.
        pub busy_ms: u64,
        /// Sum of the times that requests were in flight, ms; divided by elapsed time, the mean number in flight.
        pub queue_ms: Option<u64>,
    }
}

counter_set! {
    /// Times of requests in `/sys/dev/block/MAJOR:MINOR/stat`, of all processes: from the entry into the block layer to completion,
    /// queueing included.
    pub struct DeviceWaits: known {
        /// Sum over the reads that completed, ms.
        pub read_ms: u64,
        /// Sum over the writes that completed, ms.
        pub write_ms: u64,
    }
}

named! {
    /// A kind of traffic with a device that a control group can limit.
    #[derive(PartialOrd, Ord)]
    pub enum Traffic: "kind of traffic" {
        /// Bytes read.
        ReadBytes = "rbps",
        /// Bytes written.
        WriteBytes = "wbps",
        /// Reads.
        Reads = "riops",
        /// Writes.
        Writes = "wiops",
    }
}

impl Traffic {
    /// A rate of this traffic for people: `2 MB/s of writes`, `60 writes/s`.
    pub fn format(self, per_second: u64) -> String {
        let mb = significant(per_second as f64 / 1e6);
        match self {
            Self::ReadBytes => format!("{mb} MB/s of reads"),
            Self::WriteBytes => format!("{mb} MB/s of writes"),
            Self::Reads => format!("{per_second} reads/s"),
            Self::Writes => format!("{per_second} writes/s"),
        }
    }
}

named! {
    /// The device whose counters include the flushes of the write cache.
    pub enum FlushCounter: "flush counter" {
        /// The device itself.
        Device = "device",
        /// The disks below it.
        Disks = "disks",
    }
}

/// The disks below a stacked device (partition, dm, md, loop).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bottom {
    /// Sum of their counters; all 0 if there are none, because the bytes are in memory.
    pub stat: DeviceStat,
    /// Whether a loop device is between: its bytes are in a file, which the page cache may hold.
    pub in_file: bool,
    /// Whether the layers between pass on each byte once and add none of their own. Traffic of the disks beyond the traffic
    /// of the device then comes from other programs. False for layers that mirror, copy or cache, and for the unknown
    /// layers of older files.
    pub passes_on: bool,
}

/// Whether a file system of this type, mounted with these options, writes a multiple of its data. It does if it copies
/// changed data together with the tree above it, or if it writes data to its journal too.
pub fn amplifies_writes(file_system: &str, mount_options: &str) -> bool {
    let copies = ["bcachefs", "btrfs", "f2fs", "nilfs2", "zfs"].contains(&file_system);
    copies
        || mount_options
            .split(',')
            .any(|option| option == "data=journal")
}

impl Bottom {
    /// The difference since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            stat: self.stat.since(earlier.stat),
            ..self
        }
    }
}

counter_set! {
    /// Events that the processor counted while the workers ran, in user and kernel mode unless the trial's effective settings say
    /// otherwise. `None` for an event that the processor does not count.
    pub struct HardwareEvents {
        /// Core clock cycles.
        pub cycles: Option<u64>,
        /// Instructions retired.
        pub instructions: Option<u64>,
        /// Misses of the last-level cache, on reads.
        pub llc_misses: Option<u64>,
        /// Misses of the data TLB, on loads.
        pub dtlb_misses: Option<u64>,
    }
}

named! {
    /// Why no hardware events were counted.
    pub enum NoHardware: "reason" {
        /// The trial did not request them.
        NotAsked = "not-asked",
        /// The processor, or the hypervisor, offers none.
        NotOffered = "not-offered",
        /// The kernel does not permit this user to count (`perf_event_paranoid`).
        NotPermitted = "not-permitted",
        /// Another program uses the counters.
        Busy = "busy",
        /// The kernel does not support perf events.
        NoKernelSupport = "no-kernel-support",
    }
}

/// Events of the processor, or why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hardware {
    /// At least one event was counted.
    Counted(HardwareEvents),
    /// No event was counted.
    Missing(NoHardware),
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware::Missing(NoHardware::NotAsked)
    }
}

impl Hardware {
    /// The events; all `None` if none were counted.
    pub fn events(self) -> HardwareEvents {
        match self {
            Hardware::Counted(events) => events,
            Hardware::Missing(_) => HardwareEvents::default(),
        }
    }

    /// The sum of two workers; `None` for an event that one of them did not count.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = match (self, other) {
            (Hardware::Counted(a), Hardware::Counted(b)) => (a, b),
            (missing @ Hardware::Missing(_), _) | (_, missing) => return missing,
        };
        Hardware::Counted(a.with(b, known(u64::saturating_add)))
    }

    /// Why none were counted; `None` if some were.
    pub fn missing(self) -> Option<NoHardware> {
        match self {
            Hardware::Counted(_) => None,
            Hardware::Missing(reason) => Some(reason),
        }
    }
}

counter_set! {
    /// Waits, interrupts and sleep of the whole machine, and the CPU quota of this process. One snapshot, or the difference
    /// of two; a field is `None` if the system does not offer it.
    pub struct Pressure {
        /// Time in which at least one runnable task of the machine waited for a CPU, ns (PSI, `some`).
        pub cpu_stall_ns: Option<u64>,
        /// Time in which at least one task waited for I/O, ns.
        pub io_stall_ns: Option<u64>,
        /// Time in which at least one task waited for memory, ns.
        pub memory_stall_ns: Option<u64>,
        /// CPU time that the hypervisor gave to other guests while a CPU here was runnable, sum over all CPUs, ns. Counted in
        /// ticks, mostly of 10 ms.
        pub steal_ns: Option<u64>,
        /// Number of interrupts on all CPUs: of devices, timers and other CPUs.
        pub interrupts: Option<u64>,
        /// Time that the machine slept, or the process was stopped by Ctrl-Z, ns.
        pub suspended_ns: Option<u64>,
        /// Time in which the control group of this process waited because its CPU quota was used up, sum over all CPUs, ns
        /// (cgroup v1 or v2).
        pub throttled_ns: Option<u64>,
        /// Highest frequency of the CPUs looked at, kHz, at the later snapshot.
        pub cpu_khz: Option<u64>,
    }
}

impl Pressure {
    /// Difference to the snapshot `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_khz: self.cpu_khz,
            ..self.with(earlier, known(u64::saturating_sub))
        }
    }

    /// Worse values of two machines: of the frequency the lower, of the others the greater.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        Self {
            cpu_khz: either(u64::min)(self.cpu_khz, other.cpu_khz),
            ..self.with(other, either(u64::max))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_if_all_parts_are() {
        let counted = |cycles, llc_misses| {
            Hardware::Counted(HardwareEvents {
                cycles,
                llc_misses,
                ..HardwareEvents::default()
            })
        };
        let sum = counted(Some(3), Some(1)).plus(counted(Some(4), None));
        assert_eq!(sum, counted(Some(7), None));
        let busy = Hardware::Missing(NoHardware::Busy);
        assert_eq!(sum.plus(busy), busy);
        assert_eq!(busy.plus(sum), busy);
    }

    #[test]
    fn a_difference_needs_both_sides() {
        let later = Pressure {
            cpu_stall_ns: Some(9),
            io_stall_ns: Some(2),
            cpu_khz: Some(5),
            ..Pressure::default()
        };
        let earlier = Pressure {
            cpu_stall_ns: Some(4),
            cpu_khz: Some(3),
            ..Pressure::default()
        };
        let spent = later.since(earlier);
        assert_eq!((spent.cpu_stall_ns, spent.io_stall_ns), (Some(5), None));
        assert_eq!(spent.cpu_khz, Some(5));
    }
}
