//! What `iolab witness` keeps of a program, a process or devices: a file of its own kind, without an experiment and without trials.

use iolab_workload::witness::Observed;

use crate::ServedVerdict;
use crate::environment::Environment;

/// What was observed, with the verdicts that were reached on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Witnessed {
    /// Version of iolab.
    pub tool_version: String,
    /// Start, RFC 3339, UTC.
    pub started_utc: String,
    /// What was seen.
    pub observed: Observed,
    /// Where the bytes came from that were read; `None` where there were none of note.
    pub reads: Option<ServedVerdict>,
    /// Where the bytes went that were written; `None` where there were none of note.
    pub writes: Option<ServedVerdict>,
    /// What the program says itself, where it wrote a report that iolab reads.
    pub claim: Option<ToolClaim>,
    /// The machine and the devices.
    pub environment: Environment,
}

/// What a program says of itself in a report that iolab reads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolClaim {
    /// The tool.
    pub tool: String,
    /// What it says of reads; `None` where it made none.
    pub reads: Option<Claimed>,
    /// Of writes.
    pub writes: Option<Claimed>,
}

/// What a program says of its own transfers in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Claimed {
    /// Bytes over all its jobs or tests.
    pub bytes: u64,
    /// Throughput, MB/s, with the time that it rests on, ns; `None` where several jobs or tests have one each.
    pub rate: Option<(f64, u64)>,
}
