//! The results as JSON of hyperfine's shape, for its scripts.

use std::io::{self, Write};

use iolab_record::Sample;
use iolab_stats::summary;
use serde::Serialize;

use crate::answer::{Timed, TimedRuns};
use crate::commands::Parameters;

/// The document of `--export-json`.
#[derive(Serialize)]
struct Document<'a> {
    results: Vec<Results<'a>>,
}

/// Results of one command; times in seconds.
#[derive(Serialize)]
struct Results<'a> {
    command: &'a str,
    mean: Option<f64>,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "Parameters::is_empty")]
    parameters: &'a Parameters,
}

/// Writes the runs of all commands.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn write(timed: &Timed, to: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        results: timed.commands.iter().map(results).collect(),
    };
    serde_json::to_writer_pretty(&mut *to, &document)?;
    writeln!(to)
}

fn results(own: &TimedRuns) -> Results<'_> {
    let seconds = |ns: &dyn Fn(&Sample) -> u64| -> Vec<f64> {
        own.samples
            .iter()
            .map(|sample| ns(sample) as f64 / 1e9)
            .collect()
    };
    let mean = |values: &[f64]| summary(values).and_then(|summary| summary.mean);
    let times = seconds(&|sample| sample.elapsed_ns);
    let summary = summary(&times);
    Results {
        command: &own.command.name,
        mean: summary.and_then(|summary| summary.mean),
        stddev: summary.and_then(|summary| summary.sd),
        median: summary.map(|summary| summary.median),
        user: mean(&seconds(&|sample| sample.counters.usage.user_ns)),
        system: mean(&seconds(&|sample| sample.counters.usage.system_ns)),
        min: summary.map(|summary| summary.min),
        max: summary.map(|summary| summary.max),
        times,
        memory_usage_byte: own.own.iter().map(|run| run.resident_bytes).collect(),
        exit_codes: own.own.iter().map(|run| run.exit_code).collect(),
        parameters: &own.command.parameters,
    }
}
