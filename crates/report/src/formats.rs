//! The formats of `iolab export`: name, line of help, extensions, and writer.

use std::io::{self, Write};

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::trial_values::RunWithLatencies;
use iolab_workload::Result;

use crate::prometheus::GaugeRun;
use crate::rows::Format;
use crate::{fio, prometheus};

/// The input of a format.
#[derive(Debug, Clone, Copy)]
pub enum Writer {
    /// Rows of samples, histograms or series.
    Rows(Format),
    /// Runs, each with the latencies of its cells.
    RunsWithLatencies(fn(&[RunWithLatencies], &mut dyn Write) -> io::Result<()>),
    /// Gauges of runs.
    Gauges(fn(&[GaugeRun], &mut dyn Write) -> io::Result<()>),
    /// Analysed runs, from which a file may not follow.
    Judged(fn(&[AnalysedRun]) -> Result<Judged>),
}

/// A file for another program, if the runs allow one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Content of the file; `None` if the runs cannot tell it.
    pub text: Option<String>,
    /// Lines for the user, outside of the file.
    pub notes: Vec<String>,
}

/// A format of `iolab export`: a row of the list of formats.
#[derive(Debug, Clone, Copy)]
pub struct ExportFormat {
    /// The name that `--format` takes.
    pub name: &'static str,
    /// A description for the help, one line.
    pub words: &'static str,
    /// Extensions of its files; the first format in the list with an extension is the one that it selects.
    pub extensions: &'static [&'static str],
    /// The writer of the format.
    pub writer: Writer,
}

/// The formats of the core.
pub const FORMATS: [ExportFormat; 5] = [
    ExportFormat {
        name: "csv",
        words: "Comma-separated, with a header line",
        extensions: &["csv"],
        writer: Writer::Rows(Format::Csv),
    },
    ExportFormat {
        name: "json",
        words: "An array of objects",
        extensions: &["json"],
        writer: Writer::Rows(Format::Json),
    },
    ExportFormat {
        name: "jsonl",
        words: "JSON Lines: one object per line, for jq, logs and databases",
        extensions: &["jsonl", "ndjson"],
        writer: Writer::Rows(Format::JsonLines),
    },
    ExportFormat {
        name: "prometheus",
        words: "The text format of Prometheus: the medians of the cells, and the answers of runs",
        extensions: &["prom", "txt"],
        writer: Writer::Gauges(prometheus::cells),
    },
    ExportFormat {
        name: "fio",
        words: "fio's JSON+: one job per cell or group, its trials merged",
        extensions: &["json"],
        writer: Writer::RunsWithLatencies(fio::runs),
    },
];
