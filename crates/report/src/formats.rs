//! The formats of `iolab export`: name, line of help, and writer.

use std::io::{self, Write};

use iolab_analysis::latencies::RunWithLatencies;

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
    /// Gauges of runs, with a time stamp or without.
    Gauges(fn(&[GaugeRun], bool, &mut dyn Write) -> io::Result<()>),
}

macro_rules! formats {
    ($($format:ident = $name:literal, $words:literal, $writer:expr;)+) => {
        iolab_workload::named! {
            /// A format of `iolab export`.
            pub enum ExportFormat: "format" {
                $(#[doc = $words] $format = $name,)+
            }
        }

        impl ExportFormat {
            /// A description for the help, one line.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$format => $words,)+
                }
            }

            /// The writer of the format.
            pub fn writer(self) -> Writer {
                match self {
                    $(Self::$format => $writer,)+
                }
            }
        }
    };
}

formats! {
    Csv = "csv", "Comma-separated, with a header line", Writer::Rows(Format::Csv);
    Json = "json", "An array of objects", Writer::Rows(Format::Json);
    JsonLines = "jsonl", "JSON Lines: one object per line, for jq, logs and databases",
        Writer::Rows(Format::JsonLines);
    Prometheus = "prometheus", "The text format of Prometheus: the medians of the cells, and the answers of runs",
        Writer::Gauges(prometheus::cells);
    Fio = "fio",
        "fio's JSON+: one job per cell or group, its trials merged; with -o FOLDER a file per job, for fio-plot",
        Writer::RunsWithLatencies(fio::runs);
}
