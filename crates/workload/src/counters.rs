//! What the kernel says happened: the process's own I/O account, its resource use, the block devices' counters, the
//! processor's, and the pressure on the machine. Differences of two snapshots are the evidence of a trial.

use crate::named::named;
use crate::quantity::significant;

/// A number of a [`CounterSet`]: one that is always there, or one that the system may not offer.
trait Number: Copy {
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

/// Numbers that are counted together, in the order of their fields.
pub trait CounterSet: Sized {
    /// Each of them; `None` where the system does not offer it.
    fn numbers(&self) -> impl Iterator<Item = Option<u64>>;

    /// The set of these numbers; `None` where `next` has no more of them, or one is missing that is always there.
    fn from_numbers(next: impl FnMut() -> Option<Option<u64>>) -> Option<Self>;
}

/// A struct of counters. Sums, differences and messages between ranks follow from its list of fields, so that a counter that is
/// added there is in all of them. What follows the colon says what a sum or difference is where one side does not know a number.
macro_rules! counter_set {
    (
        $(#[$about:meta])*
        pub struct $name:ident $(: $join:ident)? {
            $($(#[$doc:meta])* pub $field:ident: $number:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: $number,)*
        }

        impl $name {
            /// Each number joined with the other's. Where `join` has none for a number that is always there, it becomes 0.
            #[must_use]
            pub fn with(self, other: Self, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
                Self {
                    $($field: <$number>::of(join(self.$field.known(), other.$field.known())).unwrap_or_default(),)*
                }
            }
            $(
                /// Both together: of two threads, processes, hosts or devices.
                #[must_use]
                pub fn plus(self, other: Self) -> Self {
                    self.with(other, $join(u64::saturating_add))
                }

                /// What was counted since `earlier`.
                #[must_use]
                pub fn since(self, earlier: Self) -> Self {
                    self.with(earlier, $join(u64::saturating_sub))
                }
            )?
        }

        impl CounterSet for $name {
            fn numbers(&self) -> impl Iterator<Item = Option<u64>> {
                [$(self.$field.known()),*].into_iter()
            }

            fn from_numbers(mut next: impl FnMut() -> Option<Option<u64>>) -> Option<Self> {
                Some(Self { $($field: <$number>::of(next()?)?,)* })
            }
        }
    };
}

/// Joins two numbers where both are known; else the result is not known either.
fn known(join: impl Fn(u64, u64) -> u64) -> impl Fn(Option<u64>, Option<u64>) -> Option<u64> {
    move |a, b| a.zip(b).map(|(a, b)| join(a, b))
}

/// Joins two numbers where both are known; else the result is the one that is.
fn either(join: impl Fn(u64, u64) -> u64) -> impl Fn(Option<u64>, Option<u64>) -> Option<u64> {
    move |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (one, none) => one.or(none),
    }
}

/// One snapshot, or the difference of two. A part is `None` where the system does not offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The process's I/O account.
    pub process_io: Option<ProcessIo>,
    /// What the NFS client sent and fetched; `None` where no target lies on NFS.
    pub nfs: Option<NfsIo>,
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
    /// Mean length of the stretches of physical memory that the I/O buffers lay in, bytes; of up to 16 MiB of each worker.
    /// `None` where the kernel does not show it: that takes the capability CAP_SYS_ADMIN.
    pub buffer_piece_bytes: Option<u64>,
}

impl Counters {
    /// What happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            process_io: both(self.process_io, earlier.process_io, ProcessIo::since),
            nfs: both(self.nfs, earlier.nfs, NfsIo::since),
            usage: self.usage.since(earlier.usage),
            device: both(self.device, earlier.device, DeviceStat::since),
            bottom: both(self.bottom, earlier.bottom, Bottom::since),
            hardware: self.hardware,
            pressure: self.pressure.since(&earlier.pressure),
            buffer_piece_bytes: self.buffer_piece_bytes,
        }
    }
}

fn both<T>(now: Option<T>, earlier: Option<T>, since: impl Fn(T, T) -> T) -> Option<T> {
    now.zip(earlier).map(|(now, earlier)| since(now, earlier))
}

counter_set! {
    /// `/proc/self/io`: bytes and calls of the whole process, all threads together.
    pub struct ProcessIo: known {
        /// Bytes that read calls returned, from wherever they came.
        pub rchar: u64,
        /// Bytes handed to write calls.
        pub wchar: u64,
        /// Read system calls.
        pub syscr: u64,
        /// Write system calls.
        pub syscw: u64,
        /// Bytes fetched from storage.
        pub read_bytes: u64,
        /// Bytes sent to storage, or dirtied in the page cache to be sent later.
        pub write_bytes: u64,
    }
}

counter_set! {
    /// `/proc/self/mountstats`, bytes of the mounts that are used: those of all processes of the host.
    pub struct NfsIo: known {
        /// Bytes that the server sent.
        pub read_bytes: u64,
        /// Bytes that were sent to the server.
        pub write_bytes: u64,
    }
}

