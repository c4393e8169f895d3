//! What the kernel says happened: the process's own I/O account, its resource use, the block
//! device's counters, and the processor's. Differences of two snapshots are the evidence of a trial.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::spec::named;

/// `/proc/self/io`: bytes and calls of the whole process, all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessIo {
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

/// `getrusage(RUSAGE_SELF)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUse {
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

/// `/sys/dev/block/MAJOR:MINOR/stat`; counts every process's traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceStat {
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
}

/// Events that the processor counted in the workers while they ran, user and kernel mode together unless the trial's
/// effective settings say otherwise. One that the processor does not count is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// Why there are no hardware events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoHardware {
    /// The trial did not ask for them.
    NotAsked,
    /// The processor, or the hypervisor above it, offers none.
    NotOffered,
    /// The kernel does not let this user count (`perf_event_paranoid`).
    NotPermitted,
    /// Another program holds the counters.
    Busy,
    /// The kernel knows no perf events.
    NoKernelSupport,
}

named!(NoHardware, "reason", {
    "not-asked" => NoHardware::NotAsked, "not-offered" => NoHardware::NotOffered,
    "not-permitted" => NoHardware::NotPermitted, "busy" => NoHardware::Busy,
    "no-kernel-support" => NoHardware::NoKernelSupport,
});

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
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        Hardware::Counted(HardwareEvents {
            cycles: sum(a.cycles, b.cycles),
            instructions: sum(a.instructions, b.instructions),
            llc_misses: sum(a.llc_misses, b.llc_misses),
            dtlb_misses: sum(a.dtlb_misses, b.dtlb_misses),
        })
    }

    /// Why there are none.
    pub fn missing(self) -> Option<NoHardware> {
        match self {
            Hardware::Counted(_) => None,
            Hardware::Missing(reason) => Some(reason),
        }
    }
}

/// One snapshot, or the difference of two. A part is `None` where the system does not offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The process's I/O account.
    pub process_io: Option<ProcessIo>,
    /// Resource use; always there.
    pub usage: ResourceUse,
    /// The device's counters, when the target lies on one block device.
    pub device: Option<DeviceStat>,
    /// What the processor counted. Every worker counts for itself, so that a snapshot has none.
    pub hardware: Hardware,
}

impl Counters {
    /// Reads everything now; `device` is MAJOR and MINOR.
    pub fn snapshot(device: Option<(u32, u32)>) -> Self {
        Self {
            process_io: read_process_io(),
            usage: read_usage(),
            device: device.and_then(read_device),
            hardware: Hardware::default(),
        }
    }

    /// What happened since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            process_io: self
                .process_io
                .zip(earlier.process_io)
                .map(|(b, a)| ProcessIo {
                    rchar: b.rchar.saturating_sub(a.rchar),
                    wchar: b.wchar.saturating_sub(a.wchar),
                    syscr: b.syscr.saturating_sub(a.syscr),
                    syscw: b.syscw.saturating_sub(a.syscw),
                    read_bytes: b.read_bytes.saturating_sub(a.read_bytes),
                    write_bytes: b.write_bytes.saturating_sub(a.write_bytes),
                }),
            usage: ResourceUse {
                user_ns: self.usage.user_ns.saturating_sub(earlier.usage.user_ns),
                system_ns: self.usage.system_ns.saturating_sub(earlier.usage.system_ns),
                minor_faults: self
                    .usage
                    .minor_faults
                    .saturating_sub(earlier.usage.minor_faults),
                major_faults: self
                    .usage
                    .major_faults
                    .saturating_sub(earlier.usage.major_faults),
                voluntary_switches: self
                    .usage
                    .voluntary_switches
                    .saturating_sub(earlier.usage.voluntary_switches),
                involuntary_switches: self
                    .usage
                    .involuntary_switches
                    .saturating_sub(earlier.usage.involuntary_switches),
            },
            device: self.device.zip(earlier.device).map(|(b, a)| DeviceStat {
                read_ios: b.read_ios.saturating_sub(a.read_ios),
                read_merges: b.read_merges.saturating_sub(a.read_merges),
                read_bytes: b.read_bytes.saturating_sub(a.read_bytes),
                write_ios: b.write_ios.saturating_sub(a.write_ios),
                write_merges: b.write_merges.saturating_sub(a.write_merges),
                write_bytes: b.write_bytes.saturating_sub(a.write_bytes),
                flush_ios: b.flush_ios.saturating_sub(a.flush_ios),
                busy_ms: b.busy_ms.saturating_sub(a.busy_ms),
            }),
            hardware: self.hardware,
        }
    }
}

