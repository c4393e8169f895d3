//! All measurements as rows for other programs, and the formats of `iolab export`.

pub(crate) mod cells;
pub(crate) mod samples;

use std::io::{self, Write};
use std::rc::Rc;

use crate::data_column::{column_value, run_columns, run_values};
use crate::prometheus;
use crate::rows::{Format, RowWriter, text};
use serde_json::Value;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::RunName;
use iolab_analysis::trial_values::RunWithLatencies;
use iolab_record::tables::{IntervalRow, Rank, SERIES};
use iolab_record::{RunRecord, SampleLatency, SampleLatencyOverTime, SampleSeries};
use iolab_workload::histogram::counts;
use samples::CourseInterval;

pub use crate::data_column::Exported;

/// Writes one row per cell of each run, or per group of a cell and for all groups together: summaries, verdict
/// and flags. Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn cells(runs: &[(RunName, AnalysedRun)], to: &mut dyn Write) -> io::Result<()> {
    cells::rows(runs).write(Format::Csv, to)
}

/// Writes one row per sample of each run, warm-up and failed trials included (columns `warmup`
/// and `ok` tell them). Each run comes with the name of its file.
///
/// # Errors
/// When the output cannot be written.
pub fn samples(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    samples::rows(runs).write(format, to)
}

/// Checks that a run has ranks.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): no run was carried out by several processes.
pub fn check_ranks(records: &[RunRecord]) -> iolab_workload::Result<()> {
    match records.iter().all(|record| record.ranks.is_empty()) {
        true => Err(Rank::none()),
        false => Ok(()),
    }
}

/// Writes one row per sample and rank of each run that several processes carried out; see [`check_ranks`].
///
/// # Errors
/// When the output cannot be written.
pub fn ranks(runs: &[Exported<'_>], format: Format, to: &mut dyn Write) -> io::Result<()> {
    samples::ranks(runs).write(format, to)
}

/// Data of a run, with the name and the record of the run.
pub type OfRun<'a, T> = (Rc<RunName>, &'a RunRecord, T);

/// Writes one row per histogram bucket that counted anything: `low_ns` and `high_ns` are the
/// least and the greatest latency that fall into it.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn buckets<'a, E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<OfRun<'a, SampleLatency>, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let own = [
        "experiment", "sample", "direction", "low_ns", "high_ns", "count",
    ];
    let columns: Vec<String> = run_columns().chain(own.map(str::to_owned)).collect();
    let mut writer = RowWriter::new(to, format, &columns)?;
    for row in rows {
        let (run, record, latency) = row?;
        // Of a group with its name in front: `reader.read-response`.
        let direction = match record.group_of(latency.sample, latency.part) {
            Some(group) => format!("{group}.{}", latency.of),
            None => latency.of.to_string(),
        };
        let sample = [
            text(&record.experiment.name),
            latency.sample.into(),
            text(&direction),
        ];
        let of_all: Vec<Value> = run_values(&run).chain(sample).collect();
        for (value, count) in counts(&latency.histogram) {
            let low = latency.histogram.lowest_equivalent(value);
            let bucket = [low, value, count].map(Value::from);
            writer.row(of_all.iter().chain(&bucket))?;
        }
    }
    Ok(writer.finish()?)
}

/// Writes one row per interval of each sample, with the latencies over time that the trial keeps.
///
/// # Errors
/// When the output cannot be written, or the first error that `rows` gives.
pub fn series<'a, E: From<io::Error>>(
    rows: impl IntoIterator<Item = Result<OfRun<'a, (SampleSeries, Vec<SampleLatencyOverTime>)>, E>>,
    format: Format,
    to: &mut dyn Write,
) -> Result<(), E> {
    let shown = || SERIES.columns.iter().filter(|column| column.exported);
    let own = ["experiment", "sample"].map(str::to_owned);
    let columns = run_columns().chain(own);
    let columns = columns.chain(shown().map(|column| column.name.to_owned()));
    let columns: Vec<String> = columns.chain(samples::latency_columns()).collect();
    let mut writer = RowWriter::new(to, format, &columns)?;
    for row in rows {
        let (run, record, (SampleSeries { sample, series }, latency)) = row?;
        let own = [text(&record.experiment.name), sample.into()];
        let of_all: Vec<Value> = run_values(&run).chain(own).collect();
        for CourseInterval { done, latency } in samples::joined(&series, &latency) {
            let interval = IntervalRow {
                sample,
                interval: done,
            };
            let values = shown().map(|column| column_value(column, &interval));
            let values = of_all.iter().cloned().chain(values);
            writer.row(values.chain(samples::latencies(&latency)))?;
        }
    }
    Ok(writer.finish()?)
}

/// The input of a format.
#[derive(Debug, Clone, Copy)]
pub enum Writer {
    /// Rows of samples, histograms or series.
    Rows(Format),
    /// Runs, each with the latencies of its cells.
    RunsWithLatencies(fn(&[RunWithLatencies], &mut dyn Write) -> io::Result<()>),
    /// Analysed runs with their answers, as gauges.
    Gauges(fn(&[AnalysedRun], &mut dyn Write) -> io::Result<()>),
    /// Analysed runs, from which a file may not follow.
    Judged(fn(&[AnalysedRun]) -> iolab_workload::Result<Judged>),
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
pub const FORMATS: [ExportFormat; 4] = [
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
];