/// An account of the kernel that several clients of a trial read, so that their traffic in it cannot be distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedAccount {
    /// The first of them, by its first rank.
    pub first: u64,
    /// How many they are.
    pub clients: u64,
}

/// Which accounts of a client other clients of the trial read, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedAccounts {
    /// That of the device.
    pub device: Option<SharedAccount>,
    /// That of the disks below it.
    pub disks: Option<SharedAccount>,
    /// That of the NFS mount.
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
        /// Times a thread gave the CPU up, mostly to wait.
        pub voluntary_switches: u64,
        /// Times a thread was preempted.
        pub involuntary_switches: u64,
    }
}

counter_set! {
    /// `/sys/dev/block/MAJOR:MINOR/stat`; counts every process's traffic.
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
        /// Time the device had requests in flight, ms.
        pub busy_ms: u64,
        /// Sum of the times that requests were in flight, ms; over the time of looking it is the mean number in flight.
        pub queue_ms: Option<u64>,
    }
}

named! {
    /// A part of the traffic with a device that a control group can bound.
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
    /// A rate of it, as people read it: `2 MB/s of writes`, `60 writes/s`.
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
    /// Whose counters hold the flushes of the write cache that a device announces.
    pub enum FlushCounter: "flush counter" {
        /// Those of the device itself.
        Device = "device",
        /// Those of the disks at its bottom.
        Disks = "disks",
    }
}

/// The disks that a stacked device (a partition, dm, md, loop) lies on in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bottom {
    /// Their counters together; where there is none, because the bytes end in memory, all are 0.
    pub stat: DeviceStat,
    /// A loop device lies between: its bytes are those of a file, which the page cache may hold.
    pub in_file: bool,
}

impl Bottom {
    /// What happened since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            stat: self.stat.since(earlier.stat),
            in_file: self.in_file,
        }
    }
}

counter_set! {
    /// Events that the processor counted in the workers while they ran, user and kernel mode together unless the trial's
    /// effective settings say otherwise. One that the processor does not count is `None`.
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
    /// Why there are no hardware events.
    pub enum NoHardware: "reason" {
        /// The trial did not ask for them.
        NotAsked = "not-asked",
        /// The processor, or the hypervisor above it, offers none.
        NotOffered = "not-offered",
        /// The kernel does not let this user count (`perf_event_paranoid`).
        NotPermitted = "not-permitted",
        /// Another program holds the counters.
        Busy = "busy",
        /// The kernel knows no perf events.
        NoKernelSupport = "no-kernel-support",
    }
}

/// What the processor counted, or why it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// At least one event was counted.
    Counted(HardwareEvents),
    /// None was.
    Missing(NoHardware),
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware::Missing(NoHardware::NotAsked)
    }
}

impl Hardware {
    /// The events; none where there are none.
    pub fn events(self) -> HardwareEvents {
        match self {
            Hardware::Counted(events) => events,
            Hardware::Missing(_) => HardwareEvents::default(),
        }
    }

    /// What two workers counted together; where one of them did not count, the sum is not known either.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = match (self, other) {
            (Hardware::Counted(a), Hardware::Counted(b)) => (a, b),
            (missing @ Hardware::Missing(_), _) | (_, missing) => return missing,
        };
        Hardware::Counted(a.with(b, known(u64::saturating_add)))
    }

    /// Why there are none.
    pub fn missing(self) -> Option<NoHardware> {
        match self {
            Hardware::Counted(_) => None,
            Hardware::Missing(reason) => Some(reason),
        }
    }
}

counter_set! {
    /// One snapshot, or the difference of two. A part is `None` where the system does not offer it.
    pub struct Pressure {
        /// Time in which some task of the machine that could run had to wait for a CPU, ns (PSI, `some`).
        pub cpu_stall_ns: Option<u64>,
        /// Time in which some task waited for I/O, ns.
        pub io_stall_ns: Option<u64>,
        /// Time in which some task waited for memory, ns.
        pub memory_stall_ns: Option<u64>,
        /// CPU time that the hypervisor gave to others while a CPU here wanted to run, all CPUs together, ns; counted in
        /// ticks, mostly of 10 ms.
        pub steal_ns: Option<u64>,
        /// Interrupts that CPUs served, of devices, timers and other CPUs, all CPUs together.
        pub interrupts: Option<u64>,
        /// Time that the machine slept, ns.
        pub suspended_ns: Option<u64>,
        /// Time in which the control group of this process had used up its CPU quota and had to wait, all CPUs together, ns
        /// (cgroup v2).
        pub throttled_ns: Option<u64>,
        /// Greatest frequency among the CPUs looked at, kHz; of the later snapshot.
        pub cpu_khz: Option<u64>,
    }
}

impl Pressure {
    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_khz: self.cpu_khz,
            ..self.with(*earlier, known(u64::saturating_sub))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_where_every_part_is() {
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
        let spent = later.since(&earlier);
        assert_eq!((spent.cpu_stall_ns, spent.io_stall_ns), (Some(5), None));
        assert_eq!(spent.cpu_khz, Some(5));
    }
}
