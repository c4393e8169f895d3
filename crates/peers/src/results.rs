//! Earlier results of another tool, from its report: plain values, ready to become a run file.

use iolab_workload::histogram::LatencyHistogram;

use iolab_record::{LatencyOf, Sample};
use iolab_workload::settings::{CellSpec, Tool};

/// Contents of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Tool that measured.
    pub tool: Tool,
    /// Version in the tool's own words.
    pub version: String,
    /// Time of measurement, RFC 3339, UTC.
    pub measured_utc: Option<String>,
    /// File, folder or device of all results; `None` if the report names none, or several.
    pub target: Option<String>,
    /// Machine of all results; `None` if the report names none, or several.
    pub host: Option<String>,
    /// Jobs or tests.
    pub entries: Vec<PeerResult>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

impl Results {
    /// Remark on samples, each of which is one `unit` (a job, a test): whether any cell has several.
    pub(crate) fn note_on_samples(unit: &str, entries: &[PeerResult]) -> String {
        let measured = || entries.iter().filter(|entry| !entry.sample.warmup);
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

/// Samples of the jobs or tests of a report that were active, whether or not iolab could measure the same, and its tool.
pub type Transferred = (Tool, Vec<Sample>);

/// One job, or one test.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerResult {
    /// Requested cell.
    pub cell: CellSpec,
    /// The measured values. As a warm-up, the first of two equal results is left out of the summary.
    pub sample: Sample,
    /// Latencies, request by request.
    pub histograms: Vec<(LatencyOf, LatencyHistogram)>,
}
