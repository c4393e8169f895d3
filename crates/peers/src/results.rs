//! What another tool measured before, as its report says: plain values, ready to become a run file.

use iolab_workload::histogram::LatencyHistogram;

use iolab_record::{Ended, LatencyOf, Moved, OperationSummary, PerOperation};
use iolab_workload::settings::CellSpec;
use iolab_workload::tool::Tool;

/// Contents of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The tool.
    pub tool: Tool,
    /// Its version, in its own words.
    pub version: String,
    /// When it was measured, RFC 3339, UTC.
    pub measured_utc: Option<String>,
    /// The file, folder or device that all of it measured; `None` where the report does not name it, or names several.
    pub target: Option<String>,
    /// The machine that ran all of it; `None` where the report does not name it, or names several.
    pub host: Option<String>,
    /// Its jobs or tests.
    pub entries: Vec<PeerResult>,
    /// What a reader should know of it.
    pub notes: Vec<String>,
}

impl Results {
    /// What a reader should know of these samples, each of which is one `unit` (a job, a test): whether any cell has several.
    pub(crate) fn note_on_samples(unit: &str, entries: &[PeerResult]) -> String {
        let measured = || entries.iter().filter(|entry| !entry.warmup);
        let repeats = |(number, entry): (usize, &PeerResult)| {
            let mut earlier = measured().take(number);
            earlier.any(|other| other.cell == entry.cell)
        };
        match measured().enumerate().any(repeats) {
            false => format!("one {unit} is one sample: there is no interval"),
            true => {
                format!("{unit}s with the same settings and target are the samples of one cell")
            }
        }
    }
}

/// What a report claims that was transferred, whether iolab could measure the same or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transferred {
    /// The tool.
    pub tool: Tool,
    /// Its jobs or tests that did anything.
    pub jobs: Vec<JobBytes>,
}

/// What one job, or one test, transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobBytes {
    /// Bytes that it read.
    pub read: u64,
    /// Bytes that it wrote.
    pub written: u64,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
}

/// One job, or one test.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerResult {
    /// What was asked for.
    pub cell: CellSpec,
    /// Whether it is the first of two like it, which is left out of the summary.
    pub warmup: bool,
    /// What it did, by operation.
    pub operations: PerOperation<OperationSummary>,
    /// What it did without a word about what that was.
    pub unsplit: Moved,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
    /// CPU time in user mode, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// What ended it.
    pub ended: Ended,
    /// Why it is of no use.
    pub failure: Option<String>,
    /// What it was called with.
    pub command: String,
    /// Latencies, request by request.
    pub histograms: Vec<(LatencyOf, LatencyHistogram)>,
}