fn read_process_io() -> Option<ProcessIo> {
    parse_process_io(&std::fs::read_to_string("/proc/self/io").ok()?)
}

/// The account of another process, which may have ended already as long as nobody has taken note of its end.
pub(crate) fn process_io_of(process: u32) -> Option<ProcessIo> {
    parse_process_io(&std::fs::read_to_string(format!("/proc/{process}/io")).ok()?)
}

/// proc(5), `/proc/pid/io`.
fn parse_process_io(text: &str) -> Option<ProcessIo> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .parse()
                .ok()
        })
    };
    Some(ProcessIo {
        rchar: field("rchar")?,
        wchar: field("wchar")?,
        syscr: field("syscr")?,
        syscw: field("syscw")?,
        read_bytes: field("read_bytes")?,
        write_bytes: field("write_bytes")?,
    })
}

fn read_device((major, minor): (u32, u32)) -> Option<DeviceStat> {
    parse_device(&std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// Documentation/block/stat.rst of Linux; its sectors are always 512 bytes.
fn parse_device(text: &str) -> Option<DeviceStat> {
    let fields: Vec<u64> = text
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let [
        read_ios,
        read_merges,
        read_sectors,
        _,
        write_ios,
        write_merges,
        write_sectors,
        _,
        _,
        busy_ms,
        ..,
    ] = fields[..]
    else {
        return None;
    };
    Some(DeviceStat {
        read_ios,
        read_merges,
        read_bytes: read_sectors * 512,
        write_ios,
        write_merges,
        write_bytes: write_sectors * 512,
        // Counted since Linux 5.5.
        flush_ios: fields.get(15).copied().unwrap_or(0),
        busy_ms,
    })
}

fn read_usage() -> ResourceUse {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a writable rusage, and all-zero bytes are a valid one even if the call failed.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    resource_use(&usage)
}

/// What the kernel says that a process used.
pub(crate) fn resource_use(usage: &libc::rusage) -> ResourceUse {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ResourceUse {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_prints() {
        let io = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\nread_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
        let io = parse_process_io(io).expect("complete");
        assert_eq!(
            (io.rchar, io.read_bytes, io.write_bytes),
            (323_934_931, 4096, 323_932_160)
        );
        assert_eq!(parse_process_io("rchar: 1\n"), None);

        let stat =
            "  446216 784926 9550688 4382310 883461 322361 4960736 3612 0 1 6 7 8 9 10 11 12\n";
        let stat = parse_device(stat).expect("complete");
        assert_eq!((stat.read_ios, stat.read_bytes), (446_216, 9_550_688 * 512));
        assert_eq!(
            (stat.write_ios, stat.write_bytes),
            (883_461, 4_960_736 * 512)
        );
        assert_eq!((stat.busy_ms, stat.flush_ios), (1, 11));
        assert_eq!(parse_device("1 2 3"), None);
    }

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
    fn this_process_uses_cpu_and_faults() {
        let before = Counters::snapshot(None);
        let fresh = std::hint::black_box(vec![1u8; 8 << 20]);
        let spent = Counters::snapshot(None).since(&before);
        assert!(spent.usage.minor_faults > 0, "{} bytes", fresh.len());
        assert_eq!(spent.device, None);
    }
}
