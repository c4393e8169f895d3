//! Trace events of an observed program, summarized.

/// The times of many, in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// Their mean, ns.
    pub mean_ns: f64,
    /// Their median, ns.
    pub p50_ns: u64,
    /// Their 99th percentile, ns.
    pub p99_ns: u64,
}

/// Requests of a disk that the threads of a program sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TracedRequests {
    /// Their number.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From their start in the block layer to their issue to the disk; `None` without any.
    pub queue: Option<Times>,
    /// From their issue to the disk to their completion; `None` without any.
    pub device: Option<Times>,
}

/// Traced requests of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TracedDisk {
    /// Reads of the program.
    pub reads: TracedRequests,
    /// Writes of the program.
    pub writes: TracedRequests,
    /// Requests that other threads sent, including threads of the kernel that write back data dirtied by programs.
    pub others: u64,
}

/// The times of syncs, and their parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SyncTimes {
    /// From the call into the file system to its return.
    pub whole: Times,
    /// Mean time in which the disk flushed its cache, ns.
    pub flush_ns: f64,
    /// Mean time in which else the journal was written, ns.
    pub journal_ns: f64,
    /// Mean time in which else the disk carried out writes, ns.
    pub write_ns: f64,
    /// Mean rest, ns.
    pub host_ns: f64,
}

/// Syncs of files that file systems with trace events got from the threads of a program.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TracedSyncs {
    /// Their number.
    pub syncs: u64,
    /// Syncs whose end is known.
    pub timed: u64,
    /// Timed syncs within which the disk completed a flush of its cache.
    pub flushed: u64,
    /// Timed syncs of files on disks without a volatile cache.
    pub uncached: u64,
    /// Journal commits that timed syncs waited for.
    pub commits: u64,
    /// Times of the timed syncs; `None` without any.
    pub times: Option<SyncTimes>,
}

/// Traced syncs of a program with all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TracedProgram {
    /// Its syncs.
    pub syncs: TracedSyncs,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// From the start of the observation to the moment when recording stopped, ns; `None` if everything was recorded.
    pub until_ns: Option<u64>,
}
