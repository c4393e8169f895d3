//! What the kernel says happened: the process's own I/O account, its resource use, and the
//! block device's counters. Differences of two snapshots are the evidence of a trial.

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

/// One snapshot, or the difference of two. A part is `None` where the system does not offer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The process's I/O account.
    pub process_io: Option<ProcessIo>,
    /// Resource use; always there.
    pub usage: ResourceUse,
    /// The device's counters, when the target lies on one block device.
    pub device: Option<DeviceStat>,
}
